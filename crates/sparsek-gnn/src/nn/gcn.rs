//! The graph convolution of Kipf and Welling.
use burn::{
    config::Config,
    module::{Module, Param},
    nn::{Initializer, Linear, LinearConfig},
    tensor::{Device, Tensor},
};
use sparsek::sparse::Compressed;

use super::dense::linear;
use crate::{
    Graph,
    aggregate::{
        aggregate_normalised, aggregate_normalised_compressed, aggregate_weighted_normalised,
        aggregate_weighted_normalised_compressed,
    },
    graph::Norm,
};

/// Configuration of a [`GcnConv`] layer. The defaults are PyG's.
#[derive(Config, Debug, PartialEq)]
pub struct GcnConvConfig {
    /// Width of the input rows.
    pub d_input: usize,
    /// Width of the output rows.
    pub d_output: usize,
    /// How messages are weighed.
    #[config(default = "Norm::Both")]
    pub norm: Norm,
    /// Whether every node has an edge to itself, beside those of the graph.
    #[config(default = true)]
    pub self_loops: bool,
    /// Whether loops that are added weigh 2 instead of 1.
    #[config(default = false)]
    pub improved: bool,
    /// Whether there is a weight; without it d_input must be d_output.
    #[config(default = true)]
    pub weight: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
}

impl GcnConvConfig {
    /// Initialises the layer's parameters on the device: the weight as Glorot and Bengio have it, the bias zero.
    ///
    /// # Panics
    /// When there is no weight, and the widths differ.
    pub fn init(&self, device: &Device) -> GcnConv {
        let (d_input, d_output) = (self.d_input, self.d_output);
        assert!(
            self.weight || d_input == d_output,
            "a layer without a weight turns {d_input} columns into as many, not into {d_output}"
        );
        let linear = LinearConfig::new(d_input, d_output)
            .with_bias(false)
            .with_initializer(Initializer::XavierUniform { gain: 1.0 });
        GcnConv {
            linear: self.weight.then(|| linear.init(device)),
            bias: self
                .bias
                .then(|| Initializer::Zeros.init([d_output], device)),
            norm: self.norm,
            self_loops: self.self_loops,
            loops: if self.improved { 2.0 } else { 1.0 },
        }
    }
}

/// GCN: `y[i] = Σ_{e = (j → i)} w[e] c(i, j) W x[j] + b`, over the edges and, by default, one loop of every node; `c` is a [`Norm`].
///
/// Kipf and Welling, *Semi-Supervised Classification with Graph Convolutional Networks*, ICLR 2017; as PyG's `GCNConv`, and the
/// norms `left`, `right` and `none` of DGL's `GraphConv`. Loops that the graph has keep their weight; of several of one node the
/// last does.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::GcnConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = GcnConvConfig::new(4, 2).init(&device);
/// assert_eq!(layer.forward(&graph, Tensor::ones([3, 4], &device)).dims(), [3, 2]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct GcnConv {
    linear: Option<Linear>,
    bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    norm: Norm,
    #[module(skip)]
    self_loops: bool,
    #[module(skip)]
    loops: f64,
}

impl GcnConv {
    /// Applies the layer. Shapes: x is [nodes, d_input], the result [nodes, d_output].
    ///
    /// # Panics
    /// When x does not have a row for every node, or not d_input columns.
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        if self.weighs_loops(graph) {
            let weights = Tensor::ones([graph.edges()], (&x.device(), x.dtype()));
            return self.forward_weighted(graph, x, weights);
        }
        let (graph, x) = (self.looped(graph), self.transform(x));
        let joined = aggregate_normalised(&graph, self.norm, self.loops(), x);
        self.add_bias(joined)
    }

    /// [`GcnConv::forward`] of rows of which only some elements are kept. The weight comes after the sum, which is the same but for
    /// rounding.
    ///
    /// # Panics
    /// As [`GcnConv::forward`].
    pub fn forward_compressed(&self, graph: &Graph, x: &Compressed) -> Tensor<2> {
        if self.weighs_loops(graph) {
            let weights = Tensor::ones([graph.edges()], (&x.values().device(), x.dtype()));
            return self.forward_weighted_compressed(graph, x, weights);
        }
        let graph = self.looped(graph);
        let joined = aggregate_normalised_compressed(&graph, self.norm, self.loops(), x);
        self.add_bias(self.transform(joined))
    }

    /// Applies the layer to a graph whose edges have weights, `[edges]` in CSR order and in the dtype of x.
    ///
    /// # Panics
    /// As [`GcnConv::forward`], and when the weights are not as many as the edges.
    pub fn forward_weighted(&self, graph: &Graph, x: Tensor<2>, weights: Tensor<1>) -> Tensor<2> {
        let weights = self.looped_weights(graph, weights);
        let (graph, x) = (self.looped(graph), self.transform(x));
        let joined = aggregate_weighted_normalised(&graph, self.norm, weights, x);
        self.add_bias(joined)
    }

    /// [`GcnConv::forward_weighted`] of rows of which only some elements are kept.
    ///
    /// # Panics
    /// As [`GcnConv::forward_weighted`].
    pub fn forward_weighted_compressed(
        &self,
        graph: &Graph,
        x: &Compressed,
        weights: Tensor<1>,
    ) -> Tensor<2> {
        let weights = self.looped_weights(graph, weights);
        let graph = self.looped(graph);
        let joined = aggregate_weighted_normalised_compressed(&graph, self.norm, weights, x);
        self.add_bias(self.transform(joined))
    }

    fn looped_weights(&self, graph: &Graph, weights: Tensor<1>) -> Tensor<1> {
        match self.self_loops {
            true => graph.looped_weights(weights, self.loops),
            false => weights,
        }
    }

    /// Whether some loops weigh 1, which the graph has, and those that are added do not.
    fn weighs_loops(&self, graph: &Graph) -> bool {
        self.self_loops && self.loops != 1.0 && graph.has_self_loops()
    }

    fn looped(&self, graph: &Graph) -> Graph {
        match self.self_loops {
            true => graph.with_self_loops(),
            false => graph.clone(),
        }
    }

    /// The weight of a loop, of a graph without weights.
    fn loops(&self) -> f64 {
        if self.self_loops { self.loops } else { 1.0 }
    }

    fn transform(&self, x: Tensor<2>) -> Tensor<2> {
        match &self.linear {
            Some(layer) => linear(layer, x),
            None => x,
        }
    }

    fn add_bias(&self, y: Tensor<2>) -> Tensor<2> {
        match &self.bias {
            Some(bias) => y + bias.val().unsqueeze(),
            None => y,
        }
    }
}
