//! Compares a layer with its formula.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};
use sparsek_gnn::Graph;
use sparsek_tests::{
    backend::{Backend, Kind},
    data::Random,
    oracle::layers::{Edges, Matrix},
    runner::Cases,
};

pub const NODES: usize = 11;
pub const WIDTH: usize = 6;
pub const OUT: usize = 4;
const STEP: f64 = 1e-6;

pub struct Inputs {
    x: Vec<f64>,
    weights: Vec<f64>,
    pub parameters: Vec<Vec<f64>>,
}

impl Inputs {
    pub fn x(&self) -> Matrix {
        self.x.chunks(WIDTH).map(<[f64]>::to_vec).collect()
    }

    pub fn edges(&self, weighted: bool) -> Edges {
        let weights = self.weights.iter().map(|&w| if weighted { w } else { 1.0 });
        Edges {
            nodes: NODES,
            list: edges().into_iter().zip(weights).map(|((s, t), w)| (s, t, w)).collect(),
        }
    }

    fn all(&mut self) -> Vec<&mut f64> {
        let parameters = self.parameters.iter_mut().flatten();
        self.x.iter_mut().chain(&mut self.weights).chain(parameters).collect()
    }
}

pub struct Subject<M> {
    pub make: fn(&Device) -> M,
    pub forward: fn(&M, &Graph, Tensor<2>, Tensor<1>) -> Tensor<2>,
    pub expected: fn(&Inputs) -> Matrix,
}

/// Edges by target: hubs, self-loops (two on a node), a repeated edge, isolated nodes.
fn edges() -> Vec<(usize, usize)> {
    let mut random = Random::new(31);
    let mut list: Vec<(usize, usize)> =
        (0..26).map(|_| (random.below(NODES - 2), random.below(NODES - 3) + 1)).collect();
    list.extend((0..NODES - 1).map(|i| (i, 3)));
    list.extend([(5, 5), (5, 5), (2, 3)]);
    list.sort_by_key(|&(source, target)| (target, source));
    list
}

fn graph() -> Graph {
    let ids = edges().into_iter().map(|(s, t)| (s as u32, t as u32));
    Graph::from_edges(NODES, ids).expect("ids are in range")
}

/// Sets and records parameters.
struct Fill<'a> {
    next: &'a mut dyn FnMut(usize) -> Vec<f64>,
    dtype: DType,
    values: Vec<Vec<f64>>,
}

impl ModuleMapper for Fill<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let dtype = self.dtype;
        let next = &mut self.next;
        let values = &mut self.values;
        param.map(|tensor| {
            let shape = tensor.shape();
            let numbers = next(shape.num_elements());
            let data = TensorData::new(numbers.clone(), shape);
            values.push(numbers);
            Tensor::from_data(data, (&tensor.device(), dtype)).require_grad()
        })
    }
}

/// The layer with parameters of given lengths from `next`, in order, and their values.
pub fn fill<M: Module>(
    layer: M,
    dtype: DType,
    next: &mut dyn FnMut(usize) -> Vec<f64>,
) -> (M, Vec<Vec<f64>>) {
    let mut fill = Fill { next, dtype, values: Vec::new() };
    let layer = layer.map(&mut fill);
    (layer, fill.values)
}

struct Collect<'a> {
    gradients: &'a Gradients,
    values: Vec<f64>,
    missing: usize,
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        match param.val().grad(self.gradients) {
            Some(gradient) => self.values.extend(gradient.into_data().iter::<f64>()),
            None => self.missing += 1,
        }
    }
}

fn normals(random: &mut Random, count: usize) -> Vec<f64> {
    (0..count).map(|_| f64::from(random.normal() as f32)).collect()
}

pub fn add_subject<M: Module + 'static>(
    cases: &mut Cases,
    backend: &Backend,
    name: &str,
    subject: Subject<M>,
) {
    // f64 only where no kernels are tuned and compiled.
    let dtypes: &[DType] = match backend.kind {
        Kind::Flex => &[DType::F32, DType::F64],
        _ => &[DType::F32],
    };
    for &dtype in dtypes {
        let Subject { make, forward, expected } = subject;
        let name = format!("tensor/gnn/layer/{name}/{}", dtype.name());
        cases.check_shared(backend, name, move |backend| {
            check(backend, dtype, &Subject { make, forward, expected })
        });
    }
}

/// One forward and backward pass of loss = Σ upstream · y.
pub struct Pass<'a> {
    pub graph: &'a Graph,
    /// `[nodes, width]`.
    pub x: &'a [f64],
    /// Per edge.
    pub weights: &'a [f64],
    pub upstream: &'a [f64],
    pub dtype: DType,
}

