//! SpMM problems with compressed rows: pattern, factors, selected elements, expected results.

use burn::tensor::{Device, Tensor, TensorData};
use sparsek::sparse::{Adjacency, Scaling, sparse_topk, spmm_compressed_with};
use sparsek::topk::Method;
use sparsek_tests::{
    backend::Backend,
    data::{Random, normals},
    element::Element,
    oracle::spmm::{Bounded, Csr},
    oracle::topk::select,
    sparse::{pattern, rounded, vector},
};

/// Factors of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factors {
    Ones,
    Weights,
    Rows,
    Cols,
    Some,
    All,
}

impl Factors {
    pub const ALL: [Self; 6] =
        [Self::Ones, Self::Weights, Self::Rows, Self::Cols, Self::Some, Self::All];

    pub fn weights(self) -> bool {
        matches!(self, Self::Weights | Self::All)
    }

    pub fn rows(self) -> bool {
        matches!(self, Self::Rows | Self::Some | Self::All)
    }

    pub fn cols(self) -> bool {
        matches!(self, Self::Cols | Self::Some | Self::All)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternKind {
    /// Random row lengths, columns unsorted and repeated.
    Ragged,
    /// Most rows and columns are empty, including the first and last.
    Empty,
    /// One row and one column of 100,000 entries.
    Hub,
    Wide,
    Nothing,
    /// Row lengths around the length at which rows are split.
    Cut,
}

impl PatternKind {
    pub const ALL: [Self; 6] =
        [Self::Ragged, Self::Empty, Self::Hub, Self::Wide, Self::Nothing, Self::Cut];

    pub fn csr(self) -> Csr {
        let mut random = Random::new(self as u64 + 11);
        let [rows, cols] = match self {
            Self::Ragged | Self::Nothing => [70, 60],
            Self::Empty => [90, 80],
            Self::Hub => [300, 250],
            Self::Wide => [5, 400],
            Self::Cut => [9, 300],
        };
        let lengths = [1023, 1024, 1025, 0, 2047, 2048, 2049, 1, 3073];
        let (mut indptr, mut indices) = (vec![0], Vec::new());
        #[allow(clippy::needless_range_loop, reason = "only one pattern has lengths")]
        for row in 0..rows {
            let length = match self {
                Self::Ragged => random.below(20),
                Self::Empty if row % 7 == 3 => 9,
                Self::Hub if row == 70 => 100_000,
                Self::Hub => 335,
                Self::Wide => 130,
                Self::Cut => lengths[row],
                Self::Empty | Self::Nothing => 0,
            };
            indices.extend((0..length).map(|_| match self {
                Self::Hub if row != 70 => 30,
                Self::Empty => 1 + 5 * random.below(15) as u32,
                _ => random.below(cols) as u32,
            }));
            indptr.push(indices.len() as u32);
        }
        let weights = normals(indices.len(), 5);
        Csr { rows, cols, indptr, indices, weights }
    }
}

fn round<T: Element>(data: &[f64]) -> Vec<f64> {
    data.iter().map(|&x| T::of(x).wide_f64()).collect()
}

/// A problem, rounded to `T`.
pub struct Problem {
    /// The pattern with its original weights.
    pub csr: Csr,
    /// The pattern with all factors multiplied into the weights.
    pub effective: Csr,
    pub rows: Vec<f64>,
    pub cols: Vec<f64>,
    pub x: Vec<f64>,
    /// Dense rows with all but the selected elements set to zero.
    pub masked: Vec<f64>,
    pub selected: Vec<Vec<usize>>,
    pub upstream: Vec<f64>,
    pub width: usize,
    pub k: usize,
}

impl Problem {
    pub fn new<T: Element>(shape: PatternKind, sizes: [usize; 2], factors: Factors) -> Self {
        Self::of::<T>(&shape.csr(), sizes, factors)
    }

    /// A problem on a pattern with weights; rows have `width` elements and `k` selected ones.
    pub fn of<T: Element>(csr: &Csr, [width, k]: [usize; 2], factors: Factors) -> Self {
        let csr = rounded::<T>(csr);
        let single =
            |data: Vec<f64>| -> Vec<f64> { data.iter().map(|&x| f64::from(x as f32)).collect() };
        let rows = single(normals(csr.rows, 6));
        let cols = single(normals(csr.cols, 7));
        let x = round::<T>(&normals(csr.cols * width, 8));
        let upstream = round::<T>(&normals(csr.rows * width, 9));
        let one = 1.0;
        let weights = csr.entries().map(|(i, j, w)| {
            let w = if factors.weights() { w } else { one };
            let row = if factors.rows() { rows[i] } else { one };
            let col = if factors.cols() { cols[j] } else { one };
            row * w * col
        });
        let effective = Csr { weights: weights.collect(), ..csr.clone() };
        let options = sparsek_kernels::topk::TopkOptions::new(k);
        let selected: Vec<Vec<usize>> = x
            .chunks(width)
            .map(|row| {
                let row: Vec<T> = row.iter().map(|&x| T::of(x)).collect();
                select(&row, &options)
            })
            .collect();
        let mut masked = vec![0.0; x.len()];
        for (row, selected) in selected.iter().enumerate() {
            for at in selected.iter().map(|column| row * width + column) {
                masked[at] = x[at];
            }
        }
        Self { csr, effective, rows, cols, x, masked, selected, upstream, width, k }
    }

    pub fn scaling<T: Element>(
        &self,
        factors: Factors,
        weights: Tensor<1>,
        device: &Device,
    ) -> Scaling {
        let mut scaling = Scaling::default();
        if factors.weights() {
            scaling = scaling.with_weights(weights);
        }
        let sum = |data: &[f64]| match T::NAME {
            "f64" => vector::<f64>(data, device),
            _ => vector::<f32>(data, device),
        };
        if factors.rows() {
            scaling = scaling.with_rows(sum(&self.rows));
        }
        if factors.cols() {
            scaling = scaling.with_cols(sum(&self.cols));
        }
        scaling
    }

    pub fn gradient_of_selected(&self) -> Bounded {
        let dense = self.effective.grad_x(&self.upstream, self.width);
        let places = self.selected.iter().enumerate();
        let places: Vec<usize> = places
            .flat_map(|(row, selected)| {
                selected.iter().map(move |column| row * self.width + column)
            })
            .collect();
        Bounded {
            values: places.iter().map(|&at| dense.values[at]).collect(),
            magnitudes: places.iter().map(|&at| dense.magnitudes[at]).collect(),
            terms: places.iter().map(|&at| dense.terms[at]).collect(),
        }
    }

    pub fn gradient(&self) -> Bounded {
        let mut gradient = self.effective.grad_x(&self.upstream, self.width);
        for (row, selected) in self.selected.iter().enumerate() {
            for column in (0..self.width).filter(|column| !selected.contains(column)) {
                gradient.values[row * self.width + column] = 0.0;
                gradient.magnitudes[row * self.width + column] = 0.0;
            }
        }
        gradient
    }

    /// Gradient of the weights, including the other factors.
    pub fn gradient_of_weights(&self, factors: Factors) -> Bounded {
        let mut gradient = self.csr.grad_weights(&self.upstream, &self.masked, self.width);
        for (e, (i, j, _)) in self.csr.entries().enumerate() {
            let row = if factors.rows() { self.rows[i] } else { 1.0 };
            let col = if factors.cols() { self.cols[j] } else { 1.0 };
            gradient.values[e] *= row * col;
            gradient.magnitudes[e] *= (row * col).abs();
        }
        gradient
    }
}

fn epsilon<T: Element>() -> f64 {
    match T::NAME {
        "f64" => f64::EPSILON,
        "f16" => 2f64.powi(-10),
        "bf16" => 2f64.powi(-7),
        _ => f64::from(f32::EPSILON),
    }
}

/// Compares with sums in f32 or f64, rounded to `T`.
pub fn compare<T: Element, const D: usize>(
    what: &str,
    found: Tensor<D>,
    expected: &Bounded,
) -> Result<(), String> {
    let found: Vec<f64> = found.into_data().iter::<f64>().collect();
    let sums = f64::from(f32::EPSILON).min(epsilon::<T>());
    if found.len() != expected.values.len() {
        return Err(format!(
            "{what}: {} elements instead of {}",
            found.len(),
            expected.values.len()
        ));
    }
    for (at, (&found, &value)) in found.iter().zip(&expected.values).enumerate() {
        let terms = (expected.terms[at] + 4) as f64 * sums * expected.magnitudes[at];
        let bound = terms
            + epsilon::<T>() * (value.abs() + terms)
            + if T::NAME == "f16" { 1e-7 } else { 0.0 };
        let off = (found - value).abs();
        if off.is_nan() || off > bound {
            return Err(format!(
                "{what}: element {at} is {found} instead of {value}, off by more than {bound:e}"
            ));
        }
    }
    Ok(())
}

/// Uploads a matrix. (`reshape` would treat 0 rows as "keep".)
pub fn upload<T: Element>(data: &[f64], shape: [usize; 2], device: &Device) -> Tensor<2> {
    let data: Vec<T> = data.iter().map(|&x| T::of(x)).collect();
    Tensor::from_data(TensorData::new(data, shape), (device, T::dtype()))
}

/// Result on tensors, and the gradient of the dense rows.
pub fn product_and_gradient(
    backend: &Backend,
    problem: &Problem,
    factors: Factors,
) -> Result<[Tensor<2>; 2], String> {
    let device = backend.device.clone().autodiff();
    let [rows, cols] = [problem.csr.rows, problem.csr.cols];
    let adjacency = Adjacency::new(&pattern(&problem.csr), &device);
    let x = upload::<f32>(&problem.x, [cols, problem.width], &device).require_grad();
    let upstream = upload::<f32>(&problem.upstream, [rows, problem.width], &device);
    let weights = vector::<f32>(&problem.csr.weights, &device);
    let scaling = problem.scaling::<f32>(factors, weights, &device);
    let compressed = sparse_topk(x.clone(), problem.k, Method::Exact);
    let y = spmm_compressed_with(&adjacency, &compressed, &scaling);
    let gradients = (y.clone() * upstream).backward();
    Ok([y, x.grad(&gradients).ok_or("no gradient")?])
}
