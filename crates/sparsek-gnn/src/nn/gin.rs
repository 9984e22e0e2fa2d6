use burn::{
    config::Config,
    module::{Module, Param},
    nn::{Initializer, Linear, LinearConfig},
    tensor::{Device, Tensor, activation::relu},
};
use sparsek::sparse::Compressed;

use super::{
    aggregate::aggregate_sum_compressed,
    aggregator::Aggregator,
    constant::Constant,
    dense::{linear, scaled},
};
use crate::graph::{BipartiteGraph, Graph};

/// Linear → ReLU → Linear.
#[derive(Config, Debug, PartialEq)]
pub struct GinMlpConfig {
    /// Input width.
    pub d_input: usize,
    /// Hidden width.
    pub d_hidden: usize,
    /// Output width.
    pub d_output: usize,
}

/// Configures [`GinConv`].
#[derive(Config, Debug, PartialEq)]
pub struct GinConvConfig {
    /// ε, initial if trained.
    #[config(default = 0.0)]
    pub eps: f64,
    /// Trains ε.
    #[config(default = false)]
    pub train_eps: bool,
    /// Optional network f.
    pub mlp: Option<GinMlpConfig>,
}

impl GinConvConfig {
    /// Initializes the parameters.
    pub fn init(&self, device: &Device) -> GinConv {
        let start = Initializer::Constant { value: self.eps };
        let linear = |from, to| LinearConfig::new(from, to).init(device);
        GinConv {
            trained: self.train_eps.then(|| start.init([1], device)),
            mlp: self.mlp.as_ref().map(|mlp| GinMlp {
                first: linear(mlp.d_input, mlp.d_hidden),
                second: linear(mlp.d_hidden, mlp.d_output),
            }),
            eps: Constant(self.eps),
        }
    }
}

/// PyG's `GINConv` (Xu et al., 2019): `y[i] = f((1 + ε) x[i] + Σ_{j→i} x[j])`, f a network
/// or identity.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::GinConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = GinConvConfig::new().with_train_eps(true).init(&device);
/// let y = layer.forward(&graph, Tensor::from_floats([[1.0], [2.0], [4.0]], &device));
/// assert_eq!(y.try_into_vec_as::<f32>().unwrap(), [1.0, 3.0, 6.0]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct GinConv {
    trained: Option<Param<Tensor<1>>>,
    mlp: Option<GinMlp>,
    eps: Constant,
}

#[derive(Module, Debug)]
struct GinMlp {
    first: Linear,
    second: Linear,
}

impl GinConv {
    /// [nodes, d_input] → [nodes, d_output] (d_input without network).
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        self.forward_bipartite(graph.bipartite(), x.clone(), x)
    }

    /// [sources, d_input], [targets, d_input] → [targets, d_output], as
    /// [`forward`](Self::forward).
    pub fn forward_bipartite(
        &self,
        edges: &BipartiteGraph,
        sources: Tensor<2>,
        targets: Tensor<2>,
    ) -> Tensor<2> {
        edges.check_targets("GinConv", &targets);
        self.finish(Aggregator::Sum.forward(edges, sources), targets)
    }

    /// Compressed [`GinConv::forward`].
    pub fn forward_compressed(&self, graph: &Graph, x: &Compressed) -> Tensor<2> {
        let aggregated = aggregate_sum_compressed(graph, x);
        self.finish(aggregated, x.to_dense())
    }

    fn finish(&self, aggregated: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        let root = match &self.trained {
            Some(eps) => x.clone() + scaled(x, eps.val()),
            None if self.eps.0 == 0.0 => x,
            None => x * (1.0 + self.eps.0),
        };
        let y = aggregated + root;
        match &self.mlp {
            Some(mlp) => linear(&mlp.second, relu(linear(&mlp.first, y))),
            None => y,
        }
    }
}
