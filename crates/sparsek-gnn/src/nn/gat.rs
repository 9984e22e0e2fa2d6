//! GAT layer.
use burn::{
    config::Config,
    module::{Module, Param},
    nn::{Dropout, DropoutConfig, Initializer, Linear, LinearConfig},
    tensor::{Device, Tensor, activation::leaky_relu},
};

use super::{
    attention::{attend, head_products, head_vectors, looped, split_heads},
    dense::linear,
};
use crate::graph::Graph;

/// Configuration of [`GatConv`], with PyG's defaults.
#[derive(Config, Debug, PartialEq)]
pub struct GatConvConfig {
    /// Input width.
    pub d_input: usize,
    /// Output width of a head.
    pub d_output: usize,
    /// Attention heads.
    #[config(default = 1)]
    pub heads: usize,
    /// Whether heads stand side by side; else they are averaged.
    #[config(default = true)]
    pub concat: bool,
    /// Slope of the leaky ReLU below 0.
    #[config(default = 0.2)]
    pub negative_slope: f64,
    /// Dropout of attention weights.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Whether every node gets one self-loop.
    #[config(default = true)]
    pub self_loops: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
}

impl GatConvConfig {
    /// Initializes Glorot-uniform weights and zero bias; panics without heads, or for a dropout
    /// outside [0, 1).
    pub fn init(&self, device: &Device) -> GatConv {
        assert!(self.heads > 0, "heads must be at least 1");
        let width = self.heads * self.d_output;
        let d_bias = if self.concat { width } else { self.d_output };
        GatConv {
            linear: LinearConfig::new(self.d_input, width)
                .with_bias(false)
                .with_initializer(Initializer::XavierUniform { gain: 1.0 })
                .init(device),
            source: head_vectors(self.heads, self.d_output, device),
            target: head_vectors(self.heads, self.d_output, device),
            bias: self.bias.then(|| Initializer::Zeros.init([d_bias], device)),
            dropout: DropoutConfig::new(self.dropout).init(),
            heads: self.heads,
            concat: self.concat,
            negative_slope: self.negative_slope,
            self_loops: self.self_loops,
        }
    }
}

/// PyG's `GATConv`: per head, with `h = W x`,
/// `y[i] = Σ_{j ∈ N(i) ∪ {i}} α(i, j) h[j] + b` and
/// `α(i, j) = softmax_j(LeakyReLU(a_s · h[j] + a_t · h[i]))`.
///
/// Softmax runs over the edges into a node. By default each node has one self-loop, added or its
/// own. Repeated edges count repeatedly. Without loops, nodes without edges get the bias.
/// Deterministic, with gradients; edge features are not supported. Veličković et al., ICLR 2018.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::GatConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = GatConvConfig::new(4, 2).with_heads(3).init(&device);
/// assert_eq!(layer.forward(&graph, Tensor::ones([3, 4], &device)).dims(), [3, 6]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct GatConv {
    linear: Linear,
    source: Param<Tensor<2>>,
    target: Param<Tensor<2>>,
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

impl GatConv {
    /// [nodes, d_input] → [nodes, heads × d_output], or [nodes, d_output] for the mean; panics for
    /// other sizes.
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let edges = looped(graph, self.self_loops).messages(&x.device());
        let h = split_heads(linear(&self.linear, x), self.heads);
        let sources = edges.gather(head_products(h.clone(), &self.source));
        let targets = edges.gather_targets(head_products(h.clone(), &self.target));
        let scores = leaky_relu(sources + targets, self.negative_slope);
        attend(&edges, scores, &self.dropout, h, self.concat, self.bias.as_ref())
    }
}
