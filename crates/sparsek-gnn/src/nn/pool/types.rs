use burn::tensor::Tensor;

use crate::graph::GraphBatch;

/// Pooled batch.
#[derive(Clone, Debug)]
pub struct Pooled {
    /// Features × score, [kept, width].
    pub x: Tensor<2>,
    /// Kept nodes, edges between them.
    pub batch: GraphBatch,
    /// Original nodes, best first per graph: PyG's `perm`.
    pub nodes: Vec<u32>,
    /// Scores, `[kept]`.
    pub scores: Tensor<1>,
}
