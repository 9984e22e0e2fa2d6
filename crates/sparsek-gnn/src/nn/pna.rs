use burn::{
    config::Config,
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, FloatDType, Tensor, activation::relu},
};
use sparsek::sparse::MessagePassing;

use super::{attention::edge_layer, dense::linear};
use crate::graph::Graph;

const LEAST_VARIANCE: f64 = 1e-5;

/// Message reduction; 0 without messages.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum PnaAggregator {
    /// Sum.
    Sum,
    /// Mean μ.
    Mean,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Mean of (m - μ)².
    Var,
    /// Standard deviation; value and gradient 0 for variances ≤ 1e-5.
    Std,
}

/// Factor for in-degree d; δ: mean log(d + 1) of the histogram.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum PnaScaler {
    /// `1`.
    Identity,
    /// log(d + 1) / δ.
    Amplification,
    /// δ / log(max(d, 1) + 1).
    Attenuation,
    /// d / mean degree.
    Linear,
    /// Mean degree / max(d, 1).
    InverseLinear,
}

/// Configures [`PnaConv`].
#[derive(Config, Debug, PartialEq)]
pub struct PnaConvConfig {
    /// Input width.
    pub d_input: usize,
    /// Output width, divisible by `towers`.
    pub d_output: usize,
    /// [`degree_histogram`](Self::degree_histogram) of training graphs.
    pub degrees: Vec<u64>,
    /// Reductions, concatenated.
    #[config(default = "PnaAggregator::PAPER.to_vec()")]
    pub aggregators: Vec<PnaAggregator>,
    /// Scalers, each of all reductions.
    #[config(default = "PnaScaler::PAPER.to_vec()")]
    pub scalers: Vec<PnaScaler>,
    /// Edge feature width.
    pub d_edge: Option<usize>,
    /// Parallel networks.
    #[config(default = 1)]
    pub towers: usize,
    /// Linear layers per message.
    #[config(default = 1)]
    pub pre_layers: usize,
    /// Linear layers per result.
    #[config(default = 1)]
    pub post_layers: usize,
    /// Divides input columns among towers.
    #[config(default = false)]
    pub divide_input: bool,
}

impl PnaAggregator {
    /// The paper's reductions.
    pub const PAPER: [Self; 4] = [Self::Mean, Self::Min, Self::Max, Self::Std];
}

impl PnaScaler {
    /// The paper's scalers.
    pub const PAPER: [Self; 3] = [Self::Identity, Self::Amplification, Self::Attenuation];

    fn factors(self, degrees: Tensor<2>, layer: &PnaConv) -> Option<Tensor<2>> {
        match self {
            Self::Identity => None,
            Self::Amplification => Some((degrees + 1.0).log() / layer.log_degree),
            Self::Attenuation => {
                let logarithms = (degrees.clamp_min(1.0) + 1.0).log();
                Some(logarithms.recip() * layer.log_degree)
            }
            Self::Linear => Some(degrees / layer.degree),
            Self::InverseLinear => Some(degrees.clamp_min(1.0).recip() * layer.degree),
        }
    }
}

impl PnaConvConfig {
    /// Nodes per in-degree: PyG's `get_degree_histogram`.
    pub fn degree_histogram<'a>(graphs: impl IntoIterator<Item = &'a Graph>) -> Vec<u64> {
        let mut counts = Vec::new();
        for degree in graphs.into_iter().flat_map(Graph::in_degrees) {
            let degree = degree as usize;
            if degree >= counts.len() {
                counts.resize(degree + 1, 0);
            }
            counts[degree] += 1;
        }
        counts
    }

    /// Initializes the parameters; panics for zero counts, indivisible widths or a histogram
    /// without edges.
    pub fn init(&self, device: &Device) -> PnaConv {
        let layers = [self.towers, self.pre_layers, self.post_layers];
        let lists = [self.aggregators.len(), self.scalers.len()];
        let least = layers.into_iter().chain(lists).min();
        assert!(least > Some(0), "PnaConv: towers, layers, aggregators and scalers: at least 1");
        let shared = if self.divide_input { self.d_input } else { 0 };
        assert!(
            shared.is_multiple_of(self.towers) && self.d_output.is_multiple_of(self.towers),
            "PnaConv: {} towers do not divide the widths",
            self.towers,
        );
        let mean = |of: fn(f64) -> f64| {
            let counts = (0u32..).zip(&self.degrees);
            let sum: f64 = counts.map(|(d, &count)| of(d.into()) * count as f64).sum();
            sum / self.degrees.iter().sum::<u64>() as f64
        };
        let (degree, log_degree) = (mean(|d| d), mean(f64::ln_1p));
        assert!(degree > 0.0, "PnaConv: the histogram of degrees counts no edge");
        let width = if self.divide_input { self.d_input / self.towers } else { self.d_input };
        let to = self.d_output / self.towers;
        let parts = if self.d_edge.is_some() { 3 } else { 2 };
        let joined = (self.aggregators.len() * self.scalers.len() + 1) * width;
        let linear = |from, to| LinearConfig::new(from, to).init(device);
        let stack = |from, to, layers| {
            (0..layers).map(|layer| linear(if layer == 0 { from } else { to }, to)).collect()
        };
        let tower = |_| Tower {
            pre: stack(parts * width, width, self.pre_layers),
            post: stack(joined, to, self.post_layers),
        };
        PnaConv {
            edge_encoder: self.d_edge.map(|d_edge| linear(d_edge, width)),
            towers: (0..self.towers).map(tower).collect(),
            linear: linear(self.d_output, self.d_output),
            aggregators: self.aggregators.clone(),
            scalers: self.scalers.clone(),
            degree,
            log_degree,
            divide_input: self.divide_input,
        }
    }
}

