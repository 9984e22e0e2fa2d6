//! Interface between models and trainer.
use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor},
};

use super::error::ModelError;
use crate::graph::Graph;

/// Scores classes of nodes.
pub trait NodeModel: Module {
    /// Logits: [nodes, features] → [nodes, classes].
    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2>;

    /// Embeddings of nodes, the input of the last layer: [nodes, features] → [nodes, width].
    /// Default: the logits.
    fn embed(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        self.forward(graph, x)
    }
}

/// Builds a [`NodeModel`]; stored with it.
pub trait NodeModelConfig: Config + Clone + PartialEq {
    /// Model built.
    type Model: NodeModel;

    /// Checks sizes without building; errors when impossible, such as k above the width.
    fn validate(&self) -> Result<(), ModelError>;

    /// Builds random parameters; errors as [`NodeModelConfig::validate`].
    fn init(&self, device: &Device) -> Result<Self::Model, ModelError>;

    /// Input features.
    fn input_width(&self) -> usize;

    /// Number of classes.
    fn classes(&self) -> usize;

    /// Least bytes of training on `nodes` nodes, without data. Default: 0, unknown.
    ///
    /// Refused above the [`sparsek::io::memory`] limit, before allocation.
    fn training_bytes(&self, nodes: usize) -> u128 {
        let _ = nodes;
        0
    }
}
