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

    /// Last layer's input: [nodes, features] → [nodes, width]. Default: logits.
    fn embed(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        self.forward(graph, x)
    }
}

/// Builds a [`NodeModel`].
pub trait NodeModelConfig: Config + Clone + PartialEq {
    /// Model built.
    type Model: NodeModel;

    /// Errors for impossible sizes; builds nothing.
    fn validate(&self) -> Result<(), ModelError>;

    /// Builds random parameters; errors as [`NodeModelConfig::validate`].
    fn init(&self, device: &Device) -> Result<Self::Model, ModelError>;

    /// Input features.
    fn input_width(&self) -> usize;

    /// Classes.
    fn classes(&self) -> usize;

    /// Whether a captured step may repeat the model: only this crate's layers draw random numbers,
    /// its state is parameters with own buffers, and `forward`, after its first calls, neither
    /// uploads nor reads. Default: no.
    fn can_capture(&self) -> bool {
        false
    }

    /// Minimum training bytes without data, checked against the [`sparsek::io::memory`] limit; 0 if
    /// unknown.
    fn training_bytes(&self, nodes: usize) -> u128 {
        let _ = nodes;
        0
    }
}
