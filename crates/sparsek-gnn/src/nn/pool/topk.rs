use burn::{
    config::Config,
    module::{Module, Param},
    nn::Initializer,
    tensor::{Device, Tensor},
};

use super::{
    select::{check_ratio, keep_best},
    types::Pooled,
};
use crate::graph::GraphBatch;

/// Configures [`TopkPooling`].
#[derive(Config, Debug, PartialEq)]
pub struct TopkPoolingConfig {
    /// Input width.
    pub d_input: usize,
    /// Share to keep, in (0, 1].
    #[config(default = 0.5)]
    pub ratio: f64,
    /// Feature factor.
    #[config(default = 1.0)]
    pub multiplier: f64,
}

impl TopkPoolingConfig {
    /// Initializes the projection uniformly within ±1/√d_input; panics for a ratio outside (0, 1].
    pub fn init(&self, device: &Device) -> TopkPooling {
        check_ratio(self.ratio);
        let bound = (self.d_input as f64).sqrt().recip();
        let uniform = Initializer::Uniform { min: -bound, max: bound };
        TopkPooling {
            projection: uniform.init([1, self.d_input], device),
            ratio: self.ratio,
            multiplier: self.multiplier,
        }
    }
}

/// PyG's `TopKPooling` (Gao and Ji, 2019): keeps ⌈ratio n⌉ nodes per graph by score
/// `s[i] = tanh(p·x[i] / ‖p‖)`, and edges between them; `y[i] = s[i] x[i]`.
///
/// Best first; ties, also after tanh, go to the lower node; NaN is greatest. Gradients pass through
/// kept nodes. The host waits to read the scores.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, graph::GraphBatch, nn::TopkPoolingConfig};
///
/// let device = Device::flex();
/// let path = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let batch = GraphBatch::new(&[&path, &path]).unwrap();
/// let layer = TopkPoolingConfig::new(4).init(&device);
/// let pooled = layer.forward(&batch, Tensor::ones([6, 4], &device));
/// assert_eq!((pooled.x.dims(), &pooled.nodes[..]), ([4, 4], &[0, 1, 3, 4][..]));
/// assert_eq!((pooled.batch.offsets(), pooled.batch.graph().edges()), (&[0, 2, 4][..], 2));
/// # }
/// ```
#[doc(alias = "TopKPooling")]
#[derive(Module, Debug)]
pub struct TopkPooling {
    projection: Param<Tensor<2>>,
    #[module(skip)]
    ratio: f64,
    #[module(skip)]
    multiplier: f64,
}

impl TopkPooling {
    /// [nodes, d_input] → [kept, d_input].
    pub fn forward(&self, batch: &GraphBatch, x: Tensor<2>) -> Pooled {
        let p = self.projection.val();
        let length = p.clone().square().sum_dim(1).sqrt();
        let scores = ((x.clone() * p).sum_dim(1) / length).tanh();
        keep_best(batch, x, scores, self.ratio, self.multiplier)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::TensorData;
    use rstest::rstest;

    use super::*;
    use crate::{
        fixtures::{Alone, alone, device},
        graph::Graph,
    };

    fn layer(config: TopkPoolingConfig, p: [[f32; 2]; 1], device: &Device) -> TopkPooling {
        let mut layer = config.init(device);
        layer.projection = Param::from_tensor(Tensor::from_floats(p, device).require_grad());
        layer
    }

    #[rstest]
    fn scores_select_and_scale(_alone: Alone, device: Device) {
        let device = device.autodiff();
        let cycle = Graph::from_edges(4, (0..4).map(|i| (i, (i + 1) % 4))).unwrap();
        let batch = GraphBatch::new(&[&cycle]).unwrap();
        let config = TopkPoolingConfig::new(2).with_multiplier(2.0);
        let x =
            Tensor::<2>::from_floats([[0.5, 9.0], [2.0, 1.0], [1.0, 3.0], [-4.0, 0.0]], &device)
                .require_grad();
        let pooled = layer(config, [[10.0, 0.0]], &device).forward(&batch, x.clone());
        assert_eq!(pooled.nodes, [1, 2]);
        let [a, b] = [2f32.tanh(), 1f32.tanh()];
        let expected = TensorData::from([[4.0 * a, 2.0 * a], [2.0 * b, 6.0 * b]]);
        pooled.x.clone().into_data().assert_approx_eq::<f32>(&expected, Default::default());
        let scores = TensorData::from([a, b]);
        pooled.scores.into_data().assert_approx_eq::<f32>(&scores, Default::default());
        assert_eq!(
            (pooled.batch.graph().edges(), pooled.batch.graph().neighbors(1)),
            (1, &[0][..])
        );
        let gradient = x.grad(&pooled.x.sum().backward()).unwrap();
        let gradient: Vec<f32> = gradient.into_data().iter::<f32>().collect();
        assert!(gradient[..2].iter().chain(&gradient[6..]).all(|&slope| slope == 0.0));
        assert!(gradient[2..6].iter().all(|&slope| slope != 0.0), "{gradient:?}");
    }

    #[rstest]
    fn graphs_without_nodes_stay(_alone: Alone, device: Device) {
        let [none, one] = [0, 1].map(|nodes| Graph::from_edges(nodes, []).unwrap());
        let layer = TopkPoolingConfig::new(2).init(&device);
        let batch = GraphBatch::new(&[&none, &one, &none]).unwrap();
        let pooled = layer.forward(&batch, Tensor::ones([1, 2], &device));
        assert_eq!(pooled.batch.offsets(), [0, 0, 1, 1]);
        let batch = GraphBatch::new(&[&none]).unwrap();
        let pooled = layer.forward(&batch, Tensor::ones([0, 2], &device));
        assert_eq!((pooled.x.dims(), pooled.nodes.len()), ([0, 2], 0));
    }

    #[rstest]
    #[case(0.0)]
    #[case(2.0)]
    #[case(f64::NAN)]
    #[should_panic(expected = "is not in (0, 1]")]
    fn other_ratios_are_refused(_alone: Alone, #[case] ratio: f64, device: Device) {
        TopkPoolingConfig::new(2).with_ratio(ratio).init(&device);
    }
}
