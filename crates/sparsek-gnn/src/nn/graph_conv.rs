use burn::{
    config::Config,
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor},
};
use sparsek::sparse::{spmm_weighted, spmm_with};

use super::{
    aggregator::Aggregator,
    dense::{linear, linear_added},
};
use crate::graph::{BipartiteGraph, Graph};

/// Configures [`GraphConv`].
#[derive(Config, Debug, PartialEq)]
pub struct GraphConvConfig {
    /// Input width.
    pub d_input: usize,
    /// Output width.
    pub d_output: usize,
    /// Target input width.
    pub d_target: Option<usize>,
    /// Neighbor reduction.
    #[config(default = "Aggregator::Sum")]
    pub aggregator: Aggregator,
    /// Adds a bias.
    #[config(default = true)]
    pub bias: bool,
}

impl GraphConvConfig {
    /// Initializes the parameters.
    pub fn init(&self, device: &Device) -> GraphConv {
        let linear = |from, bias| {
            let config = LinearConfig::new(from, self.d_output);
            config.with_bias(bias).init(device)
        };
        GraphConv {
            neighbors: linear(self.d_input, self.bias),
            root: linear(self.d_target.unwrap_or(self.d_input), false),
            aggregator: self.aggregator,
        }
    }
}

/// PyG's `GraphConv` (Morris et al., 2019):
/// `y[i] = W₁ x[i] + W₂·agg_{e: j→i} w[e] x[j] + b`.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::GraphConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = GraphConvConfig::new(4, 2).init(&device);
/// assert_eq!(layer.forward(&graph, Tensor::ones([3, 4], &device)).dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct GraphConv {
    neighbors: Linear,
    root: Linear,
    #[module(skip)]
    aggregator: Aggregator,
}

impl GraphConv {
    /// [nodes, d_input] → [nodes, d_output].
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        self.forward_bipartite(graph.bipartite(), x.clone(), x)
    }

    /// [sources, d_input], [targets, d_target] → [targets, d_output].
    pub fn forward_bipartite(
        &self,
        edges: &BipartiteGraph,
        sources: Tensor<2>,
        targets: Tensor<2>,
    ) -> Tensor<2> {
        edges.check_targets("GraphConv", &targets);
        self.finish(self.aggregator.forward(edges, sources), targets)
    }

    /// Takes `[edges]` weights; means divide by edge count.
    pub fn forward_weighted(&self, graph: &Graph, x: Tensor<2>, weights: Tensor<1>) -> Tensor<2> {
        self.forward_bipartite_weighted(graph.bipartite(), x.clone(), x, weights)
    }

    /// [`GraphConv::forward_bipartite`] with weights as [`GraphConv::forward_weighted`].
    pub fn forward_bipartite_weighted(
        &self,
        edges: &BipartiteGraph,
        sources: Tensor<2>,
        targets: Tensor<2>,
        weights: Tensor<1>,
    ) -> Tensor<2> {
        edges.check_targets("GraphConv", &targets);
        let device = sources.device();
        let weighted = |x, weights: Tensor<1>| {
            let edges = edges.messages(&device);
            let messages = edges.gather(x) * weights.unsqueeze_dim(1);
            (edges, messages)
        };
        let aggregated = match self.aggregator {
            Aggregator::Sum => spmm_weighted(&edges.adjacency(&device), weights, sources),
            Aggregator::Mean => {
                let scaling = edges.mean_scaling(&device, sources.dtype()).with_weights(weights);
                spmm_with(&edges.adjacency(&device), sources, &scaling)
            }
            Aggregator::Max => {
                let (edges, messages) = weighted(sources, weights);
                edges.scatter_max(messages)
            }
            Aggregator::Min => {
                let (edges, messages) = weighted(sources, weights);
                edges.scatter_min(messages)
            }
        };
        self.finish(aggregated, targets)
    }

    fn finish(&self, aggregated: Tensor<2>, targets: Tensor<2>) -> Tensor<2> {
        linear_added(&self.neighbors, aggregated, linear(&self.root, targets))
    }
}
