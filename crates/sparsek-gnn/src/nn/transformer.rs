use burn::{
    config::Config,
    module::Module,
    nn::{Dropout, DropoutConfig, Linear, LinearConfig},
    tensor::{Device, Tensor},
};
use sparsek::sparse::MessagePassing;

use super::{
    attention::{attend, edge_layer, split_heads},
    dense::linear,
};
use crate::graph::{BipartiteGraph, Graph};

/// Configures [`TransformerConv`].
#[derive(Config, Debug, PartialEq)]
pub struct TransformerConvConfig {
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
    /// Attention dropout.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Target input width.
    pub d_target: Option<usize>,
    /// Edge feature width.
    pub d_edge: Option<usize>,
    /// Adds a root transform.
    #[config(default = true)]
    pub root_weight: bool,
    /// Adds biases.
    #[config(default = true)]
    pub bias: bool,
}

impl TransformerConvConfig {
    /// Initializes the parameters; panics without heads or for dropout outside [0, 1).
    pub fn init(&self, device: &Device) -> TransformerConv {
        assert!(self.heads > 0, "heads must be at least 1");
        let width = self.heads * self.d_output;
        let d_root = if self.concat { width } else { self.d_output };
        let d_target = self.d_target.unwrap_or(self.d_input);
        let linear = |from, to| LinearConfig::new(from, to).with_bias(self.bias).init(device);
        let edge = |d_edge| LinearConfig::new(d_edge, width).with_bias(false).init(device);
        TransformerConv {
            key: linear(self.d_input, width),
            query: linear(d_target, width),
            value: linear(self.d_input, width),
            edge: self.d_edge.map(edge),
            root: self.root_weight.then(|| linear(d_target, d_root)),
            dropout: DropoutConfig::new(self.dropout).init(),
            heads: self.heads,
            concat: self.concat,
        }
    }
}

/// PyG's `TransformerConv` (Shi et al., 2021), without `beta`. Per head:
/// `y[i] = W₁ x[i] + Σ_{j→i} α (W₂ x[j] + W₅ e)`,
/// `α = softmax_j((W₃ x[i])·(W₄ x[j] + W₅ e) / √d_output)`; all W but W₅ have biases.
///
/// Edge features e are optional and take `edges × heads × d_output` elements.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::TransformerConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = TransformerConvConfig::new(4, 2).with_heads(3).init(&device);
/// let x = Tensor::ones([3, 4], &device);
/// assert_eq!(layer.forward(&graph, x.clone()).dims(), [3, 6]);
///
/// let layer = TransformerConvConfig::new(4, 2).with_d_edge(Some(5)).init(&device);
/// let features = Tensor::ones([2, 5], &device);
/// assert_eq!(layer.forward_with_edges(&graph, x, features).dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct TransformerConv {
    key: Linear,
    query: Linear,
    value: Linear,
    edge: Option<Linear>,
    root: Option<Linear>,
    dropout: Dropout,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    concat: bool,
}

impl TransformerConv {
    /// [nodes, d_input] → [nodes, heads × d_output], or [nodes, d_output] if averaged; ignores
    /// `d_edge`.
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let edges = graph.messages(&x.device());
        self.run(&edges, x, None, None)
    }

    /// Takes `[edges, d_edge]` features.
    pub fn forward_with_edges(
        &self,
        graph: &Graph,
        x: Tensor<2>,
        features: Tensor<2>,
    ) -> Tensor<2> {
        let edge = edge_layer("TransformerConv", &self.edge);
        let edges = graph.messages(&x.device());
        self.run(&edges, x, None, Some((edge, features)))
    }

    /// [sources, d_input], [targets, d_target] → target rows.
    pub fn forward_bipartite(
        &self,
        edges: &BipartiteGraph,
        sources: Tensor<2>,
        targets: Tensor<2>,
    ) -> Tensor<2> {
        edges.check_targets("TransformerConv", &targets);
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
        let edge = edge_layer("TransformerConv", &self.edge);
        edges.check_targets("TransformerConv", &targets);
        self.run(&edges.messages(&sources.device()), sources, Some(targets), Some((edge, features)))
    }

    fn run(
        &self,
        edges: &MessagePassing,
        sources: Tensor<2>,
        targets: Option<Tensor<2>>,
        features: Option<(&Linear, Tensor<2>)>,
    ) -> Tensor<2> {
        let targets = targets.unwrap_or_else(|| sources.clone());
        let of = |layer, x: &Tensor<2>| split_heads(linear(layer, x.clone()), self.heads);
        let [key, value] = [&self.key, &self.value].map(|layer| of(layer, &sources));
        let query = of(&self.query, &targets);
        let [rows, heads, width] = query.dims();
        let query = query / (width as f64).sqrt();
        let mut scores = edges.sddmm(query.clone(), key);
        let features = features.map(|(edge, features)| of(edge, &features));
        if let Some(features) = &features {
            let queries = edges.gather_targets(query.reshape([rows, heads * width]));
            let products = (split_heads(queries, heads) * features.clone()).sum_dim(2);
            scores = scores + products.squeeze_dim::<2>(2);
        }
        let y = attend(edges, scores, &self.dropout, value, features, self.concat, None);
        match &self.root {
            Some(layer) => y + linear(layer, targets),
            None => y,
        }
    }
}
