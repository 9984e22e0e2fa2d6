use burn::{
    config::Config,
    module::Module,
    nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig},
    tensor::{Device, Tensor, activation::relu},
};
use sparsek::io::memory;

use super::{
    activation::Activation,
    dense::linear,
    error::ModelError,
    gin::{GinConv, GinConvConfig},
    graph_model::{GraphModel, GraphModelConfig, Readout},
    sizes::{linear_len, state_bytes},
};
use crate::graph::{Graph, GraphBatch};

/// Configures [`GinGraphModel`].
#[derive(Config, Debug, PartialEq)]
pub struct GinGraphModelConfig {
    /// Features per node.
    pub d_input: usize,
    /// Hidden width.
    pub d_hidden: usize,
    /// Classes.
    pub d_output: usize,
    /// Convolutions.
    #[config(default = 4)]
    pub layers: usize,
    /// Nonlinearity after convolutions.
    #[config(default = "Activation::Relu")]
    pub activation: Activation,
    /// Pooling.
    #[config(default = "Readout::Sum")]
    pub readout: Readout,
    /// Dropout of scores.
    #[config(default = 0.5)]
    pub dropout: f64,
    /// Trains ε, as GIN-ε.
    #[config(default = false)]
    pub train_eps: bool,
}

/// Graph isomorphism network for graphs (Xu et al., 2019).
///
/// Layers: sum of neighbors → linear → batch norm → ReLU → linear → batch norm → activation. Scores
/// add a linear map of each layer's pooled nodes, features first. MaxK is dense.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{
///     Graph,
///     graph::GraphBatch,
///     nn::{Activation, GinGraphModelConfig, GraphModel, GraphModelConfig},
/// };
///
/// let device = Device::flex();
/// let path = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let batch = GraphBatch::new(&[&path, &path]).unwrap();
/// let config = GinGraphModelConfig::new(4, 8, 3).with_activation(Activation::maxk(2));
/// let model = config.init(&device).unwrap();
/// assert_eq!(model.forward(&batch, Tensor::ones([6, 4], &device)).dims(), [2, 3]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct GinGraphModel {
    layers: Vec<Layer>,
    scores: Vec<Linear>,
    dropout: Dropout,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    readout: Readout,
}

#[derive(Module, Debug)]
struct Layer {
    sum: GinConv,
    first: Linear,
    inner_norm: BatchNorm,
    second: Linear,
    outer_norm: BatchNorm,
}

impl Layer {
    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let x = linear(&self.first, self.sum.forward(graph, x));
        let x = linear(&self.second, relu(self.inner_norm.forward(x)));
        self.outer_norm.forward(x)
    }
}

impl GinGraphModelConfig {
    fn parameters(&self) -> u128 {
        let (hidden, classes) = (self.d_hidden, self.d_output);
        let layer = |from| {
            let norms = memory::product(&[4, hidden]).saturating_add(u128::from(self.train_eps));
            let maps = linear_len(from, hidden).saturating_add(linear_len(hidden, hidden));
            maps.saturating_add(linear_len(hidden, classes)).saturating_add(norms)
        };
        let rest = self.layers as u128 - 1;
        linear_len(self.d_input, classes)
            .saturating_add(layer(self.d_input))
            .saturating_add(layer(hidden).saturating_mul(rest))
    }
}

impl GraphModelConfig for GinGraphModelConfig {
    type Model = GinGraphModel;

    fn validate(&self) -> Result<(), ModelError> {
        let sizes = [
            ("d_input", self.d_input),
            ("d_hidden", self.d_hidden),
            ("d_output", self.d_output),
            ("layers", self.layers),
        ];
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(ModelError::Zero { name });
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(ModelError::Dropout { dropout: self.dropout });
        }
        self.activation.validate(self.d_hidden)?;
        let asked = format_args!("a model of {} layers of width {}", self.layers, self.d_hidden);
        Ok(memory::check(asked, state_bytes(self.parameters(), self.layers))?)
    }

    fn init(&self, device: &Device) -> Result<GinGraphModel, ModelError> {
        self.validate()?;
        let hidden = self.d_hidden;
        let width = |layer| if layer == 0 { self.d_input } else { hidden };
        let linear = |from, to| LinearConfig::new(from, to).init(device);
        let norm = || BatchNormConfig::new(hidden).init(device);
        let layer = |layer| Layer {
            sum: GinConvConfig::new().with_train_eps(self.train_eps).init(device),
            first: linear(width(layer), hidden),
            inner_norm: norm(),
            second: linear(hidden, hidden),
            outer_norm: norm(),
        };
        Ok(GinGraphModel {
            layers: (0..self.layers).map(layer).collect(),
            scores: (0..=self.layers).map(|layer| linear(width(layer), self.d_output)).collect(),
            dropout: DropoutConfig::new(self.dropout).init(),
            activation: self.activation,
            readout: self.readout,
        })
    }

    fn input_width(&self) -> usize {
        self.d_input
    }

    fn classes(&self) -> usize {
        self.d_output
    }
}

