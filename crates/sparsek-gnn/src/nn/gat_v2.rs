use burn::{
    config::Config,
    module::{Module, Param},
    nn::{Dropout, DropoutConfig, Initializer, Linear, LinearConfig},
    tensor::{Device, Tensor, activation::leaky_relu},
};
use sparsek::sparse::MessagePassing;

use super::{
    attention::{
        attend, check_no_loops, edge_layer, head_products, head_vectors, looped, looped_features,
        split_heads,
    },
    dense::linear,
};
use crate::graph::{BipartiteGraph, Graph};

/// Configures [`GatV2Conv`].
#[derive(Config, Debug, PartialEq)]
pub struct GatV2ConvConfig {
    /// Input width.
    pub d_input: usize,
    /// Output width per head.
    pub d_output: usize,
    /// Attention heads.
    #[config(default = 1)]
    pub heads: usize,
    /// Concatenates heads, else averages.
    #[config(default = true)]
    pub concat: bool,
    /// Leaky ReLU slope.
    #[config(default = 0.2)]
    pub negative_slope: f64,
    /// Attention dropout.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// One self-loop per node.
    #[config(default = true)]
    pub self_loops: bool,
    /// Target input width.
    pub d_target: Option<usize>,
    /// Edge feature width.
    pub d_edge: Option<usize>,
    /// Adds biases.
    #[config(default = true)]
    pub bias: bool,
    /// Shares one transform.
    #[config(default = false)]
    pub share_weights: bool,
}

impl GatV2ConvConfig {
    /// Initializes Glorot-uniform weights, zero biases; panics without heads, for dropout outside
    /// [0, 1) or sharing different widths.
    pub fn init(&self, device: &Device) -> GatV2Conv {
        assert!(self.heads > 0, "heads must be at least 1");
        let d_target = self.d_target.unwrap_or(self.d_input);
        assert!(
            !self.share_weights || d_target == self.d_input,
            "GatV2Conv: widths of {} and {d_target} cannot share weights",
            self.d_input,
        );
        let width = self.heads * self.d_output;
        let d_bias = if self.concat { width } else { self.d_output };
        let zeros = |width| Initializer::Zeros.init([width], device);
        let glorot = |d_input| {
            LinearConfig::new(d_input, width)
                .with_bias(false)
                .with_initializer(Initializer::XavierUniform { gain: 1.0 })
                .init(device)
        };
        let transform =
            |d_input| Linear { bias: self.bias.then(|| zeros(width)), ..glorot(d_input) };
        GatV2Conv {
            source: transform(self.d_input),
            target: (!self.share_weights).then(|| transform(d_target)),
            edge: self.d_edge.map(glorot),
            attention: head_vectors(self.heads, self.d_output, device),
            bias: self.bias.then(|| zeros(d_bias)),
            dropout: DropoutConfig::new(self.dropout).init(),
            heads: self.heads,
            concat: self.concat,
            negative_slope: self.negative_slope,
            self_loops: self.self_loops,
        }
    }
}

/// PyG's `GATv2Conv` (Brody et al., 2022). Per head: `l = W_l x + b_l`, `r = W_r x + b_r`,
/// `y[i] = Σ_{j→i} α l[j] + b`, `α = softmax_j(a·LeakyReLU(l[j] + r[i] + W_e e))`.
///
/// Loops and e as [`GatConv`](super::GatConv), but nodes rank neighbors by their own features too.
/// Memory: `2 edges × heads × d_output` elements.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::GatV2ConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = GatV2ConvConfig::new(4, 2).with_heads(3).with_concat(false).init(&device);
/// let x = Tensor::ones([3, 4], &device);
/// assert_eq!(layer.forward(&graph, x.clone()).dims(), [3, 2]);
///
/// let layer = GatV2ConvConfig::new(4, 2).with_d_edge(Some(5)).init(&device);
/// let features = Tensor::ones([2, 5], &device);
/// assert_eq!(layer.forward_with_edges(&graph, x, features).dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct GatV2Conv {
    source: Linear,
    /// The source's when absent.
    target: Option<Linear>,
    edge: Option<Linear>,
    attention: Param<Tensor<2>>,
    bias: Option<Param<Tensor<1>>>,
    dropout: Dropout,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    concat: bool,
    #[module(skip)]
    negative_slope: f64,
    #[module(skip)]
    self_loops: bool,
}

impl GatV2Conv {
    /// [nodes, d_input] → [nodes, heads × d_output], or [nodes, d_output] if averaged; ignores
    /// `d_edge`.
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let edges = looped(graph, self.self_loops).messages(&x.device());
        self.run(&edges, x, None, None)
    }

    /// Takes `[edges, d_edge]` features.
    pub fn forward_with_edges(
        &self,
        graph: &Graph,
        x: Tensor<2>,
        features: Tensor<2>,
    ) -> Tensor<2> {
        let edge = edge_layer("GatV2Conv", &self.edge);
        let features = looped_features(graph, self.self_loops, features);
        let edges = looped(graph, self.self_loops).messages(&x.device());
        self.run(&edges, x, None, Some((edge, features)))
    }

    /// [sources, d_input], [targets, d_target] → target rows; panics with `self_loops`.
    pub fn forward_bipartite(
        &self,
        edges: &BipartiteGraph,
        sources: Tensor<2>,
        targets: Tensor<2>,
    ) -> Tensor<2> {
        check_no_loops("GatV2Conv", self.self_loops);
        edges.check_targets("GatV2Conv", &targets);
        self.run(&edges.messages(&sources.device()), sources, Some(targets), None)
    }

    /// [`forward_bipartite`](Self::forward_bipartite) with edge features.
    pub fn forward_bipartite_with_edges(
        &self,
        edges: &BipartiteGraph,
        sources: Tensor<2>,
        targets: Tensor<2>,
        features: Tensor<2>,
    ) -> Tensor<2> {
        let edge = edge_layer("GatV2Conv", &self.edge);
        check_no_loops("GatV2Conv", self.self_loops);
        edges.check_targets("GatV2Conv", &targets);
        self.run(&edges.messages(&sources.device()), sources, Some(targets), Some((edge, features)))
    }

    fn run(
        &self,
        edges: &MessagePassing,
        sources: Tensor<2>,
        targets: Option<Tensor<2>>,
        features: Option<(&Linear, Tensor<2>)>,
    ) -> Tensor<2> {
        let source = linear(&self.source, sources.clone());
        let target = match (targets, &self.target) {
            (None, None) => source.clone(),
            (targets, layer) => {
                linear(layer.as_ref().unwrap_or(&self.source), targets.unwrap_or(sources))
            }
        };
        let mut messages = edges.gather(source.clone()) + edges.gather_targets(target);
        if let Some((edge, features)) = features {
            messages = messages + linear(edge, features);
        }
        let messages = leaky_relu(messages, self.negative_slope);
        let scores = head_products(split_heads(messages, self.heads), &self.attention);
        let source = split_heads(source, self.heads);
        attend(edges, scores, &self.dropout, source, None, self.concat, self.bias.as_ref())
    }
}
