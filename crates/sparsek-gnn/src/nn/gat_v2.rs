//! GATv2 layer.
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

/// Configuration of [`GatV2Conv`], with PyG's defaults.
#[derive(Config, Debug, PartialEq)]
pub struct GatV2ConvConfig {
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
    /// Whether biases are added to the transforms and to the result.
    #[config(default = true)]
    pub bias: bool,
    /// Whether sources and targets share a transform.
    #[config(default = false)]
    pub share_weights: bool,
}

impl GatV2ConvConfig {
    /// Initializes Glorot-uniform weights and zero biases; panics without heads, or for a dropout
    /// outside [0, 1).
    pub fn init(&self, device: &Device) -> GatV2Conv {
        assert!(self.heads > 0, "heads must be at least 1");
        let width = self.heads * self.d_output;
        let d_bias = if self.concat { width } else { self.d_output };
        let zeros = |width| Initializer::Zeros.init([width], device);
        let transform = || Linear {
            bias: self.bias.then(|| zeros(width)),
            ..LinearConfig::new(self.d_input, width)
                .with_bias(false)
                .with_initializer(Initializer::XavierUniform { gain: 1.0 })
                .init(device)
        };
        GatV2Conv {
            source: transform(),
            target: (!self.share_weights).then(transform),
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

/// PyG's `GATv2Conv`: per head, with `l = W_l x + b_l` and `r = W_r x + b_r`,
/// `y[i] = Σ_{j ∈ N(i) ∪ {i}} α(i, j) l[j] + b` and
/// `α(i, j) = softmax_j(a · LeakyReLU(l[j] + r[i]))`.
///
/// Loops, repeated edges and limits as [`GatConv`](super::GatConv). Unlike it, a node may rank its
/// neighbors by its own features; this takes `2 edges × heads × d_output` elements of memory.
/// Brody et al., ICLR 2022.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::GatV2ConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = GatV2ConvConfig::new(4, 2).with_heads(3).with_concat(false).init(&device);
/// assert_eq!(layer.forward(&graph, Tensor::ones([3, 4], &device)).dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct GatV2Conv {
    source: Linear,
    /// The source's when absent.
    target: Option<Linear>,
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
    /// [nodes, d_input] → [nodes, heads × d_output], or [nodes, d_output] for the mean; panics for
    /// other sizes.
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let edges = looped(graph, self.self_loops).messages(&x.device());
        let source = linear(&self.source, x.clone());
        let target = self.target.as_ref().map_or_else(|| source.clone(), |layer| linear(layer, x));
        let messages = edges.gather(source.clone()) + edges.gather_targets(target);
        let messages = leaky_relu(messages, self.negative_slope);
        let scores = head_products(split_heads(messages, self.heads), &self.attention);
        let source = split_heads(source, self.heads);
        attend(&edges, scores, &self.dropout, source, self.concat, self.bias.as_ref())
    }
}