impl GraphModel for GinGraphModel {
    fn forward(&self, batch: &GraphBatch, mut x: Tensor<2>) -> Tensor<2> {
        let score = |layer: usize, x: &Tensor<2>| {
            let pooled = self.readout.forward(batch, x.clone());
            self.dropout.forward(linear(&self.scores[layer], pooled))
        };
        let mut sum = score(0, &x);
        for (at, layer) in self.layers.iter().enumerate() {
            x = self.activation.forward(layer.forward(batch.graph(), x));
            sum = sum + score(at + 1, &x);
        }
        sum
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{Distribution, Tolerance};
    use rstest::rstest;

    use super::*;
    use crate::fixtures::{Alone, alone, device};

    fn config() -> GinGraphModelConfig {
        GinGraphModelConfig::new(3, 6, 2)
    }

    #[rstest]
    fn parameters_are_counted_as_burn_counts_them(
        _alone: Alone,
        device: Device,
        #[values(1, 3)] layers: usize,
        #[values(false, true)] train_eps: bool,
    ) {
        let config = config().with_layers(layers).with_train_eps(train_eps);
        let model = config.init(&device).unwrap();
        // Burn also counts running means and variances.
        let running = 4 * layers * config.d_hidden;
        assert_eq!(config.parameters(), (model.num_params() - running) as u128);
    }

    /// Checks node order too.
    #[rstest]
    fn graphs_are_scored_alone(
        _alone: Alone,
        device: Device,
        #[values(Readout::Sum, Readout::Mean, Readout::Max)] readout: Readout,
        #[values(Activation::Relu, Activation::maxk(2))] activation: Activation,
    ) {
        device.seed(7);
        let config = config().with_readout(readout).with_activation(activation);
        let model = config.init(&device).unwrap();
        let [path, turned] = [[(0, 1), (1, 0), (1, 2), (2, 1)], [(2, 0), (0, 2), (0, 1), (1, 0)]]
            .map(|edges| Graph::from_edges(3, edges).unwrap());
        let one = Graph::from_edges(1, []).unwrap();
        let x = Tensor::<2>::random([3, 3], Distribution::Default, &device);
        let rows = |list: [i32; 3]| {
            x.clone().select(0, Tensor::<1, burn::tensor::Int>::from_ints(list, &device))
        };
        let score = |graphs: &[&Graph], x| model.forward(&GraphBatch::new(graphs).unwrap(), x);
        let alone = score(&[&path], x.clone());
        let other = Tensor::ones([1, 3], &device);
        let beside = score(&[&one, &path], Tensor::cat(vec![other, x.clone()], 0));
        let beside = beside.narrow(0, 1, 1);
        // New order: old nodes 1, 2, 0.
        let turned = score(&[&turned], rows([1, 2, 0]));
        for found in [beside, turned] {
            found.into_data().assert_approx_eq::<f32>(&alone.to_data(), Tolerance::default());
        }
    }

    #[rstest]
    #[case(config().with_layers(0), ModelError::Zero { name: "layers" })]
    #[case(GinGraphModelConfig::new(3, 0, 2), ModelError::Zero { name: "d_hidden" })]
    #[case(config().with_dropout(1.0), ModelError::Dropout { dropout: 1.0 })]
    #[case(
        config().with_activation(Activation::maxk(7)),
        ModelError::KAboveWidth { k: 7, width: 6 }
    )]
    fn impossible_models_are_refused(
        #[case] config: GinGraphModelConfig,
        #[case] expected: ModelError,
    ) {
        assert_eq!(config.validate(), Err(expected));
    }

    #[rstest]
    #[case(1 << 40, 5)]
    #[case(usize::MAX, usize::MAX)]
    fn models_above_the_memory_limit_are_refused(#[case] hidden: usize, #[case] layers: usize) {
        let error = GinGraphModelConfig::new(3, hidden, 2).with_layers(layers).validate();
        assert!(matches!(error, Err(ModelError::Memory(_))), "{error:?}");
    }
}
