use burn::{
    config::Config,
    module::{Module, Param},
    nn::{Initializer, Linear, LinearConfig},
    tensor::{Device, Tensor},
};
use sparsek::{dense::add_bias, sparse::spmm_with};

use super::dense::linear;
use crate::graph::Graph;

/// Configures [`ChebConv`].
#[derive(Config, Debug, PartialEq)]
pub struct ChebConvConfig {
    /// Input width.
    pub d_input: usize,
    /// Output width.
    pub d_output: usize,
    /// Terms K.
    pub terms: usize,
    /// Adds a bias.
    #[config(default = true)]
    pub bias: bool,
}

impl ChebConvConfig {
    /// Initializes Glorot-uniform weights, zero bias; panics without terms.
    pub fn init(&self, device: &Device) -> ChebConv {
        assert!(self.terms > 0, "terms must be at least 1");
        let term = |_| {
            LinearConfig::new(self.d_input, self.d_output)
                .with_bias(false)
                .with_initializer(Initializer::XavierUniform { gain: 1.0 })
                .init(device)
        };
        ChebConv {
            terms: (0..self.terms).map(term).collect(),
            bias: self.bias.then(|| Initializer::Zeros.init([self.d_output], device)),
        }
    }
}

/// PyG's `ChebConv` (Defferrard et al., 2016), `sym`: `Y = Σ_{k<K} Z_k W_k + b`,
/// `Z₀ = X`, `Z₁ = L̂ X`, `Z_k = 2 L̂ Z_{k-1} - Z_{k-2}`, `L̂ = -D^{-1/2} A D^{-1/2}`.
///
/// A omits loops, D counts outgoing edges; `lambda_max` is 2.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::ChebConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = ChebConvConfig::new(4, 2, 3).init(&device);
/// assert_eq!(layer.forward(&graph, Tensor::ones([3, 4], &device)).dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct ChebConv {
    terms: Vec<Linear>,
    bias: Option<Param<Tensor<1>>>,
}

impl ChebConv {
    /// [nodes, d_input] → [nodes, d_output].
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let (device, dtype) = (x.device(), x.dtype());
        let graph = graph.without_self_loops();
        let (adjacency, scaling) = (graph.adjacency(&device), graph.out_scaling(&device, dtype));
        let laplacian = |z: Tensor<2>| spmm_with(&adjacency, z, &scaling).neg();
        let mut y = linear(&self.terms[0], x.clone());
        let (mut before, mut z) = (x.clone(), x);
        for (k, term) in (1..).zip(&self.terms[1..]) {
            let next = match k {
                1 => laplacian(z.clone()),
                _ => laplacian(z.clone()) * 2.0 - before,
            };
            (before, z) = (z, next);
            y = y + linear(term, z.clone());
        }
        match &self.bias {
            Some(bias) => add_bias(y, bias.val()),
            None => y,
        }
    }
}
