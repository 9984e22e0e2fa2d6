//! The GraphSAGE convolution.
use burn::{
    config::Config,
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor},
};

use crate::{
    Graph,
    aggregate::{aggregate_mean, aggregate_sum},
};

/// How the features of neighbours are joined.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Aggregator {
    /// Their mean, zero for a node without incoming edges.
    Mean,
    /// Their sum.
    Sum,
}

/// Configuration of a [`SageConv`] layer.
#[derive(Config, Debug, PartialEq)]
pub struct SageConvConfig {
    /// Width of the input rows.
    pub d_input: usize,
    /// Width of the output rows.
    pub d_output: usize,
    /// How neighbours are joined.
    #[config(default = "Aggregator::Mean")]
    pub aggregator: Aggregator,
    /// Whether a node's own features are added through a weight of their own.
    #[config(default = true)]
    pub root_weight: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
}

impl SageConvConfig {
    /// Initialises the layer's parameters on the device.
    pub fn init(&self, device: &Device) -> SageConv {
        let linear = |bias| {
            LinearConfig::new(self.d_input, self.d_output)
                .with_bias(bias)
                .init(device)
        };
        SageConv {
            neighbours: linear(self.bias),
            root: self.root_weight.then(|| linear(false)),
            aggregator: self.aggregator,
        }
    }
}

/// GraphSAGE: `y[i] = W₁ · agg_{j ∈ N(i)} x[j] + W₂ x[i] + b`.
///
/// Hamilton, Ying and Leskovec, *Inductive Representation Learning on Large Graphs*, NeurIPS 2017; as PyG's and DGL's
/// `SAGEConv` without the projection and the normalisation of rows.
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
    neighbours: Linear,
    root: Option<Linear>,
    #[module(skip)]
    aggregator: Aggregator,
}

impl SageConv {
    /// Applies the layer. Shapes: x is [nodes, d_input], the result [nodes, d_output].
    ///
    /// # Panics
    /// When x does not have a row for every node, or not d_input columns.
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let joined = match self.aggregator {
            Aggregator::Mean => aggregate_mean(graph, x.clone()),
            Aggregator::Sum => aggregate_sum(graph, x.clone()),
        };
        let y = self.neighbours.forward(joined);
        match &self.root {
            Some(root) => y + root.forward(x),
            None => y,
        }
    }
}
