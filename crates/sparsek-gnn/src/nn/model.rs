use burn::{
    config::Config,
    module::Module,
    nn::{Dropout, DropoutConfig, LayerNorm, Linear, LinearConfig},
    tensor::{Device, Tensor, activation::relu},
};
use sparsek::{io::memory, nn::MaxKConfig};

use super::{
    activation::Activation,
    convolution::Convolution,
    dense::{layer_norm, linear, new_layer_norm},
    dropout::drop_elements,
    error::ModelError,
    gcn::GcnConvConfig,
    gin::GinConvConfig,
    node_model::{NodeModel, NodeModelConfig},
    sage::SageConvConfig,
    sizes::{linear_len, state_bytes},
};
use crate::graph::Graph;

/// Convolution of [`MaxKModel`].
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// GraphSAGE, mean.
    Sage,
    /// GCN, both degrees.
    Gcn,
    /// GIN, trained eps, no network.
    Gin,
}

/// Input after MaxK; results agree up to rounding.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// Kept elements only.
    Compressed,
    /// Rows with zeros.
    Masked,
}

/// Configures [`MaxKModel`].
#[derive(Config, Debug, PartialEq)]
pub struct MaxKModelConfig {
    /// Convolution.
    pub architecture: Architecture,
    /// Features per node.
    pub d_input: usize,
    /// Hidden width.
    pub d_hidden: usize,
    /// Classes.
    pub d_output: usize,
    /// Convolutions.
    #[config(default = 3)]
    pub layers: usize,
    /// Nonlinearity before convolutions.
    #[config(default = "Activation::Relu")]
    pub activation: Activation,
    /// Dropout before convolutions.
    #[config(default = 0.5)]
    pub dropout: f64,
    /// Input after MaxK.
    #[config(default = "Representation::Compressed")]
    pub form: Representation,
}

/// MaxK-GNN as released (Peng et al., 2024).
///
/// - SAGE: lin_in → layers × [activation → dropout → [`SageConv`](super::SageConv) →
///   LayerNorm] → lin_out
/// - GCN: lin_in → ReLU → layers × [linear → activation → dropout →
///   [`GcnConv`](super::GcnConv) → LayerNorm] → lin_out; convolutions without weight or added
///   loops
/// - GIN: as GCN, with [`GinConv`](super::GinConv)
///
/// Dropout draws for kept values only.
#[derive(Module, Debug)]
pub struct MaxKModel {
    lin_in: Linear,
    blocks: Vec<Block>,
    lin_out: Linear,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    form: Representation,
}

#[derive(Module, Debug)]
struct Block {
    linear: Option<Linear>,
    dropout: Dropout,
    conv: Convolution,
    norm: LayerNorm,
}

impl MaxKModelConfig {
    fn parameters(&self) -> u128 {
        let (input, hidden, output) = (self.d_input, self.d_hidden, self.d_output);
        let convolution = match self.architecture {
            Architecture::Sage => {
                linear_len(hidden, hidden).saturating_add(memory::product(&[hidden, hidden]))
            }
            Architecture::Gcn => linear_len(hidden, hidden).saturating_add(hidden as u128),
            Architecture::Gin => linear_len(hidden, hidden).saturating_add(1),
        };
        let layer = convolution.saturating_add(memory::product(&[2, hidden]));
        linear_len(input, hidden)
            .saturating_add(layer.saturating_mul(self.layers as u128))
            .saturating_add(linear_len(hidden, output))
    }

    fn parameter_bytes(&self) -> u128 {
        state_bytes(self.parameters(), self.layers)
    }
}

impl NodeModelConfig for MaxKModelConfig {
    type Model = MaxKModel;

    fn validate(&self) -> Result<(), ModelError> {
        let sizes =
            [("d_input", self.d_input), ("d_hidden", self.d_hidden), ("d_output", self.d_output)];
        for (name, size) in sizes.into_iter().chain([("layers", self.layers)]) {
            if size == 0 {
                return Err(ModelError::Zero { name });
            }
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(ModelError::Dropout { dropout: self.dropout });
        }
        self.activation.validate(self.d_hidden)?;
        let asked = format_args!("a model of {} layers of width {}", self.layers, self.d_hidden);
        Ok(memory::check(asked, self.parameter_bytes())?)
    }

    fn can_capture(&self) -> bool {
        true
    }

    fn training_bytes(&self, nodes: usize) -> u128 {
        let rows = memory::product(&[nodes, self.d_hidden, size_of::<f32>()]);
        // Kept for backward.
        self.parameter_bytes().saturating_add(rows.saturating_mul(self.layers as u128))
    }

