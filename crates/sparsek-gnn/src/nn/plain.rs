use burn::{
    config::Config,
    module::Module,
    nn::{Dropout, DropoutConfig},
    tensor::{Device, Tensor},
};
use sparsek::io::memory;

use super::{
    activation::Activation,
    convolution::Convolution,
    dropout::drop_elements,
    error::ModelError,
    gat::GatConvConfig,
    gcn::GcnConvConfig,
    gin::{GinConvConfig, GinMlpConfig},
    node_model::{NodeModel, NodeModelConfig},
    sage::SageConvConfig,
    sizes::{linear_len, state_bytes},
};
use crate::graph::Graph;

/// Convolution of [`PlainModel`].
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum ConvKind {
    /// [`GcnConv`](super::GcnConv).
    Gcn,
    /// [`SageConv`](super::SageConv) with the mean.
    Sage,
    /// [`GatConv`](super::GatConv).
    Gat,
    /// [`GinConv`](super::GinConv), ε 0, with a network.
    Gin,
}

/// Configures [`PlainModel`].
#[derive(Config, Debug, PartialEq)]
pub struct PlainModelConfig {
    /// Convolution.
    pub conv: ConvKind,
    /// Features per node.
    pub d_input: usize,
    /// Hidden width (per [`ConvKind::Gat`] head).
    pub d_hidden: usize,
    /// Classes.
    pub d_output: usize,
    /// Convolutions.
    #[config(default = 2)]
    pub layers: usize,
    /// Nonlinearity between convolutions.
    #[config(default = "Activation::Relu")]
    pub activation: Activation,
    /// Dropout before convolutions and of attention.
    #[config(default = 0.5)]
    pub dropout: f64,
    /// Concatenated hidden [`ConvKind::Gat`] heads.
    #[config(default = 8)]
    pub heads: usize,
    /// Averaged last [`ConvKind::Gat`] heads.
    #[config(default = 1)]
    pub output_heads: usize,
    /// Last hidden [`ConvKind::Gin`] width, default `d_hidden`; PyG's `GIN`: `d_output`.
    pub last_hidden: Option<usize>,
}

/// Stacks layers × [dropout → convolution → activation], the last without activation. MaxK is
/// dense.
///
/// Kipf and Welling's GCN: 16 hidden. Veličković's GAT: 8 heads of 8, ELU, dropout 0.6.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{
///     Graph,
///     nn::{Activation, ConvKind, NodeModel, NodeModelConfig, PlainModelConfig},
/// };
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let config = PlainModelConfig::new(ConvKind::Gat, 4, 8, 2).with_activation(Activation::Elu);
/// let model = config.init(&device).unwrap();
/// assert_eq!(model.forward(&graph, Tensor::ones([3, 4], &device)).dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct PlainModel {
    convolutions: Vec<Convolution>,
    dropout: Dropout,
    #[module(skip)]
    activation: Activation,
}

impl PlainModelConfig {
    fn width(&self) -> usize {
        match self.conv {
            ConvKind::Gat => self.heads.saturating_mul(self.d_hidden),
            _ => self.d_hidden,
        }
    }

    fn mlp_width(&self, last: bool) -> usize {
        self.last_hidden.filter(|_| last).unwrap_or(self.d_hidden)
    }

    /// Sums `of(input width, is last)`.
    fn sum(&self, of: impl Fn(usize, bool) -> u128) -> u128 {
        match self.layers {
            0 => 0,
            1 => of(self.d_input, true),
            layers => of(self.d_input, false)
                .saturating_add(of(self.width(), false).saturating_mul(layers as u128 - 2))
                .saturating_add(of(self.width(), true)),
        }
    }

    fn parameters(&self) -> u128 {
        self.sum(|from, last| {
            let to = if last { self.d_output } else { self.d_hidden };
            let product = |sizes: &[usize]| memory::product(sizes);
            match self.conv {
                ConvKind::Gcn => linear_len(from, to),
                ConvKind::Sage => linear_len(from, to).saturating_add(product(&[from, to])),
                ConvKind::Gin => {
                    let hidden = self.mlp_width(last);
                    linear_len(from, hidden).saturating_add(linear_len(hidden, to))
                }
                ConvKind::Gat => {
                    let heads = if last { self.output_heads } else { self.heads };
                    let bias = if last { to } else { self.width() };
                    product(&[from, heads, to])
                        .saturating_add(product(&[2, heads, to]))
                        .saturating_add(bias as u128)
                }
            }
        })
    }

    fn parameter_bytes(&self) -> u128 {
        state_bytes(self.parameters(), self.layers)
    }

    fn convolution(&self, layer: usize, device: &Device) -> Convolution {
        let last = layer + 1 == self.layers;
        let from = if layer == 0 { self.d_input } else { self.width() };
        let to = if last { self.d_output } else { self.d_hidden };
        match self.conv {
            ConvKind::Gcn => Convolution::Gcn(GcnConvConfig::new(from, to).init(device)),
            ConvKind::Sage => Convolution::Sage(SageConvConfig::new(from, to).init(device)),
            ConvKind::Gin => {
                let mlp = GinMlpConfig::new(from, self.mlp_width(last), to);
                Convolution::Gin(GinConvConfig::new().with_mlp(Some(mlp)).init(device))
            }
            ConvKind::Gat => {
                let heads = if last { self.output_heads } else { self.heads };
                let config = GatConvConfig::new(from, to).with_heads(heads).with_concat(!last);
                Convolution::Gat(config.with_dropout(self.dropout).init(device))
            }
        }
    }
}

impl NodeModelConfig for PlainModelConfig {
    type Model = PlainModel;

