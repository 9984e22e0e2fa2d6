use burn::tensor::Tensor;

use crate::graph::GraphBatch;

/// What a pooling layer keeps of a batch: ⌈ratio n⌉ of the n nodes of each graph.
#[derive(Clone, Debug)]
pub struct Pooled {
    /// Features times score, [kept, width].
    pub x: Tensor<2>,
    /// The kept nodes and the edges between them; has all graphs.
    pub batch: GraphBatch,
    /// Nodes of the unpooled batch in the rows of `x`: graph by graph, the best first. PyG's
    /// `perm`.
    pub nodes: Vec<u32>,
    /// Score of each, `[kept]`.
    pub scores: Tensor<1>,
}
