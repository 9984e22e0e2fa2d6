//! Products of tensors, with and without gradient: on every backend.

use burn::tensor::{Device, Tensor, TensorData};
use sparsek::{
    sparse::{Adjacency, Pattern, sparse_topk, spmm, spmm_compressed},
    topk::Method as Selection,
};

use super::{
    check::Checked,
    operands::{FEATURES, UPSTREAM, number},
};
use crate::timing::Ready;

#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Compression of dense rows to k elements.
    Compress(usize),
    /// Product with dense rows.
    Dense,
    /// Product with rows of k elements.
    Forward(usize),
    /// This product and its gradient.
    Training(usize),
}

impl Operation {
    pub fn name(self) -> String {
        match self {
            Self::Compress(k) => format!("compress/k={k}"),
            Self::Dense => "dense".into(),
            Self::Forward(k) => format!("forward/k={k}"),
            Self::Training(k) => format!("training/k={k}"),
        }
    }

    /// Compulsory traffic in bytes: each operand read or written once. Columns have a byte.
    pub fn bytes(self, nodes: usize, edges: usize, width: usize) -> usize {
        let (pattern, dense) = (4 * (edges + nodes), 4 * nodes * width);
        let kept = |k| 5 * nodes * k;
        match self {
            Self::Compress(k) => dense + kept(k),
            Self::Dense => pattern + 2 * dense,
            Self::Forward(k) => pattern + kept(k) + dense,
            Self::Training(k) => 2 * (pattern + kept(k) + dense),
        }
    }
}

/// Runs and checks an operation on a symmetric graph and rows of `width` numbers.
pub fn ready(
    device: &Device,
    graph: &Pattern,
    width: usize,
    operation: Operation,
) -> anyhow::Result<Ready<'static>> {
    let numbers = |seed, device: &Device| {
        let shape = [graph.rows(), width];
        let numbers: Vec<f32> =
            (0..graph.rows() * width).map(|place| number(place, seed)).collect();
        Tensor::<2>::from_data(TensorData::new(numbers, shape), device)
    };
    let checked = Checked::new(graph, graph, width);
    let x = numbers(FEATURES, device);
    let adjacency = Adjacency::new(graph, device);
    match operation {
        Operation::Compress(k) => {
            let run = move || sparse_topk(x.clone(), k, Selection::Exact);
            Ready::tensors(device, run, |kept| checked.compressed(rows(kept.values()), k))
        }
        Operation::Dense => {
            let run = move || spmm(&adjacency, x.clone());
            Ready::tensors(device, run, |y| checked.forward(rows(&y), width))
        }
        Operation::Forward(k) => {
            let kept = sparse_topk(x, k, Selection::Exact);
            let run = move || spmm_compressed(&adjacency, &kept);
            Ready::tensors(device, run, |y| checked.forward(rows(&y), k))
        }
        Operation::Training(k) => {
            let tracking = device.clone().autodiff();
            let kept = sparse_topk(numbers(FEATURES, &tracking), k, Selection::Exact);
            let upstream = numbers(UPSTREAM, &tracking);
            let run = move || {
                let kept = kept.clone().map(Tensor::require_grad);
                let y = spmm_compressed(&adjacency, &kept);
                let gradients = (y * upstream.clone()).sum().backward();
                kept.values().grad(&gradients).expect("the values are tracked")
            };
            Ready::tensors(device, run, |gradient| checked.backward(rows(&gradient), k))
        }
    }
}

fn rows(matrix: &Tensor<2>) -> impl Fn(usize) -> anyhow::Result<Vec<f32>> + use<> {
    let [_, width] = matrix.dims();
    let all: Vec<f32> = matrix.to_data().iter().collect();
    move |row| Ok(all[row * width..][..width].to_vec())
}
