//! The interface between models and the trainer.
use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor},
};

use super::error::ModelError;
use crate::graph::Graph;

/// A model that scores classes per node.
pub trait NodeModel: Module {
    /// Computes scores (logits). Shapes: x is [nodes, features], the result [nodes, classes].
    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2>;
}

/// Configuration that builds a [`NodeModel`]; stored beside its parameters.
pub trait NodeModelConfig: Config + Clone + PartialEq {
    /// The model that is built.
    type Model: NodeModel;

    /// Checks the sizes without building anything.
    ///
    /// # Errors
    /// [`ModelError`] for an impossible model, such as k above the width.
    fn validate(&self) -> Result<(), ModelError>;

    /// Builds the model on the device with random parameters.
    ///
    /// # Errors
    /// As [`NodeModelConfig::validate`].
    fn init(&self, device: &Device) -> Result<Self::Model, ModelError>;

    /// Number of input features.
    fn input_width(&self) -> usize;

    /// Number of classes.
    fn classes(&self) -> usize;

    /// Least bytes of training on a whole graph of `nodes` nodes, without its data.
    ///
    /// More than the limit of [`sparsek::io::memory`] is refused before anything is allocated.
    /// Default: 0, unknown.
    fn training_bytes(&self, nodes: usize) -> u128 {
        let _ = nodes;
        0
    }
}
