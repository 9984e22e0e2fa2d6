//! Relational GCN layer.
use burn::{
    config::Config,
    module::{Module, Param},
    nn::Initializer,
    tensor::{Device, Tensor},
};

use super::aggregator::Aggregator;
use crate::graph::Graph;

/// Configuration of [`RgcnConv`], with PyG's defaults.
#[derive(Config, Debug, PartialEq)]
pub struct RgcnConvConfig {
    /// Input width.
    pub d_input: usize,
    /// Output width.
    pub d_output: usize,
    /// Number of relations.
    pub relations: usize,
    /// Number of weights that relations combine; else each has its own.
    pub bases: Option<usize>,
    /// Combination of the neighbors by one relation.
    #[config(default = "Aggregator::Mean")]
    pub aggregator: Aggregator,
    /// Whether to add a transform of the node itself.
    #[config(default = true)]
    pub root_weight: bool,
    /// Whether to add a bias.
    #[config(default = true)]
    pub bias: bool,
}

impl RgcnConvConfig {
    /// Initializes Glorot-uniform weights and zero bias; panics without relations or bases.
    pub fn init(&self, device: &Device) -> RgcnConv {
        let weights = self.bases.unwrap_or(self.relations);
        assert!(self.relations > 0 && weights > 0, "RgcnConv: relations and bases: at least 1");
        let (from, to) = (self.d_input, self.d_output);
        let glorot = Initializer::XavierUniform { gain: 1.0 };
        let shares = |bases| {
            glorot.init_with([self.relations, bases], Some(self.relations), Some(bases), device)
        };
        RgcnConv {
            weights: glorot.init_with([weights, from, to], Some(from), Some(to), device),
            shares: self.bases.map(shares),
            root: self
                .root_weight
                .then(|| glorot.init_with([from, to], Some(from), Some(to), device)),
            bias: self.bias.then(|| Initializer::Zeros.init([to], device)),
            aggregator: self.aggregator,
            relations: self.relations,
        }
    }
}

/// PyG's `RGCNConv`: `y[i] = W x[i] + Σ_r W_r agg_{j ∈ N_r(i)} x[j] + b` over relations r, where
/// N_r are the neighbors by relation r.
///
/// With bases, `W_r = Σ_b c(r, b) V_b`. Deterministic, with gradients; PyG's block-diagonal weights
/// are not supported. Schlichtkrull et al., ESWC 2018.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::RgcnConvConfig};
///
/// let device = Device::flex();
/// let cites = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let extends = Graph::from_edges(3, [(2, 0)]).unwrap();
/// let layer = RgcnConvConfig::new(4, 2, 2).init(&device);
/// let y = layer.forward(&[cites, extends], Tensor::ones([3, 4], &device));
/// assert_eq!(y.dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct RgcnConv {
    /// Of relations, or bases.
    weights: Param<Tensor<3>>,
    shares: Option<Param<Tensor<2>>>,
    root: Option<Param<Tensor<2>>>,
    bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    aggregator: Aggregator,
    #[module(skip)]
    relations: usize,
}

impl RgcnConv {
    /// Takes the edges of each relation, between the same nodes: [nodes, d_input] →
    /// [nodes, d_output]. Panics for other sizes, or another number of graphs.
    pub fn forward(&self, graphs: &[Graph], x: Tensor<2>) -> Tensor<2> {
        let (found, expected) = (graphs.len(), self.relations);
        assert!(found == expected, "RgcnConv: {found} graphs for {expected} relations");
        let [bases, from, to] = self.weights.dims();
        let weights = match &self.shares {
            Some(shares) => {
                let flat = self.weights.val().reshape([bases, from * to]);
                shares.val().matmul(flat).reshape([self.relations, from, to])
            }
            None => self.weights.val(),
        };
        let zeros = || Tensor::zeros([x.dims()[0], to], (&x.device(), x.dtype()));
        let y = match &self.root {
            Some(root) => {
                let bias = self.bias.as_ref().map(|bias| bias.val());
                sparsek::dense::linear(x.clone(), root.val(), bias)
            }
            None => match &self.bias {
                Some(bias) => sparsek::dense::add_bias(zeros(), bias.val()),
                None => zeros(),
            },
        };
        graphs.iter().enumerate().fold(y, |y, (relation, graph)| {
            let weight = weights.clone().narrow(0, relation, 1).reshape([from, to]);
            let aggregated = self.aggregator.forward(graph.bipartite(), x.clone());
            y + sparsek::dense::linear(aggregated, weight, None)
        })
    }
}
