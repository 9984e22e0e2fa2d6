use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor},
};

use super::{
    error::ModelError,
    pool::{global_max_pool, global_mean_pool, global_sum_pool},
};
use crate::graph::GraphBatch;

/// Scores classes of graphs.
pub trait GraphModel: Module {
    /// Logits: [nodes, features] → [graphs, classes].
    fn forward(&self, batch: &GraphBatch, x: Tensor<2>) -> Tensor<2>;
}

/// Builds a [`GraphModel`].
pub trait GraphModelConfig: Config + Clone + PartialEq {
    /// Model built.
    type Model: GraphModel;

    /// Errors for impossible sizes; builds nothing.
    fn validate(&self) -> Result<(), ModelError>;

    /// Builds random parameters; errors as [`GraphModelConfig::validate`].
    fn init(&self, device: &Device) -> Result<Self::Model, ModelError>;

    /// Input features.
    fn input_width(&self) -> usize;

    /// Classes.
    fn classes(&self) -> usize;
}

/// Pooling of a graph's nodes.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Readout {
    /// [`global_sum_pool`].
    Sum,
    /// [`global_mean_pool`].
    Mean,
    /// [`global_max_pool`].
    Max,
}

impl Readout {
    /// [nodes, width] → [graphs, width].
    pub fn forward(self, batch: &GraphBatch, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Sum => global_sum_pool(batch, x),
            Self::Mean => global_mean_pool(batch, x),
            Self::Max => global_max_pool(batch, x),
        }
    }
}
