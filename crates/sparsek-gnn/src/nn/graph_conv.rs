//! Layer of higher-order graph networks.
use burn::{
    config::Config,
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor},
};
use sparsek::sparse::spmm_with;

use super::{
    aggregate::{aggregate_max, aggregate_mean, aggregate_sum, aggregate_weighted},
    dense::{linear, linear_added},
    sage::Aggregator,
};
use crate::graph::Graph;

/// Configuration of [`GraphConv`], with PyG's defaults.
#[derive(Config, Debug, PartialEq)]
pub struct GraphConvConfig {
    /// Input width.
    pub d_input: usize,
    /// Output width.
    pub d_output: usize,
    /// Combination of neighbors.
    #[config(default = "Aggregator::Sum")]
    pub aggregator: Aggregator,
    /// Whether to add a bias.
    #[config(default = true)]
    pub bias: bool,
}

impl GraphConvConfig {
    /// Initializes the parameters.
    pub fn init(&self, device: &Device) -> GraphConv {
        let linear = |bias| {
            let config = LinearConfig::new(self.d_input, self.d_output);
            config.with_bias(bias).init(device)
        };
        GraphConv { neighbors: linear(self.bias), root: linear(false), aggregator: self.aggregator }
    }
}

/// PyG's `GraphConv`: `y[i] = W₁ x[i] + W₂ · agg_{e = (j → i)} w[e] x[j] + b`.
///
/// Deterministic, with gradients for x, weights and parameters. Morris et al., AAAI 2019.
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
    /// [nodes, d_input] → [nodes, d_output] with weights of 1; panics for other sizes.
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let aggregated = match self.aggregator {
            Aggregator::Sum => aggregate_sum(graph, x.clone()),
            Aggregator::Mean => aggregate_mean(graph, x.clone()),
            Aggregator::Max => aggregate_max(graph, x.clone()),
        };
        self.finish(aggregated, x)
    }

    /// Takes `[edges]` weights in CSR order and x's dtype; panics for other sizes. The mean divides
    /// by the number of edges.
    pub fn forward_weighted(&self, graph: &Graph, x: Tensor<2>, weights: Tensor<1>) -> Tensor<2> {
        let device = x.device();
        let aggregated = match self.aggregator {
            Aggregator::Sum => aggregate_weighted(graph, weights, x.clone()),
            Aggregator::Mean => {
                let scaling = graph.mean_scaling(&device, x.dtype()).with_weights(weights);
                spmm_with(&graph.adjacency(&device), x.clone(), &scaling)
            }
            Aggregator::Max => {
                let edges = graph.messages(&device);
                edges.scatter_max(edges.gather(x.clone()) * weights.unsqueeze_dim(1))
            }
        };
        self.finish(aggregated, x)
    }

    fn finish(&self, aggregated: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        linear_added(&self.neighbors, aggregated, linear(&self.root, x))
    }
}
