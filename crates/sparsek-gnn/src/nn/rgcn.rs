use burn::{
    config::Config,
    module::{Module, Param},
    nn::Initializer,
    tensor::{Device, Tensor},
};

use super::aggregator::Aggregator;
use crate::graph::Graph;

/// Configures [`RgcnConv`].
#[derive(Config, Debug, PartialEq)]
pub struct RgcnConvConfig {
    /// Input width.
    pub d_input: usize,
    /// Output width.
    pub d_output: usize,
    /// Relations.
    pub relations: usize,
    /// Shared weights, combined per relation.
    pub bases: Option<usize>,
    /// Neighbor reduction per relation.
    #[config(default = "Aggregator::Mean")]
    pub aggregator: Aggregator,
    /// Adds a root transform.
    #[config(default = true)]
    pub root_weight: bool,
    /// Adds a bias.
    #[config(default = true)]
    pub bias: bool,
}

impl RgcnConvConfig {
    /// Initializes Glorot-uniform weights, zero bias; panics without relations or bases.
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

/// PyG's `RGCNConv` (Schlichtkrull et al., 2018):
/// `y[i] = W x[i] + Σ_r W_r agg_{j∈N_r(i)} x[j] + b`; with bases, `W_r = Σ_b c(r,b) V_b`. No
/// block-diagonal weights.
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
    /// [nodes, d_input] → [nodes, d_output]; panics unless each relation has a graph.
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
