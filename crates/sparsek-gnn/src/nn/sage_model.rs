//! The SAGE model of the MaxK-GNN paper.
use burn::{
    config::Config,
    module::Module,
    nn::{Dropout, DropoutConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig},
    tensor::{Device, Tensor},
};

use super::{Activation, ModelError, SageConv, SageConvConfig};
use crate::{
    Graph,
    train::{NodeModel, NodeModelConfig},
};

/// Configuration of a [`SageModel`].
#[derive(Config, Debug, PartialEq)]
pub struct SageModelConfig {
    /// Width of the node features.
    pub d_input: usize,
    /// Width of the hidden rows.
    pub d_hidden: usize,
    /// Number of classes.
    pub d_output: usize,
    /// SAGE layers.
    #[config(default = 3)]
    pub layers: usize,
    /// The nonlinearity before each layer.
    #[config(default = "Activation::Relu")]
    pub activation: Activation,
    /// Probability of dropping an element before each layer.
    #[config(default = 0.5)]
    pub dropout: f64,
}

/// SAGE with MaxK or ReLU: lin_in → layers × [activation → dropout → SAGE → LayerNorm] → lin_out.
///
/// Peng et al., *MaxK-GNN*, ASPLOS 2024, as in the authors' release; dropout follows the selection, so that it thins
/// the kept values.
#[derive(Module, Debug)]
pub struct SageModel {
    lin_in: Linear,
    layers: Vec<SageBlock>,
    lin_out: Linear,
    #[module(skip)]
    activation: Activation,
}

#[derive(Module, Debug)]
struct SageBlock {
    dropout: Dropout,
    conv: SageConv,
    norm: LayerNorm,
}

impl NodeModelConfig for SageModelConfig {
    type Model = SageModel;

    fn validate(&self) -> Result<(), ModelError> {
        let sizes = [
            ("d_input", self.d_input),
            ("d_hidden", self.d_hidden),
            ("d_output", self.d_output),
        ];
        for (name, size) in sizes.into_iter().chain([("layers", self.layers)]) {
            if size == 0 {
                return Err(ModelError::Zero { name });
            }
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(ModelError::Dropout {
                dropout: self.dropout,
            });
        }
        self.activation.validate(self.d_hidden)
    }

    fn init(&self, device: &Device) -> Result<SageModel, ModelError> {
        self.validate()?;
        let block = |_| SageBlock {
            dropout: DropoutConfig::new(self.dropout).init(),
            conv: SageConvConfig::new(self.d_hidden, self.d_hidden).init(device),
            norm: LayerNormConfig::new(self.d_hidden).init(device),
        };
        Ok(SageModel {
            lin_in: LinearConfig::new(self.d_input, self.d_hidden).init(device),
            layers: (0..self.layers).map(block).collect(),
            lin_out: LinearConfig::new(self.d_hidden, self.d_output).init(device),
            activation: self.activation,
        })
    }

    fn input_width(&self) -> usize {
        self.d_input
    }

    fn classes(&self) -> usize {
        self.d_output
    }
}

impl NodeModel for SageModel {
    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let mut h = self.lin_in.forward(x);
        for block in &self.layers {
            h = block.dropout.forward(self.activation.forward(h));
            h = block.norm.forward(block.conv.forward(graph, h));
        }
        self.lin_out.forward(h)
    }
}