    fn init(&self, device: &Device) -> Result<MaxKModel, ModelError> {
        self.validate()?;
        let width = self.d_hidden;
        let linear = |from, to| LinearConfig::new(from, to).init(device);
        let convolution = || match self.architecture {
            Architecture::Sage => Convolution::Sage(SageConvConfig::new(width, width).init(device)),
            Architecture::Gcn => {
                let config = GcnConvConfig::new(width, width);
                let config = config.with_weight(false).with_self_loops(false);
                Convolution::Gcn(config.init(device))
            }
            Architecture::Gin => {
                let config = GinConvConfig::new().with_train_eps(true);
                Convolution::Gin(config.init(device))
            }
        };
        let transforms = self.architecture != Architecture::Sage;
        let block = |_| Block {
            linear: transforms.then(|| linear(width, width)),
            dropout: DropoutConfig::new(self.dropout).init(),
            conv: convolution(),
            norm: new_layer_norm(width, device),
        };
        Ok(MaxKModel {
            lin_in: linear(self.d_input, width),
            blocks: (0..self.layers).map(block).collect(),
            lin_out: linear(width, self.d_output),
            activation: self.activation,
            form: self.form,
        })
    }

    fn input_width(&self) -> usize {
        self.d_input
    }

    fn classes(&self) -> usize {
        self.d_output
    }
}

impl MaxKModel {
    fn convolve(&self, block: &Block, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let Activation::MaxK { k, method } = self.activation else {
            let kept = drop_elements(&block.dropout, self.activation.forward(x));
            return block.conv.forward(graph, kept);
        };
        let kept = MaxKConfig::new(k).with_method(method).init().compress(x);
        let kept = kept.map(|values| drop_elements(&block.dropout, values));
        match self.form {
            Representation::Compressed => block.conv.forward_compressed(graph, &kept),
            Representation::Masked => block.conv.forward(graph, kept.to_dense()),
        }
    }
}

impl NodeModel for MaxKModel {
    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        linear(&self.lin_out, self.embed(graph, x))
    }

    fn embed(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let mut h = linear(&self.lin_in, x);
        if self.blocks.iter().any(|block| block.linear.is_some()) {
            h = relu(h);
        }
        for block in &self.blocks {
            if let Some(layer) = &block.linear {
                h = linear(layer, h);
            }
            h = layer_norm(&block.norm, self.convolve(block, graph, h));
        }
        h
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    #[cfg(feature = "flex")]
    use crate::fixtures::{Alone, alone, device};

    fn config(architecture: Architecture) -> MaxKModelConfig {
        MaxKModelConfig::new(architecture, 7, 16, 3).with_layers(2)
    }

    #[rstest]
    #[case::layers(usize::MAX, 16)]
    #[case::layers(1 << 50, 16)]
    #[case::width(2, 1 << 30)]
    #[case::width(2, usize::MAX)]
    #[case::both(usize::MAX, usize::MAX)]
    fn what_does_not_fit_in_memory_is_refused_before_it_is_built(
        #[values(Architecture::Sage, Architecture::Gcn, Architecture::Gin)]
        architecture: Architecture,
        #[case] layers: usize,
        #[case] hidden: usize,
    ) {
        let mut large = config(architecture).with_layers(layers);
        large.d_hidden = hidden;
        let error = large.validate().unwrap_err();
        assert!(matches!(error, ModelError::Memory(_)), "{error}");
        let width = format!("a model of {layers} layers of width {hidden} needs");
        assert!(error.to_string().starts_with(&width), "{error}");
    }

    #[rstest]
    fn features_and_classes_that_do_not_fit_in_memory_are_refused(
        #[values(Architecture::Sage, Architecture::Gcn, Architecture::Gin)]
        architecture: Architecture,
    ) {
        let mut config = config(architecture);
        assert_eq!(config.validate(), Ok(()));
        (config.d_input, config.d_output) = (usize::MAX, usize::MAX);
        assert!(config.validate().is_err());
    }

    #[cfg(feature = "flex")]
    #[rstest]
    fn parameters_are_counted_as_burn_counts_them(
        _alone: Alone,
        device: Device,
        #[values(Architecture::Sage, Architecture::Gcn, Architecture::Gin)]
        architecture: Architecture,
    ) {
        let config = config(architecture);
        let model = config.init(&device).unwrap();
        assert_eq!(config.parameters(), model.num_params() as u128);
    }
}
