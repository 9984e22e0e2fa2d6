use burn::{config::Config, tensor::Tensor};
use sparsek::sparse::{spmm, spmm_max, spmm_with};

use crate::graph::BipartiteGraph;

/// Neighbor reduction; 0 without edges.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Aggregator {
    /// Mean.
    Mean,
    /// Sum.
    Sum,
    /// Maximum, as [`aggregate_max`](super::aggregate::aggregate_max).
    Max,
    /// Minimum, ties likewise.
    Min,
}

impl Aggregator {
    /// [sources, width] → [targets, width], differentiable.
    ///
    /// ```
    /// # #[cfg(feature = "flex")] {
    /// use burn::tensor::{Device, Tensor};
    /// use sparsek_gnn::{graph::BipartiteGraph, nn::Aggregator};
    ///
    /// let edges = BipartiteGraph::from_edges(3, 2, [(0, 1), (2, 1)]).unwrap();
    /// let x = Tensor::<2>::from_floats([[1.0], [2.0], [4.0]], &Device::flex());
    /// let y = Aggregator::Min.forward(&edges, x).try_into_vec_as::<f32>().unwrap();
    /// assert_eq!(y, [0.0, 1.0]);
    /// # }
    /// ```
    pub fn forward(&self, edges: &BipartiteGraph, x: Tensor<2>) -> Tensor<2> {
        let (device, dtype) = (x.device(), x.dtype());
        let adjacency = edges.adjacency(&device);
        match self {
            Self::Mean => spmm_with(&adjacency, x, &edges.mean_scaling(&device, dtype)),
            Self::Sum => spmm(&adjacency, x),
            Self::Max => spmm_max(&adjacency, x),
            Self::Min => spmm_max(&adjacency, x.neg()).neg(),
        }
    }
}
