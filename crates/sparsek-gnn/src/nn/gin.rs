//! The graph isomorphism convolution.
use burn::{
    config::Config,
    module::{Module, Param},
    nn::{Initializer, Linear, LinearConfig},
    tensor::{Device, Tensor, activation::relu},
};
use sparsek::sparse::Compressed;

use super::dense::linear;
use crate::{
    Graph,
    aggregate::{aggregate_sum, aggregate_sum_compressed},
};

/// Configuration of the network that a [`GinConv`] applies to its sums: Linear → ReLU → Linear.
#[derive(Config, Debug, PartialEq)]
pub struct GinMlpConfig {
    /// Width of the input rows.
    pub d_input: usize,
    /// Width between the two layers.
    pub d_hidden: usize,
    /// Width of the output rows.
    pub d_output: usize,
}

/// Configuration of a [`GinConv`] layer. The defaults are PyG's, apart from the network, which PyG always asks for.
#[derive(Config, Debug, PartialEq)]
pub struct GinConvConfig {
    /// How much more a node counts than one of its neighbours; where it starts, if it is trained.
    #[config(default = 0.0)]
    pub eps: f64,
    /// Whether eps is trained.
    #[config(default = false)]
    pub train_eps: bool,
    /// What is applied to the sums, if anything.
    pub mlp: Option<GinMlpConfig>,
}

impl GinConvConfig {
    /// Initialises the layer's parameters on the device.
    pub fn init(&self, device: &Device) -> GinConv {
        let start = Initializer::Constant { value: self.eps };
        let linear = |from, to| LinearConfig::new(from, to).init(device);
        GinConv {
            trained: self.train_eps.then(|| start.init([1], device)),
            mlp: self.mlp.as_ref().map(|mlp| GinMlp {
                first: linear(mlp.d_input, mlp.d_hidden),
                second: linear(mlp.d_hidden, mlp.d_output),
            }),
            eps: self.eps,
        }
    }
}

/// GIN: `y[i] = f((1 + ε) x[i] + Σ_{j ∈ N(i)} x[j])`, f being a small network, or nothing.
///
/// Xu, Hu, Leskovec and Jegelka, *How Powerful are Graph Neural Networks?*, ICLR 2019; as PyG's `GINConv`.
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
    #[module(skip)]
    eps: f64,
}

#[derive(Module, Debug)]
struct GinMlp {
    first: Linear,
    second: Linear,
}

impl GinConv {
    /// Applies the layer. Shapes: x is [nodes, d_input], the result [nodes, d_output], d_input without a network.
    ///
    /// # Panics
    /// When x does not have a row for every node, or not the columns that the network takes.
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let joined = aggregate_sum(graph, x.clone());
        self.finish(joined, x)
    }

    /// [`GinConv::forward`] of rows of which only some elements are kept.
    ///
    /// # Panics
    /// As [`GinConv::forward`].
    pub fn forward_compressed(&self, graph: &Graph, x: &Compressed) -> Tensor<2> {
        let joined = aggregate_sum_compressed(graph, x);
        self.finish(joined, x.to_dense())
    }

    fn finish(&self, joined: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        let own = match &self.trained {
            Some(eps) => x.clone() + x * eps.val().unsqueeze(),
            None if self.eps == 0.0 => x,
            None => x * (1.0 + self.eps),
        };
        let y = joined + own;
        match &self.mlp {
            Some(mlp) => linear(&mlp.second, relu(linear(&mlp.first, y))),
            None => y,
        }
    }
}
