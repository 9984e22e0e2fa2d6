use burn::{
    config::Config,
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor, activation::relu},
};
use sparsek::sparse::Compressed;

use super::{
    aggregate::{aggregate_mean_compressed, aggregate_sum_compressed},
    aggregator::Aggregator,
    dense::{linear, linear_added, linear_compressed},
};
use crate::graph::{BipartiteGraph, Graph};

/// Configures [`SageConv`].
#[derive(Config, Debug, PartialEq)]
pub struct SageConvConfig {
    /// Input width.
    pub d_input: usize,
    /// Output width.
    pub d_output: usize,
    /// Target input width.
    pub d_target: Option<usize>,
    /// Neighbor reduction.
    #[config(default = "Aggregator::Mean")]
    pub aggregator: Aggregator,
    /// Normalizes output rows.
    #[config(default = false)]
    pub normalize: bool,
    /// Adds a root transform.
    #[config(default = true)]
    pub root_weight: bool,
    /// Transforms neighbors first.
    #[config(default = false)]
    pub project: bool,
    /// Adds a bias.
    #[config(default = true)]
    pub bias: bool,
}

impl SageConvConfig {
    /// Initializes the parameters.
    pub fn init(&self, device: &Device) -> SageConv {
        let linear = |from, to, bias| LinearConfig::new(from, to).with_bias(bias).init(device);
        let d_target = self.d_target.unwrap_or(self.d_input);
        SageConv {
            project: self.project.then(|| linear(self.d_input, self.d_input, true)),
            neighbours: linear(self.d_input, self.d_output, self.bias),
            root: self.root_weight.then(|| linear(d_target, self.d_output, false)),
            aggregator: self.aggregator,
            normalize: self.normalize,
        }
    }
}

/// PyG's `SAGEConv` (Hamilton et al., 2017):
/// `y[i] = W₁·agg_{j→i} x[j] + W₂ x[i] + b`.
///
/// `project` aggregates `relu(W₃ x[j] + b₃)`; `normalize` divides by `max(‖y[i]‖, 1e-12)`.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::SageConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = SageConvConfig::new(4, 2).init(&device);
/// assert_eq!(layer.forward(&graph, Tensor::ones([3, 4], &device)).dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct SageConv {
    project: Option<Linear>,
    /// Name in saved runs.
    neighbours: Linear,
    root: Option<Linear>,
    #[module(skip)]
    aggregator: Aggregator,
    #[module(skip)]
    normalize: bool,
}

impl SageConv {
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
        edges.check_targets("SageConv", &targets);
        let root = self.root.as_ref().map(|layer| linear(layer, targets));
        self.finish(self.aggregate(edges, sources), root)
    }

    /// Takes compressed rows; maximum, minimum and `project` make them dense.
    pub fn forward_compressed(&self, graph: &Graph, x: &Compressed) -> Tensor<2> {
        let aggregated = match (&self.project, self.aggregator) {
            (None, Aggregator::Mean) => aggregate_mean_compressed(graph, x),
            (None, Aggregator::Sum) => aggregate_sum_compressed(graph, x),
            _ => self.aggregate(graph.bipartite(), x.to_dense()),
        };
        let layer = self.root.as_ref();
        self.finish(aggregated, layer.map(|layer| linear_compressed(layer, x)))
    }

    fn aggregate(&self, edges: &BipartiteGraph, x: Tensor<2>) -> Tensor<2> {
        let x = match &self.project {
            Some(project) => relu(linear(project, x)),
            None => x,
        };
        self.aggregator.forward(edges, x)
    }

    fn finish(&self, aggregated: Tensor<2>, root: Option<Tensor<2>>) -> Tensor<2> {
        let mut y = match root {
            Some(root) => linear_added(&self.neighbours, aggregated, root),
            None => linear(&self.neighbours, aggregated),
        };
        if self.normalize {
            // √ has infinite slope at 0.
            let square = y.clone().square().sum_dim(1);
            y = y / square.clamp_min(1e-24).sqrt();
        }
        y
    }
}
