use burn::{module::Module, tensor::Tensor};
use sparsek::sparse::Compressed;

use super::{gat::GatConv, gcn::GcnConv, gin::GinConv, sage::SageConv};
use crate::graph::Graph;

#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "one for each layer")]
pub(super) enum Convolution {
    Sage(SageConv),
    Gcn(GcnConv),
    Gin(GinConv),
    Gat(GatConv),
}

impl Convolution {
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Sage(conv) => conv.forward(graph, x),
            Self::Gcn(conv) => conv.forward(graph, x),
            Self::Gin(conv) => conv.forward(graph, x),
            Self::Gat(conv) => conv.forward(graph, x),
        }
    }

    pub fn forward_compressed(&self, graph: &Graph, x: &Compressed) -> Tensor<2> {
        match self {
            Self::Sage(conv) => conv.forward_compressed(graph, x),
            Self::Gcn(conv) => conv.forward_compressed(graph, x),
            Self::Gin(conv) => conv.forward_compressed(graph, x),
            Self::Gat(conv) => conv.forward(graph, x.to_dense()),
        }
    }
}
