use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor},
};

use super::{
    super::graph_conv::{GraphConv, GraphConvConfig},
    select::{check_ratio, keep_best},
    types::Pooled,
};
use crate::graph::GraphBatch;

/// Configures [`SagPooling`].
#[derive(Config, Debug, PartialEq)]
pub struct SagPoolingConfig {
    /// Input width.
    pub d_input: usize,
    /// Share to keep, in (0, 1].
    #[config(default = 0.5)]
    pub ratio: f64,
    /// Feature factor.
    #[config(default = 1.0)]
    pub multiplier: f64,
}

impl SagPoolingConfig {
    /// Initializes the parameters; panics for a ratio outside (0, 1].
    pub fn init(&self, device: &Device) -> SagPooling {
        check_ratio(self.ratio);
        SagPooling {
            scores: GraphConvConfig::new(self.d_input, 1).init(device),
            ratio: self.ratio,
            multiplier: self.multiplier,
        }
    }
}

/// PyG's `SAGPooling` (Lee et al., 2019): [`TopkPooling`](super::TopkPooling) with scores
/// `tanh(GraphConv(x))`, which PyG multiplies by the sign of an untrained weight, here 1.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, graph::GraphBatch, nn::SagPoolingConfig};
///
/// let device = Device::flex();
/// let path = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let batch = GraphBatch::new(&[&path, &path]).unwrap();
/// let layer = SagPoolingConfig::new(4).with_ratio(0.3).init(&device);
/// let pooled = layer.forward(&batch, Tensor::ones([6, 4], &device));
/// assert_eq!((pooled.x.dims(), pooled.batch.graphs()), ([2, 4], 2));
/// # }
/// ```
#[doc(alias = "SAGPooling")]
#[derive(Module, Debug)]
pub struct SagPooling {
    scores: GraphConv,
    #[module(skip)]
    ratio: f64,
    #[module(skip)]
    multiplier: f64,
}

impl SagPooling {
    /// [nodes, d_input] → [kept, d_input].
    pub fn forward(&self, batch: &GraphBatch, x: Tensor<2>) -> Pooled {
        let scores = self.scores.forward(batch.graph(), x.clone()).tanh();
        keep_best(batch, x, scores, self.ratio, self.multiplier)
    }
}
