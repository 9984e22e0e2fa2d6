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

/// Configures [`GatConv`].
#[derive(Config, Debug, PartialEq)]
pub struct GatConvConfig {
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
    /// Target input width, if separate.
    pub d_target: Option<usize>,
    /// Edge feature width.
    pub d_edge: Option<usize>,
    /// Adds a bias.
    #[config(default = true)]
    pub bias: bool,
}

impl GatConvConfig {
    /// Initializes Glorot-uniform weights, zero bias; panics without heads or for dropout outside
    /// [0, 1).
    pub fn init(&self, device: &Device) -> GatConv {
        assert!(self.heads > 0, "heads must be at least 1");
        let width = self.heads * self.d_output;
        let d_bias = if self.concat { width } else { self.d_output };
        let transform = |d_input| {
            LinearConfig::new(d_input, width)
                .with_bias(false)
                .with_initializer(Initializer::XavierUniform { gain: 1.0 })
                .init(device)
        };
        GatConv {
            linear: transform(self.d_input),
            target_linear: self.d_target.map(transform),
            source: head_vectors(self.heads, self.d_output, device),
            target: head_vectors(self.heads, self.d_output, device),
            edge: self.d_edge.map(|d_edge| EdgeScores {
                linear: transform(d_edge),
                vectors: head_vectors(self.heads, self.d_output, device),
            }),
            bias: self.bias.then(|| Initializer::Zeros.init([d_bias], device)),
            dropout: DropoutConfig::new(self.dropout).init(),
            heads: self.heads,
            concat: self.concat,
            negative_slope: self.negative_slope,
            self_loops: self.self_loops,
        }
    }
}

/// PyG's `GATConv` (Veličković et al., 2018). Per head, with `h = W x`:
/// `y[i] = Σ_{j→i} α h[j] + b`,
/// `α = softmax_j(LeakyReLU(a_s·h[j] + a_t·h[i] + a_e·W_e e))`.
///
/// Edge features e are optional; loops get their mean over other edges into the node, or 0.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::GatConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = GatConvConfig::new(4, 2).with_heads(3).init(&device);
/// let x = Tensor::ones([3, 4], &device);
/// assert_eq!(layer.forward(&graph, x.clone()).dims(), [3, 6]);
///
/// let layer = GatConvConfig::new(4, 2).with_d_edge(Some(5)).init(&device);
/// let features = Tensor::ones([2, 5], &device);
/// assert_eq!(layer.forward_with_edges(&graph, x, features).dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct GatConv {
    linear: Linear,
    /// The sources' when absent.
    target_linear: Option<Linear>,
    source: Param<Tensor<2>>,
    target: Param<Tensor<2>>,
    edge: Option<EdgeScores>,
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

#[derive(Module, Debug)]
struct EdgeScores {
    linear: Linear,
    vectors: Param<Tensor<2>>,
}

/// `a·W x`, as `(a W)·x`.
fn products(layer: &Linear, vectors: &Param<Tensor<2>>, x: Tensor<2>) -> Tensor<2> {
    let weight = split_heads(layer.weight.val(), vectors.dims()[0]);
    sparsek::dense::linear(x, head_products(weight, vectors), None)
}

impl GatConv {
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
        let edge = edge_layer("GatConv", &self.edge);
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
        check_no_loops("GatConv", self.self_loops);
        edges.check_targets("GatConv", &targets);
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
        let edge = edge_layer("GatConv", &self.edge);
        check_no_loops("GatConv", self.self_loops);
        edges.check_targets("GatConv", &targets);
        self.run(&edges.messages(&sources.device()), sources, Some(targets), Some((edge, features)))
    }

    fn run(
        &self,
        edges: &MessagePassing,
        sources: Tensor<2>,
        targets: Option<Tensor<2>>,
        features: Option<(&EdgeScores, Tensor<2>)>,
    ) -> Tensor<2> {
        let h = split_heads(linear(&self.linear, sources.clone()), self.heads);
        let target_scores = match (targets, &self.target_linear) {
            (None, None) => head_products(h.clone(), &self.target),
            (targets, layer) => {
                let layer = layer.as_ref().unwrap_or(&self.linear);
                products(layer, &self.target, targets.unwrap_or(sources))
            }
        };
        let source_scores = head_products(h.clone(), &self.source);
        let mut sums = edges.gather(source_scores) + edges.gather_targets(target_scores);
        if let Some((edge, features)) = features {
            sums = sums + products(&edge.linear, &edge.vectors, features);
        }
        let scores = leaky_relu(sums, self.negative_slope);
        attend(edges, scores, &self.dropout, h, None, self.concat, self.bias.as_ref())
    }
}
