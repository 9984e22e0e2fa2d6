//! Layers against numbers of PyG, from a file of `tests/pyg`.

use std::sync::LazyLock;

use burn::{
    module::Module,
    tensor::{DType, Device, Tensor},
};
use serde_json::Value;
use sparsek_gnn::Graph;
use sparsek_tests::{
    backend::{Backend, Kind},
    runner::Cases,
};

use super::subject::{Pass, fill, same};

pub type File = LazyLock<Value>;

pub type Forward<M> = fn(&M, &Graph, Tensor<2>, Tensor<1>) -> Tensor<2>;

pub fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("the file is JSON")
}

/// Adds the cases of a file.
pub struct Fixture<'a> {
    cases: &'a mut Cases,
    backend: &'a Backend,
    file: &'static File,
    folder: &'static str,
    names: Vec<&'static str>,
}

impl<'a> Fixture<'a> {
    /// Cases are named `tensor/gnn/folder/name`.
    pub fn new(
        cases: &'a mut Cases,
        backend: &'a Backend,
        file: &'static File,
        folder: &'static str,
    ) -> Self {
        Self { cases, backend, file, folder, names: Vec::new() }
    }

    /// Adds the case that every one of the file was added, in order.
    pub fn finish(self) {
        let Self { cases, backend, file, folder, names: tested } = self;
        cases.check(backend, format!("tensor/gnn/{folder}/all"), move |_| {
            let cases = file["cases"].as_array().expect("a list").iter();
            let names: Vec<&str> = cases.filter_map(|case| case["name"].as_str()).collect();
            match names == tested {
                true => Ok(()),
                false => Err(format!("the file has {names:?}, the suite {tested:?}")),
            }
        });
    }

    pub fn add<M: Module + 'static>(
        &mut self,
        name: &'static str,
        make: fn(&Device) -> M,
        forward: Forward<M>,
    ) {
        self.names.push(name);
        let file = self.file;
        let body = move |backend: &Backend| check(backend, file, name, make, forward);
        self.cases.check_shared(self.backend, format!("tensor/gnn/{}/{name}", self.folder), body);
    }
}

pub fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list").iter();
    list.map(|number| number.as_f64().expect("a number")).collect()
}

pub fn lists(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().expect("a list").iter().map(numbers).collect()
}

/// Features of edges, two each, as `featured` of layers.py.
pub fn featured(weights: Tensor<1>) -> Tensor<2> {
    Tensor::stack(vec![weights.clone(), weights.square() - 1.0], 1)
}

/// Outputs and gradients are PyG's in f64, rounded to f32.
fn check<M: Module>(
    backend: &Backend,
    file: &Value,
    name: &str,
    make: fn(&Device) -> M,
    forward: Forward<M>,
) -> Result<(), String> {
    let mut cases = file["cases"].as_array().expect("a list").iter();
    let case = cases.find(|case| case["name"] == name).ok_or("the file has no such case")?;
    let nodes = file["nodes"].as_u64().expect("a number") as usize;
    let edges = lists(&file["edges"]).into_iter().map(|pair| (pair[0] as u32, pair[1] as u32));
    let graph = Graph::from_edges(nodes, edges).map_err(|error| error.to_string())?;
    // Devices may round products to tf32.
    let (dtype, precision) = match backend.kind {
        Kind::Flex => (DType::F64, 1e-6),
        _ => (DType::F32, 2f64.powi(-9)),
    };
    let parameters = lists(&case["parameters"]);
    let mut given = parameters.iter();
    let mut wrong = None;
    let mut next = |count| match given.next() {
        Some(values) if values.len() == count => values.clone(),
        other => {
            wrong = Some(format!("a parameter of {count} elements, but PyG has {other:?}"));
            vec![0.0; count]
        }
    };
    let layer = make(&backend.device.clone().autodiff());
    let (layer, found) = fill(layer, dtype, &mut next);
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    if found.len() < parameters.len() {
        return Err(format!("{} parameters, but PyG has {}", found.len(), parameters.len()));
    }
    let [x, weights, upstream] = ["x", "weights", "upstream"].map(|name| numbers(&case[name]));
    let pass = Pass { graph: &graph, x: &x, weights: &weights, upstream: &upstream, dtype };
    let (y, slopes) = pass.run(backend, &layer, forward)?;
    let bound =
        |values: &[f64]| precision * values.iter().fold(1.0, |most: f64, v| most.max(v.abs()));
    let expected = numbers(&case["y"]);
    same("y", &y, &expected, bound(&expected))?;
    let mut expected = [numbers(&case["dx"]), numbers(&case["dweights"])].concat();
    expected.extend(lists(&case["dparameters"]).concat());
    same("slopes", &slopes, &expected, bound(&expected))
}
