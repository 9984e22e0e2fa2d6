//! The three models of the MaxK-GNN paper.
use burn::{
    config::Config,
    module::Module,
    nn::{Dropout, DropoutConfig, LayerNorm, Linear, LinearConfig},
    tensor::{Device, Tensor, activation::relu},
};

use sparsek::sparse::Compressed;

use super::{
    Activation, GcnConv, GcnConvConfig, GinConv, GinConvConfig, MaxKConfig, ModelError, SageConv,
    SageConvConfig,
    dense::{layer_norm, linear, new_layer_norm},
    dropout::drop_elements,
};
use crate::{
    Graph,
    train::{NodeModel, NodeModelConfig},
};

/// Which convolution the layers are made of.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// GraphSAGE with the mean of neighbours.
    Sage,
    /// GCN with the norm of both degrees.
    Gcn,
    /// GIN with a trained eps and no network within.
    Gin,
}

/// What convolutions are applied to after MaxK. Results agree up to rounding, ReLU is dense always.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The kept elements alone.
    Compressed,
    /// The kept elements alone, and their gradient added up by atomics: a little faster on large graphs whose nodes have few edges, but **not deterministic**. See
    /// [`Compressed::with_atomic_gradient`].
    Atomic,
    /// Dense rows, zero where nothing was kept.
    Masked,
}

/// Configuration of a [`MaxKModel`].
#[derive(Config, Debug, PartialEq)]
pub struct MaxKModelConfig {
    /// Which convolution.
    pub architecture: Architecture,
    /// Width of the node features.
    pub d_input: usize,
    /// Width of the hidden rows.
    pub d_hidden: usize,
    /// Number of classes.
    pub d_output: usize,
    /// Convolutions.
    #[config(default = 3)]
    pub layers: usize,
    /// The nonlinearity before each convolution.
    #[config(default = "Activation::Relu")]
    pub activation: Activation,
    /// Probability of dropping an element before each convolution.
    #[config(default = 0.5)]
    pub dropout: f64,
    /// What convolutions are applied to after MaxK.
    #[config(default = "Form::Compressed")]
    pub form: Form,
}

/// A graph network with MaxK or ReLU, as in the paper's release.
///
/// - SAGE: lin_in → layers × [activation → dropout → [`SageConv`] → LayerNorm] → lin_out
/// - GCN: lin_in → ReLU → layers × [linear → activation → dropout → [`GcnConv`] → LayerNorm] → lin_out, the convolution
///   having a bias, no weight, and no loops but those of the graph
/// - GIN: as GCN, with [`GinConv`]
///
/// Peng et al., *MaxK-GNN*, ASPLOS 2024. Dropout follows the selection and is drawn for the kept values only, in both
/// forms alike.
#[derive(Module, Debug)]
pub struct MaxKModel {
    lin_in: Linear,
    blocks: Vec<Block>,
    lin_out: Linear,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    form: Form,
}

#[derive(Module, Debug)]
struct Block {
    linear: Option<Linear>,
    dropout: Dropout,
    conv: Convolution,
    norm: LayerNorm,
}

#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "one for each layer")]
enum Convolution {
    Sage(SageConv),
    Gcn(GcnConv),
    Gin(GinConv),
}

impl Convolution {
    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Sage(conv) => conv.forward(graph, x),
            Self::Gcn(conv) => conv.forward(graph, x),
            Self::Gin(conv) => conv.forward(graph, x),
        }
    }

    fn forward_compressed(&self, graph: &Graph, x: &Compressed) -> Tensor<2> {
        match self {
            Self::Sage(conv) => conv.forward_compressed(graph, x),
            Self::Gcn(conv) => conv.forward_compressed(graph, x),
            Self::Gin(conv) => conv.forward_compressed(graph, x),
        }
    }
}

impl NodeModelConfig for MaxKModelConfig {
    type Model = MaxKModel;

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
    /// The nonlinearity, dropout and the convolution of a block.
    fn convolve(&self, block: &Block, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let Activation::MaxK { k, method } = self.activation else {
            let kept = drop_elements(&block.dropout, self.activation.forward(x));
            return block.conv.forward(graph, kept);
        };
        let kept = MaxKConfig::new(k).with_method(method).init().compress(x);
        let kept = kept.map(|values| drop_elements(&block.dropout, values));
        match self.form {
            Form::Compressed => block.conv.forward_compressed(graph, &kept),
            Form::Atomic => {
                let kept = kept.with_atomic_gradient(true);
                block.conv.forward_compressed(graph, &kept)
            }
            Form::Masked => block.conv.forward(graph, kept.to_dense()),
        }
    }
}

impl NodeModel for MaxKModel {
    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
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
        linear(&self.lin_out, h)
    }
}
