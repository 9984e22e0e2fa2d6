//! Differentiable sparse-dense products.
//!
//! x and y are [nodes, width], weights `[edges]` in CSR order ([`Graph::pattern`]); panics
//! otherwise. Gradients reach weights, x and kept values of compressed rows, which stay sparse.
//! Nodes without incoming edges get 0.

use burn::tensor::Tensor;
use sparsek::sparse::{
    Compressed, Scaling, spmm, spmm_compressed_with, spmm_max, spmm_weighted, spmm_with,
};

use crate::graph::{Graph, Norm};

/// Sum: `y[i] = Σ_{j→i} x[j]`.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::aggregate::aggregate_sum};
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

/// Mean: [`aggregate_sum`] / in-degree.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::aggregate::aggregate_mean};
///
/// let graph = Graph::from_edges(3, [(0, 2), (1, 2)]).unwrap();
/// let x = Tensor::<2>::from_floats([[1.0], [2.0], [4.0]], &Device::flex());
/// let y = aggregate_mean(&graph, x).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [0.0, 0.0, 1.5]);
/// # }
/// ```
pub fn aggregate_mean(graph: &Graph, x: Tensor<2>) -> Tensor<2> {
    let mean = graph.mean_scaling(&x.device(), x.dtype());
    spmm_with(&graph.adjacency(&x.device()), x, &mean)
}

/// `y[i] = Σ_{e: j→i} w[e] x[j]`.
pub fn aggregate_weighted(graph: &Graph, weights: Tensor<1>, x: Tensor<2>) -> Tensor<2> {
    spmm_weighted(&graph.adjacency(&x.device()), weights, x)
}

/// `y[i] = max_{j→i} x[j]`. The first tie in CSR order gets the gradient.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::aggregate::aggregate_max};
///
/// let graph = Graph::from_edges(3, [(0, 2), (1, 2)]).unwrap();
/// let x = Tensor::<2>::from_floats([[-1.0], [-2.0], [4.0]], &Device::flex());
/// let y = aggregate_max(&graph, x).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [0.0, 0.0, -1.0]);
/// # }
/// ```
pub fn aggregate_max(graph: &Graph, x: Tensor<2>) -> Tensor<2> {
    spmm_max(&graph.adjacency(&x.device()), x)
}

/// `y[i] = Σ_{e: j→i} w[e] c(i,j) x[j]`, with [`Norm`] c; loops weigh `loops`, others 1.
pub fn aggregate_normalized(graph: &Graph, norm: Norm, loops: f64, x: Tensor<2>) -> Tensor<2> {
    let scaling = graph.scaling(&x.device(), x.dtype(), norm, loops);
    spmm_with(&graph.adjacency(&x.device()), x, &scaling)
}

/// Compressed [`aggregate_sum`].
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek::{sparse::sparse_topk, topk::Method};
/// use sparsek_gnn::{Graph, nn::aggregate::aggregate_sum_compressed};
///
/// let graph = Graph::from_edges(3, [(0, 2), (1, 2)]).unwrap();
/// let x = Tensor::<2>::from_floats([[1.0, 0.5], [2.0, 3.0], [4.0, 5.0]], &Device::flex());
/// let kept = sparse_topk(x, 1, Method::Exact);
/// let y = aggregate_sum_compressed(&graph, &kept).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [0.0, 0.0, 0.0, 0.0, 1.0, 3.0]);
/// # }
/// ```
pub fn aggregate_sum_compressed(graph: &Graph, x: &Compressed) -> Tensor<2> {
    compressed(graph, x, &Scaling::default())
}

/// Compressed [`aggregate_mean`].
pub fn aggregate_mean_compressed(graph: &Graph, x: &Compressed) -> Tensor<2> {
    let mean = graph.mean_scaling(&x.values().device(), x.dtype());
    compressed(graph, x, &mean)
}

/// Compressed [`aggregate_normalized`].
pub fn aggregate_normalized_compressed(
    graph: &Graph,
    norm: Norm,
    loops: f64,
    x: &Compressed,
) -> Tensor<2> {
    let scaling = graph.scaling(&x.values().device(), x.dtype(), norm, loops);
    compressed(graph, x, &scaling)
}

fn compressed(graph: &Graph, x: &Compressed, scaling: &Scaling) -> Tensor<2> {
    spmm_compressed_with(&graph.adjacency(&x.values().device()), x, scaling)
}

/// Weighted [`aggregate_normalized`], with gradients through the norm.
pub fn aggregate_weighted_normalized(
    graph: &Graph,
    norm: Norm,
    weights: Tensor<1>,
    x: Tensor<2>,
) -> Tensor<2> {
    let [source, target] = weighted_norm(graph, norm, &weights);
    let x = source.into_iter().fold(x, |x, factor| x * factor);
    let y = aggregate_weighted(graph, weights, x);
    target.into_iter().fold(y, |y, factor| y * factor)
}

/// Compressed [`aggregate_weighted_normalized`].
pub fn aggregate_weighted_normalized_compressed(
    graph: &Graph,
    norm: Norm,
    weights: Tensor<1>,
    x: &Compressed,
) -> Tensor<2> {
    let [source, target] = weighted_norm(graph, norm, &weights);
    let x = source.into_iter().fold(x.clone(), |x, factor| x.map(|values| values * factor));
    let y = compressed(graph, &x, &Scaling::default().with_weights(weights));
    target.into_iter().fold(y, |y, factor| y * factor)
}

fn weighted_norm(graph: &Graph, norm: Norm, weights: &Tensor<1>) -> [Option<Tensor<2>>; 2] {
    let device = weights.device();
    let ones = || Tensor::<2>::ones([graph.nodes(), 1], (&device, weights.dtype()));
    let into = || spmm_weighted(&graph.adjacency(&device), weights.clone(), ones());
    let out = || {
        let each = weights.clone().reshape([graph.edges(), 1]);
        spmm(&graph.outgoing(&device), each)
    };
    match norm {
        Norm::Both => {
            let factor = power(into(), -0.5);
            [Some(factor.clone()), Some(factor)]
        }
        Norm::Left => [Some(power(out(), -1.0)), None],
        Norm::Right => [None, Some(power(into(), -1.0))],
        Norm::None => [None, None],
    }
}

/// 0, as its gradient, where infinite.
fn power(x: Tensor<2>, exponent: f64) -> Tensor<2> {
    let zero = x.clone().equal_elem(0.0);
    let finite = x.mask_fill(zero.clone(), 1.0);
    finite.powf_scalar(exponent).mask_fill(zero, 0.0)
}
