use burn::{
    config::Config,
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor},
};

use super::{
    dense::linear,
    gcn::{GcnConv, GcnConvConfig},
};
use crate::graph::Graph;

/// Configures [`SgConv`].
#[derive(Config, Debug, PartialEq)]
pub struct SgConvConfig {
    /// Input width.
    pub d_input: usize,
    /// Output width.
    pub d_output: usize,
    /// Hops K.
    #[config(default = 1)]
    pub hops: usize,
    /// One self-loop per node.
    #[config(default = true)]
    pub self_loops: bool,
    /// Adds a bias.
    #[config(default = true)]
    pub bias: bool,
}

impl SgConvConfig {
    /// Initializes the parameters.
    pub fn init(&self, device: &Device) -> SgConv {
        let linear = LinearConfig::new(self.d_input, self.d_output).with_bias(self.bias);
        SgConv {
            hop: hop(self.d_input, self.self_loops, device),
            linear: linear.init(device),
            hops: self.hops,
        }
    }
}

pub(super) fn hop(width: usize, self_loops: bool, device: &Device) -> GcnConv {
    let config = GcnConvConfig::new(width, width).with_self_loops(self_loops);
    config.with_weight(false).with_bias(false).init(device)
}

/// PyG's `SGConv` (Wu et al., 2019): `Y = Âᴷ X W + b`; Â is [`GcnConv`]'s matrix.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::SgConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = SgConvConfig::new(4, 2).with_hops(2).init(&device);
/// assert_eq!(layer.forward(&graph, Tensor::ones([3, 4], &device)).dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct SgConv {
    hop: GcnConv,
    linear: Linear,
    #[module(skip)]
    hops: usize,
}

impl SgConv {
    /// [nodes, d_input] → [nodes, d_output].
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let x = (0..self.hops).fold(x, |x, _| self.hop.forward(graph, x));
        linear(&self.linear, x)
    }

    /// Takes `[edges]` weights.
    pub fn forward_weighted(&self, graph: &Graph, x: Tensor<2>, weights: Tensor<1>) -> Tensor<2> {
        let hop = |x, _| self.hop.forward_weighted(graph, x, weights.clone());
        linear(&self.linear, (0..self.hops).fold(x, hop))
    }
}