/// PyG's `PNAConv` (Corso et al., 2020):
/// `y[i] = W (f(x[i] ‖ s₁ a₁ ‖ s₁ a₂ ‖ …)) + b`, with aggregators a of messages
/// `h(x[i] ‖ x[j] ‖ E e)` and scalers s.
///
/// Towers have h and f, linear layers with ReLU between. Memory: O(edges × d_input × towers).
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::PnaConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2), (0, 2)]).unwrap();
/// let degrees = PnaConvConfig::degree_histogram([&graph]);
/// assert_eq!(degrees, [1, 1, 1]);
/// let layer = PnaConvConfig::new(4, 2, degrees).init(&device);
/// assert_eq!(layer.forward(&graph, Tensor::ones([3, 4], &device)).dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct PnaConv {
    edge_encoder: Option<Linear>,
    towers: Vec<Tower>,
    linear: Linear,
    #[module(skip)]
    aggregators: Vec<PnaAggregator>,
    #[module(skip)]
    scalers: Vec<PnaScaler>,
    #[module(skip)]
    degree: f64,
    /// Mean log(degree + 1).
    #[module(skip)]
    log_degree: f64,
    #[module(skip)]
    divide_input: bool,
}

#[derive(Module, Debug)]
struct Tower {
    pre: Vec<Linear>,
    post: Vec<Linear>,
}

impl PnaConv {
    /// [nodes, d_input] → [nodes, d_output]; panics with `d_edge`.
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        assert!(self.edge_encoder.is_none(), "PnaConv: with d_edge, messages need edge features");
        self.run(graph, x, None)
    }

    /// Takes `[edges, d_edge]` features.
    pub fn forward_with_edges(
        &self,
        graph: &Graph,
        x: Tensor<2>,
        features: Tensor<2>,
    ) -> Tensor<2> {
        let encoder = edge_layer("PnaConv", &self.edge_encoder);
        self.run(graph, x, Some(linear(encoder, features)))
    }

    fn run(&self, graph: &Graph, x: Tensor<2>, features: Option<Tensor<2>>) -> Tensor<2> {
        let edges = graph.messages(&x.device());
        let degrees = graph.bipartite().degrees(&x.device(), x.dtype());
        let dtype = FloatDType::from(x.dtype());
        let factors = self.scalers.iter().map(|scaler| {
            let factors = scaler.factors(degrees.clone().unsqueeze_dim(1), self);
            factors.map(|factors| factors.cast(dtype))
        });
        let factors: Vec<Option<Tensor<2>>> = factors.collect();
        let towers = self.towers.iter().enumerate().map(|(at, tower)| {
            let x = match self.divide_input {
                true => {
                    let width = x.dims()[1] / self.towers.len();
                    x.clone().narrow(1, at * width, width)
                }
                false => x.clone(),
            };
            let messages = tower.messages(&edges, x.clone(), features.clone());
            let reduced = Tensor::cat(reduce(&edges, messages, &self.aggregators), 1);
            let mut joined = vec![x];
            joined.extend(factors.iter().map(|factors| match factors {
                Some(factors) => reduced.clone() * factors.clone(),
                None => reduced.clone(),
            }));
            stacked(&tower.post, Tensor::cat(joined, 1))
        });
        linear(&self.linear, Tensor::cat(towers.collect(), 1))
    }
}

impl Tower {
    /// Multiplies before gathering: `[x[i], x[j]] W = x[i] W₁ + x[j] W₂`.
    fn messages(
        &self,
        edges: &MessagePassing,
        x: Tensor<2>,
        features: Option<Tensor<2>>,
    ) -> Tensor<2> {
        let [first, others @ ..] = &self.pre[..] else { panic!("init makes a layer") };
        let width = x.dims()[1];
        let (weight, bias) = (first.weight.val(), first.bias.as_ref().map(|bias| bias.val()));
        let part = |at: usize| weight.clone().narrow(0, at * width, width);
        let targets = sparsek::dense::linear(x.clone(), part(0), bias);
        let sources = sparsek::dense::linear(x, part(1), None);
        let mut messages = edges.gather_targets(targets) + edges.gather(sources);
        if let Some(features) = features {
            messages = messages + sparsek::dense::linear(features, part(2), None);
        }
        match others {
            [] => messages,
            others => stacked(others, relu(messages)),
        }
    }
}

fn stacked(layers: &[Linear], x: Tensor<2>) -> Tensor<2> {
    layers.iter().enumerate().fold(x, |x, (at, layer)| {
        let x = if at == 0 { x } else { relu(x) };
        linear(layer, x)
    })
}

fn reduce(
    edges: &MessagePassing,
    messages: Tensor<2>,
    aggregators: &[PnaAggregator],
) -> Vec<Tensor<2>> {
    let variance = || {
        // Two passes: a difference of squares would cancel.
        let mean = edges.scatter_mean(messages.clone());
        let off = messages.clone() - edges.gather_targets(mean);
        edges.scatter_mean(off.square())
    };
    let of = |aggregator: &PnaAggregator| match aggregator {
        PnaAggregator::Sum => edges.scatter_sum(messages.clone()),
        PnaAggregator::Mean => edges.scatter_mean(messages.clone()),
        PnaAggregator::Min => edges.scatter_min(messages.clone()),
        PnaAggregator::Max => edges.scatter_max(messages.clone()),
        PnaAggregator::Var => variance(),
        PnaAggregator::Std => {
            let variance = variance();
            let zero = variance.clone().lower_equal_elem(LEAST_VARIANCE);
            // √ has infinite slope at 0.
            variance.clamp_min(LEAST_VARIANCE).sqrt().mask_fill(zero, 0.0)
        }
    };
    aggregators.iter().map(of).collect()
}
