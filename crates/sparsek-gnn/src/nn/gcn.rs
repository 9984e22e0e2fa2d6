use burn::{
    config::Config,
    module::{Module, Param},
    nn::{Initializer, Linear, LinearConfig},
    tensor::{Device, Tensor},
};
use sparsek::{dense::add_bias, sparse::Compressed};

use super::{
    aggregate::{
        aggregate_normalized, aggregate_normalized_compressed, aggregate_weighted_normalized,
        aggregate_weighted_normalized_compressed,
    },
    dense::linear,
};
use crate::graph::{Graph, Norm};

/// Configures [`GcnConv`].
#[derive(Config, Debug, PartialEq)]
pub struct GcnConvConfig {
    /// Input width.
    pub d_input: usize,
    /// Output width.
    pub d_output: usize,
    /// Message norm.
    #[config(default = "Norm::Both")]
    pub norm: Norm,
    /// One self-loop per node.
    #[config(default = true)]
    pub self_loops: bool,
    /// Added loops weigh 2, not 1.
    #[config(default = false)]
    pub improved: bool,
    /// Has a weight.
    #[config(default = true)]
    pub weight: bool,
    /// Adds a bias.
    #[config(default = true)]
    pub bias: bool,
}

impl GcnConvConfig {
    /// Initializes Glorot-uniform weight, zero bias; without a weight, panics for different widths.
    pub fn init(&self, device: &Device) -> GcnConv {
        let (d_input, d_output) = (self.d_input, self.d_output);
        assert!(
            self.weight || d_input == d_output,
            "without a weight, d_output must be d_input: {d_output} is not {d_input}"
        );
        let linear = LinearConfig::new(d_input, d_output)
            .with_bias(false)
            .with_initializer(Initializer::XavierUniform { gain: 1.0 });
        GcnConv {
            linear: self.weight.then(|| linear.init(device)),
            bias: self.bias.then(|| Initializer::Zeros.init([d_output], device)),
            norm: self.norm,
            self_loops: self.self_loops,
            loops: if self.improved { 2.0 } else { 1.0 },
        }
    }
}

/// PyG's `GCNConv` (Kipf and Welling, 2017): `y[i] = Σ_{e: j→i} w[e] c(i,j) W x[j] + b`,
/// with [`Norm`] c: `left`, `right` and `none` as in DGL's `GraphConv`.
///
/// With self-loops, a node keeps its last loop and weight, or gets one.
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
    /// [nodes, d_input] → [nodes, d_output].
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        if self.weighs_loops(graph) {
            let weights = Tensor::ones([graph.edges()], (&x.device(), x.dtype()));
            return self.forward_weighted(graph, x, weights);
        }
        let (graph, x) = (self.looped(graph), self.transform(x));
        let aggregated = aggregate_normalized(&graph, self.norm, self.loops(), x);
        self.add_bias(aggregated)
    }

    /// Takes compressed rows. The weight follows the sum; rounding differs.
    pub fn forward_compressed(&self, graph: &Graph, x: &Compressed) -> Tensor<2> {
        if self.weighs_loops(graph) {
            let weights = Tensor::ones([graph.edges()], (&x.values().device(), x.dtype()));
            return self.forward_weighted_compressed(graph, x, weights);
        }
        let graph = self.looped(graph);
        let aggregated = aggregate_normalized_compressed(&graph, self.norm, self.loops(), x);
        self.add_bias(self.transform(aggregated))
    }

    /// Takes `[edges]` weights.
    pub fn forward_weighted(&self, graph: &Graph, x: Tensor<2>, weights: Tensor<1>) -> Tensor<2> {
        let weights = self.looped_weights(graph, weights);
        let (graph, x) = (self.looped(graph), self.transform(x));
        let aggregated = aggregate_weighted_normalized(&graph, self.norm, weights, x);
        self.add_bias(aggregated)
    }

    /// Compressed [`GcnConv::forward_weighted`].
    pub fn forward_weighted_compressed(
        &self,
        graph: &Graph,
        x: &Compressed,
        weights: Tensor<1>,
    ) -> Tensor<2> {
        let weights = self.looped_weights(graph, weights);
        let graph = self.looped(graph);
        let aggregated = aggregate_weighted_normalized_compressed(&graph, self.norm, weights, x);
        self.add_bias(self.transform(aggregated))
    }

    fn looped_weights(&self, graph: &Graph, weights: Tensor<1>) -> Tensor<1> {
        match self.self_loops {
            true => graph.looped_weights(weights, self.loops),
            false => weights,
        }
    }

    fn weighs_loops(&self, graph: &Graph) -> bool {
        self.self_loops && self.loops != 1.0 && graph.has_self_loops()
    }

    fn looped(&self, graph: &Graph) -> Graph {
        match self.self_loops {
            true => graph.with_self_loops(),
            false => graph.clone(),
        }
    }

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
            Some(bias) => add_bias(y, bias.val()),
            None => y,
        }
    }
}