    fn validate(&self) -> Result<(), ModelError> {
        let sizes = [
            ("d_input", self.d_input),
            ("d_hidden", self.d_hidden),
            ("d_output", self.d_output),
            ("layers", self.layers),
            ("heads", self.heads),
            ("output_heads", self.output_heads),
            ("last_hidden", self.last_hidden.unwrap_or(1)),
        ];
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(ModelError::Zero { name });
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(ModelError::Dropout { dropout: self.dropout });
        }
        self.activation.validate(self.width())?;
        let asked = format_args!("a model of {} layers of width {}", self.layers, self.width());
        Ok(memory::check(asked, self.parameter_bytes())?)
    }

    fn can_capture(&self) -> bool {
        true
    }

    fn training_bytes(&self, nodes: usize) -> u128 {
        let rows = self.sum(|from, _| memory::product(&[nodes, from, size_of::<f32>()]));
        // Backward keeps layer inputs; features are data.
        let data = memory::product(&[nodes, self.d_input, size_of::<f32>()]);
        self.parameter_bytes().saturating_add(rows.saturating_sub(data))
    }

    fn init(&self, device: &Device) -> Result<PlainModel, ModelError> {
        self.validate()?;
        Ok(PlainModel {
            convolutions: (0..self.layers).map(|layer| self.convolution(layer, device)).collect(),
            dropout: DropoutConfig::new(self.dropout).init(),
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

impl NodeModel for PlainModel {
    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let x = self.embed(graph, x);
        self.convolve(self.convolutions.len() - 1, graph, x)
    }

    fn embed(&self, graph: &Graph, mut x: Tensor<2>) -> Tensor<2> {
        for layer in 0..self.convolutions.len() - 1 {
            x = self.activation.forward(self.convolve(layer, graph, x));
        }
        x
    }
}

impl PlainModel {
    fn convolve(&self, layer: usize, graph: &Graph, mut x: Tensor<2>) -> Tensor<2> {
        // Outside autodiff, dropout keeps everything.
        let trains = self.devices().iter().any(Device::is_autodiff);
        if trains && !x.device().is_autodiff() {
            x = x.autodiff();
        }
        self.convolutions[layer].forward(graph, drop_elements(&self.dropout, x))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    #[cfg(feature = "flex")]
    use crate::fixtures::{Alone, alone, device};

    fn config(conv: ConvKind) -> PlainModelConfig {
        PlainModelConfig::new(conv, 7, 5, 3)
    }

    #[cfg(feature = "flex")]
    #[rstest]
    fn parameters_are_counted_as_burn_counts_them(
        _alone: Alone,
        device: Device,
        #[values(ConvKind::Gcn, ConvKind::Sage, ConvKind::Gat, ConvKind::Gin)] conv: ConvKind,
        #[values(1, 2, 4)] layers: usize,
    ) {
        let config = config(conv).with_layers(layers).with_heads(2).with_output_heads(3);
        let config = config.with_last_hidden(Some(6));
        let model = config.init(&device).unwrap();
        assert_eq!(config.parameters(), model.num_params() as u128);
        let graph = Graph::from_edges(2, [(0, 1)]).unwrap();
        assert_eq!(model.forward(&graph, Tensor::ones([2, 7], &device)).dims(), [2, 3]);
        let wide = if layers == 1 { 7 } else { config.width() };
        assert_eq!(model.embed(&graph, Tensor::ones([2, 7], &device)).dims(), [2, wide]);
    }

    #[cfg(feature = "flex")]
    #[rstest]
    fn features_outside_autodiff_are_dropped_in_training(
        _alone: Alone,
        device: Device,
        #[values(ConvKind::Gcn, ConvKind::Gat)] conv: ConvKind,
    ) {
        let graph = Graph::from_edges(2, [(0, 1)]).unwrap();
        let training = device.clone().autodiff();
        let model = config(conv).with_layers(1).init(&training).unwrap();
        let run = |model: &PlainModel, seed| {
            training.seed(seed);
            let y = model.forward(&graph, Tensor::ones([2, 7], &device));
            y.into_data().iter::<f32>().collect::<Vec<_>>()
        };
        assert_ne!(run(&model, 1), run(&model, 2));
        assert_eq!(run(&model, 1), run(&model, 1));
        assert_eq!(run(&model.valid(), 1), run(&model.valid(), 2));
    }

    #[rstest]
    #[case(config(ConvKind::Gat).with_heads(0), ModelError::Zero { name: "heads" })]
    #[case(config(ConvKind::Gcn).with_layers(0), ModelError::Zero { name: "layers" })]
    #[case(
        config(ConvKind::Gin).with_last_hidden(Some(0)),
        ModelError::Zero { name: "last_hidden" }
    )]
    #[case(config(ConvKind::Gin).with_dropout(1.0), ModelError::Dropout { dropout: 1.0 })]
    #[case(
        config(ConvKind::Sage).with_activation(Activation::maxk(6)),
        ModelError::KAboveWidth { k: 6, width: 5 }
    )]
    fn impossible_models_are_refused(
        #[case] config: PlainModelConfig,
        #[case] expected: ModelError,
    ) {
        assert_eq!(config.validate(), Err(expected));
    }

    #[rstest]
    fn what_does_not_fit_in_memory_is_refused_before_it_is_built(
        #[values(ConvKind::Gcn, ConvKind::Sage, ConvKind::Gat, ConvKind::Gin)] conv: ConvKind,
        #[values((usize::MAX, 5), (2, 1 << 40), (usize::MAX, usize::MAX))] size: (usize, usize),
    ) {
        let mut large = config(conv).with_layers(size.0);
        large.d_hidden = size.1;
        let error = large.validate().unwrap_err();
        assert!(matches!(error, ModelError::Memory(_)), "{error}");
    }
}
