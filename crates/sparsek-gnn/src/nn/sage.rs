//! The GraphSAGE convolution.
use burn::{
    config::Config,
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor, activation::relu},
};
use sparsek::sparse::Compressed;

use super::dense::{linear, linear_compressed};
use crate::{
    Graph,
    aggregate::{
        aggregate_max, aggregate_mean, aggregate_mean_compressed, aggregate_sum,
        aggregate_sum_compressed,
    },
};

/// How the features of neighbours are joined.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Aggregator {
    /// Their mean, zero for a node without incoming edges.
    Mean,
    /// Their sum.
    Sum,
    /// Their maximum, element by element, zero for a node without incoming edges.
    Max,
}

/// Configuration of a [`SageConv`] layer. The defaults are PyG's.
#[derive(Config, Debug, PartialEq)]
pub struct SageConvConfig {
    /// Width of the input rows.
    pub d_input: usize,
    /// Width of the output rows.
    pub d_output: usize,
    /// How neighbours are joined.
    #[config(default = "Aggregator::Mean")]
    pub aggregator: Aggregator,
    /// Whether output rows are divided by their Euclidean norm.
    #[config(default = false)]
    pub normalize: bool,
    /// Whether a node's own features are added through a weight of their own.
    #[config(default = true)]
    pub root_weight: bool,
    /// Whether neighbours' features first pass a linear layer and ReLU.
    #[config(default = false)]
    pub project: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
}

impl SageConvConfig {
    /// Initialises the layer's parameters on the device.
    pub fn init(&self, device: &Device) -> SageConv {
        let linear = |width, bias| {
            let config = LinearConfig::new(self.d_input, width);
            config.with_bias(bias).init(device)
        };
        SageConv {
            project: self.project.then(|| linear(self.d_input, true)),
            neighbours: linear(self.d_output, self.bias),
            root: self.root_weight.then(|| linear(self.d_output, false)),
            aggregator: self.aggregator,
            normalize: self.normalize,
        }
    }
}

/// GraphSAGE: `y[i] = W₁ · agg_{j ∈ N(i)} x[j] + W₂ x[i] + b`.
///
/// With `project`, neighbours are joined after `relu(W₃ x[j] + b₃)`; with `normalize`, `y[i]` is divided by `max(‖y[i]‖, 1e-12)`.
///
/// Hamilton, Ying and Leskovec, *Inductive Representation Learning on Large Graphs*, NeurIPS 2017; as PyG's `SAGEConv`.
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
    neighbours: Linear,
    root: Option<Linear>,
    #[module(skip)]
    aggregator: Aggregator,
    #[module(skip)]
    normalize: bool,
}

impl SageConv {
    /// Applies the layer. Shapes: x is [nodes, d_input], the result [nodes, d_output].
    ///
    /// # Panics
    /// When x does not have a row for every node, or not d_input columns.
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let root = self.root.as_ref();
        let own = root.map(|root| linear(root, x.clone()));
        self.finish(self.join(graph, x), own)
    }

    /// [`SageConv::forward`] of rows of which only some elements are kept. Sums and means are taken of the kept elements; the maximum, and
    /// what `project` makes of rows, need them dense.
    ///
    /// # Panics
    /// As [`SageConv::forward`].
    pub fn forward_compressed(&self, graph: &Graph, x: &Compressed) -> Tensor<2> {
        let joined = match (&self.project, self.aggregator) {
            (None, Aggregator::Mean) => aggregate_mean_compressed(graph, x),
            (None, Aggregator::Sum) => aggregate_sum_compressed(graph, x),
            _ => self.join(graph, x.to_dense()),
        };
        let root = self.root.as_ref();
        self.finish(joined, root.map(|root| linear_compressed(root, x)))
    }

    fn join(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let x = match &self.project {
            Some(project) => relu(linear(project, x)),
            None => x,
        };
        match self.aggregator {
            Aggregator::Mean => aggregate_mean(graph, x),
            Aggregator::Sum => aggregate_sum(graph, x),
            Aggregator::Max => aggregate_max(graph, x),
        }
    }

    /// `own` is there where there is a root weight.
    fn finish(&self, joined: Tensor<2>, own: Option<Tensor<2>>) -> Tensor<2> {
        let mut y = linear(&self.neighbours, joined);
        if let Some(own) = own {
            y = y + own;
        }
        if self.normalize {
            // Bounded under the root, whose slope at 0 is infinite.
            let square = y.clone().square().sum_dim(1);
            y = y / square.clamp_min(1e-24).sqrt();
        }
        y
    }
}
