//! Graph transformer layer.
use burn::{
    config::Config,
    module::Module,
    nn::{Dropout, DropoutConfig, Linear, LinearConfig},
    tensor::{Device, Tensor},
};

use super::{
    attention::{attend, split_heads},
    dense::linear,
};
use crate::graph::Graph;

/// Configuration of [`TransformerConv`], with PyG's defaults.
#[derive(Config, Debug, PartialEq)]
pub struct TransformerConvConfig {
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
    /// Dropout of attention weights.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Whether to add a transform of the node itself.
    #[config(default = true)]
    pub root_weight: bool,
    /// Whether the transforms have a bias.
    #[config(default = true)]
    pub bias: bool,
}

impl TransformerConvConfig {
    /// Initializes the parameters; panics without heads, or for a dropout outside [0, 1).
    pub fn init(&self, device: &Device) -> TransformerConv {
        assert!(self.heads > 0, "heads must be at least 1");
        let width = self.heads * self.d_output;
        let d_root = if self.concat { width } else { self.d_output };
        let linear =
            |width| LinearConfig::new(self.d_input, width).with_bias(self.bias).init(device);
        TransformerConv {
            key: linear(width),
            query: linear(width),
            value: linear(width),
            root: self.root_weight.then(|| linear(d_root)),
            dropout: DropoutConfig::new(self.dropout).init(),
            heads: self.heads,
            concat: self.concat,
        }
    }
}

/// PyG's `TransformerConv`: per head, `y[i] = W₁ x[i] + Σ_{j ∈ N(i)} α(i, j) W₂ x[j]` and
/// `α(i, j) = softmax_j((W₃ x[i]) · (W₄ x[j]) / √d_output)`, where each W has a bias.
///
/// Softmax runs over the edges into a node; repeated edges count repeatedly. Nodes without edges
/// get `W₁ x[i]`. Deterministic, with gradients; PyG's `beta` and edge features are not supported.
/// Shi et al., IJCAI 2021.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::TransformerConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = TransformerConvConfig::new(4, 2).with_heads(3).init(&device);
/// assert_eq!(layer.forward(&graph, Tensor::ones([3, 4], &device)).dims(), [3, 6]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct TransformerConv {
    key: Linear,
    query: Linear,
    value: Linear,
    root: Option<Linear>,
    dropout: Dropout,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    concat: bool,
}

impl TransformerConv {
    /// [nodes, d_input] → [nodes, heads × d_output], or [nodes, d_output] for the mean; panics for
    /// other sizes.
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let edges = graph.messages(&x.device());
        let of = |layer| split_heads(linear(layer, x.clone()), self.heads);
        let [query, key, value] = [&self.query, &self.key, &self.value].map(of);
        let root = (query.dims()[2] as f64).sqrt();
        let scores = edges.sddmm(query / root, key);
        let y = attend(&edges, scores, &self.dropout, value, self.concat, None);
        match &self.root {
            Some(layer) => y + linear(layer, x),
            None => y,
        }
    }
}