impl Pass<'_> {
    /// Output, and gradients for x, weights and parameters.
    pub fn run<M: Module>(
        &self,
        backend: &Backend,
        layer: &M,
        forward: fn(&M, &Graph, Tensor<2>, Tensor<1>) -> Tensor<2>,
    ) -> Result<(Vec<f64>, Vec<f64>), String> {
        let device = backend.device.clone().autodiff();
        let upload =
            |values: &[f64], shape: &[usize]| TensorData::new(values.to_vec(), shape.to_vec());
        let on = (&device, self.dtype);
        let nodes = self.graph.nodes();
        let x = upload(self.x, &[nodes, self.x.len() / nodes]);
        let x = Tensor::<2>::from_data(x, on).require_grad();
        let weights = upload(self.weights, &[self.weights.len()]);
        let weights = Tensor::<1>::from_data(weights, on).require_grad();

        let y = forward(layer, self.graph, x.clone(), weights.clone());
        let found: Vec<f64> = y.clone().into_data().iter::<f64>().collect();
        if found.len() != self.upstream.len() {
            return Err(format!("y has {} elements, not {}", found.len(), self.upstream.len()));
        }
        let upstream = upload(self.upstream, &y.dims());
        let gradients = (y * Tensor::from_data(upstream, on)).sum().backward();
        let of = |gradient: Option<TensorData>, count: usize| match gradient {
            Some(gradient) => gradient.iter::<f64>().collect(),
            None => vec![0.0; count],
        };
        let mut slopes: Vec<f64> = of(x.grad(&gradients).map(Tensor::into_data), self.x.len());
        let by_weights = weights.grad(&gradients).map(Tensor::into_data);
        slopes.extend(of(by_weights, self.weights.len()));
        let mut collect = Collect { gradients: &gradients, values: Vec::new(), missing: 0 };
        layer.visit(&mut collect);
        if collect.missing > 0 {
            return Err(format!("{} parameters have no gradient", collect.missing));
        }
        slopes.extend(collect.values);
        Ok((found, slopes))
    }
}

/// The output and all derivatives equal the oracle's.
fn check<M: Module>(backend: &Backend, dtype: DType, subject: &Subject<M>) -> Result<(), String> {
    let mut random = Random::new(77);
    let x = normals(&mut random, NODES * WIDTH);
    // Positive: norms divide by sums of weights.
    let weights = normals(&mut random, edges().len()).into_iter().map(|w| w.abs() + 0.25);
    let weights: Vec<f64> = weights.map(|w| f64::from(w as f32)).collect();
    let layer = (subject.make)(&backend.device.clone().autodiff());
    let mut drawn = Random::new(5);
    let (layer, parameters) = fill(layer, dtype, &mut |count| normals(&mut drawn, count));
    let mut inputs = Inputs { x, weights, parameters };
    let expected = (subject.expected)(&inputs).concat();
    let upstream = normals(&mut random, expected.len());
    let pass = Pass {
        graph: &graph(),
        x: &inputs.x,
        weights: &inputs.weights,
        upstream: &upstream,
        dtype,
    };
    let (found, slopes) = pass.run(backend, &layer, subject.forward)?;
    // Devices may round products to tf32.
    let precision = if dtype == DType::F64 { 1e-9 } else { 2f64.powi(-10) };
    let size = expected.iter().fold(1.0, |most: f64, y| most.max(y.abs()));
    same("y", &found, &expected, precision * size)?;

    let loss = |inputs: &Inputs| -> f64 {
        let y = (subject.expected)(inputs).concat();
        y.iter().zip(&upstream).map(|(y, c)| y * c).sum()
    };
    let count = inputs.all().len();
    let differences: Vec<f64> = (0..count)
        .map(|at| {
            let mut moved = |step: f64| {
                *inputs.all()[at] += step;
                let value = loss(&inputs);
                *inputs.all()[at] -= step;
                value
            };
            (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
        })
        .collect();
    let precision = if dtype == DType::F64 { 1e-6 } else { 2f64.powi(-9) };
    let size = differences.iter().fold(1.0, |most: f64, d| most.max(d.abs()));
    same("slopes", &slopes, &differences, precision * size)
}

pub fn same(what: &str, found: &[f64], expected: &[f64], bound: f64) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} {what} instead of {}", found.len(), expected.len()));
    }
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        let distance = (a - b).abs();
        if distance.is_nan() || distance > bound {
            return Err(format!("{what} {at}: {a} instead of {b}, off by more than {bound:e}"));
        }
    }
    Ok(())
}
