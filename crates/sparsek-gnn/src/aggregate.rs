//! Aggregation of neighbours' features: one sparse-dense product each, differentiable.
use burn::tensor::Tensor;
use sparsek::sparse::{spmm, spmm_weighted};

use crate::Graph;

/// Sum over the nodes that each node aggregates from: `y[i] = Σ_{j ∈ N(i)} x[j]`.
///
/// Shapes: x and y are [nodes, width]. A node without incoming edges gets zeros. Differentiable in x.
///
/// # Panics
/// When x does not have a row for every node.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, aggregate::aggregate_sum};
///
/// let graph = Graph::from_edges(3, [(0, 2), (1, 2)]).unwrap();
/// let x = Tensor::<2>::from_floats([[1.0], [2.0], [4.0]], &Device::flex());
/// let y = aggregate_sum(&graph, x).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [0.0, 0.0, 3.0]);
/// # }
/// ```
pub fn aggregate_sum(graph: &Graph, x: Tensor<2>) -> Tensor<2> {
    spmm(&graph.adjacency(&x.device()), x)
}

/// Mean over the nodes that each node aggregates from: `y[i] = 1/|N(i)| Σ_{j ∈ N(i)} x[j]`.
///
/// Shapes: x and y are [nodes, width]. A node without incoming edges gets zeros. Differentiable in x.
///
/// # Panics
/// When x does not have a row for every node.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, aggregate::aggregate_mean};
///
/// let graph = Graph::from_edges(3, [(0, 2), (1, 2)]).unwrap();
/// let x = Tensor::<2>::from_floats([[1.0], [2.0], [4.0]], &Device::flex());
/// let y = aggregate_mean(&graph, x).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [0.0, 0.0, 1.5]);
/// # }
/// ```
pub fn aggregate_mean(graph: &Graph, x: Tensor<2>) -> Tensor<2> {
    let norm = graph.mean_norm_on(&x.device()).cast(x.dtype());
    aggregate_sum(graph, x) * norm
}

/// Weighted sum over incoming edges: `y[i] = Σ_{e = (j → i)} w[e] x[j]`.
///
/// Shapes: weights is `[edges]` in CSR order ([`Graph::pattern`]), x and y are `[nodes, width]`. Differentiable in both.
///
/// # Panics
/// When x does not have a row for every node, or weights an element for every edge.
pub fn aggregate_weighted(graph: &Graph, weights: Tensor<1>, x: Tensor<2>) -> Tensor<2> {
    spmm_weighted(&graph.adjacency(&x.device()), weights, x)
}
