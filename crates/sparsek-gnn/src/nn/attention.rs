//! What attention layers share: weighting edges and joining heads.
use burn::{
    module::Param,
    nn::{Dropout, Initializer},
    tensor::{Device, Tensor},
};
use sparsek::sparse::MessagePassing;

use super::dropout::drop_elements;
use crate::graph::Graph;

/// PyG's Glorot-uniform `[heads, width]`.
pub(super) fn head_vectors(heads: usize, width: usize, device: &Device) -> Param<Tensor<2>> {
    let glorot = Initializer::XavierUniform { gain: 1.0 };
    glorot.init_with([heads, width], Some(heads), Some(width), device)
}

/// `x[n, h] · vectors[h]`: `[n, heads, d]` → `[n, heads]`.
pub(super) fn head_products(x: Tensor<3>, vectors: &Param<Tensor<2>>) -> Tensor<2> {
    let [rows, heads, _] = x.dims();
    (x * vectors.val().unsqueeze()).sum_dim(2).reshape([rows, heads])
}

/// `[n, heads * d]` → `[n, heads, d]`.
pub(super) fn split_heads(x: Tensor<2>, heads: usize) -> Tensor<3> {
    let [rows, width] = x.dims();
    x.reshape([rows, heads, width / heads])
}

/// The graph with one self-loop per node, if asked for.
pub(super) fn looped(graph: &Graph, self_loops: bool) -> Graph {
    match self_loops {
        true => graph.with_self_loops(),
        false => graph.clone(),
    }
}

/// Softmax over the edges into a node, dropped edges, weighted sums, heads side by side or their
/// mean, and the bias.
pub(super) fn attend(
    edges: &MessagePassing,
    scores: Tensor<2>,
    dropout: &Dropout,
    x: Tensor<3>,
    concat: bool,
    bias: Option<&Param<Tensor<1>>>,
) -> Tensor<2> {
    let weights = drop_elements(dropout, edges.edge_softmax(scores));
    let y = edges.propagate(weights, x);
    let [rows, heads, width] = y.dims();
    let y: Tensor<2> = match concat {
        true => y.reshape([rows, heads * width]),
        false => y.mean_dim(1).reshape([rows, width]),
    };
    match bias {
        Some(bias) => y + bias.val().unsqueeze(),
        None => y,
    }
}
