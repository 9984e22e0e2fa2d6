use burn::{
    module::Param,
    nn::{Dropout, Initializer},
    tensor::{Device, Tensor},
};
use sparsek::{dense::add_bias, sparse::MessagePassing};

use super::dropout::drop_elements;
use crate::graph::Graph;

pub(super) fn head_vectors(heads: usize, width: usize, device: &Device) -> Param<Tensor<2>> {
    let glorot = Initializer::XavierUniform { gain: 1.0 };
    glorot.init_with([heads, width], Some(heads), Some(width), device)
}

/// `x[n, h] · vectors[h]`.
pub(super) fn head_products(x: Tensor<3>, vectors: &Param<Tensor<2>>) -> Tensor<2> {
    let [rows, heads, _] = x.dims();
    (x * vectors.val().unsqueeze()).sum_dim(2).reshape([rows, heads])
}

pub(super) fn split_heads(x: Tensor<2>, heads: usize) -> Tensor<3> {
    let [rows, width] = x.dims();
    x.reshape([rows, heads, width / heads])
}

pub(super) fn looped(graph: &Graph, self_loops: bool) -> Graph {
    match self_loops {
        true => graph.with_self_loops(),
        false => graph.clone(),
    }
}

pub(super) fn looped_features(graph: &Graph, self_loops: bool, features: Tensor<2>) -> Tensor<2> {
    match self_loops {
        true => graph.looped_features(features),
        false => features,
    }
}

pub(super) fn check_no_loops(layer: &str, self_loops: bool) {
    assert!(!self_loops, "{layer}: edges between two sets of nodes need `self_loops` off");
}

pub(super) fn edge_layer<'a, L>(layer: &str, edge: &'a Option<L>) -> &'a L {
    let Some(edge) = edge else { panic!("{layer}: edge features need a d_edge") };
    edge
}

/// Softmax per target, dropout, weighted sums of x and `messages`, bias.
pub(super) fn attend(
    edges: &MessagePassing,
    scores: Tensor<2>,
    dropout: &Dropout,
    x: Tensor<3>,
    messages: Option<Tensor<3>>,
    concat: bool,
    bias: Option<&Param<Tensor<1>>>,
) -> Tensor<2> {
    let weights = drop_elements(dropout, edges.edge_softmax(scores));
    let mut y = edges.propagate(weights.clone(), x);
    let [rows, heads, width] = y.dims();
    if let Some(messages) = messages {
        let nnz = messages.dims()[0];
        let weighted = messages * weights.unsqueeze_dim(2);
        let sums = edges.scatter_sum(weighted.reshape([nnz, heads * width]));
        y = y + sums.reshape([rows, heads, width]);
    }
    let y: Tensor<2> = match concat {
        true => y.reshape([rows, heads * width]),
        false => y.mean_dim(1).reshape([rows, width]),
    };
    match bias {
        Some(bias) => add_bias(y, bias.val()),
        None => y,
    }
}
