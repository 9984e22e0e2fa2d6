use burn::{
    config::Config,
    module::Module,
    nn::{Initializer, Linear, LinearConfig},
    tensor::{
        Device, Tensor,
        activation::{sigmoid, tanh},
    },
};

use super::super::dense::{linear, linear_added};
use crate::graph::GraphBatch;

/// Configures [`Set2Set`].
#[derive(Config, Debug, PartialEq)]
pub struct Set2SetConfig {
    /// Input width.
    pub d_input: usize,
    /// Steps T.
    pub steps: usize,
}

impl Set2SetConfig {
    /// Initializes the LSTM uniformly within ±1/√d_input, as PyTorch.
    pub fn init(&self, device: &Device) -> Set2Set {
        let bound = (self.d_input as f64).sqrt().recip();
        let gates = |width: usize| {
            LinearConfig::new(width, 4 * self.d_input)
                .with_initializer(Initializer::Uniform { min: -bound, max: bound })
                .init(device)
        };
        Set2Set { input: gates(2 * self.d_input), hidden: gates(self.d_input), steps: self.steps }
    }
}

/// PyG's `Set2Set` (Vinyals et al., 2016), one LSTM layer. T times from `q* = 0`:
/// `q = LSTM(q*)`, `α = softmax_i(x[i]·q)`, `q* = q ‖ Σ α[i] x[i]` over a graph's nodes.
///
/// Without nodes, the sum is 0.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, graph::GraphBatch, nn::Set2SetConfig};
///
/// let device = Device::flex();
/// let path = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let batch = GraphBatch::new(&[&path, &path]).unwrap();
/// let layer = Set2SetConfig::new(4, 3).init(&device);
/// assert_eq!(layer.forward(&batch, Tensor::ones([6, 4], &device)).dims(), [2, 8]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct Set2Set {
    /// Input, forget, cell and output gate.
    input: Linear,
    hidden: Linear,
    #[module(skip)]
    steps: usize,
}

impl Set2Set {
    /// [nodes, d_input] → [graphs, 2 × d_input].
    pub fn forward(&self, batch: &GraphBatch, x: Tensor<2>) -> Tensor<2> {
        let (device, dtype, [_, width]) = (x.device(), x.dtype(), x.dims());
        let readout = batch.readout(&device);
        let zeros = |width| Tensor::zeros([batch.graphs(), width], (&device, dtype));
        let (mut query, mut cell, mut joined) = (zeros(width), zeros(width), zeros(2 * width));
        for _ in 0..self.steps {
            let gates = linear_added(&self.input, joined, linear(&self.hidden, query));
            let gate = |at: usize| gates.clone().narrow(1, at * width, width);
            cell = sigmoid(gate(1)) * cell + sigmoid(gate(0)) * tanh(gate(2));
            query = sigmoid(gate(3)) * tanh(cell.clone());
            let scores = (x.clone() * readout.gather_targets(query.clone())).sum_dim(1);
            let weights = readout.edge_softmax(scores);
            let sums = readout.propagate(weights, x.clone().unsqueeze_dim(1));
            joined = Tensor::cat(vec![query.clone(), sums.reshape([batch.graphs(), width])], 1);
        }
        joined
    }
}
