use burn::{
    config::Config,
    module::{Module, Param},
    nn::Initializer,
    tensor::{Device, Tensor},
};

/// Configures [`GraphNorm`].
#[derive(Config, Debug, PartialEq)]
pub struct GraphNormConfig {
    /// Width.
    pub width: usize,
    /// Added to the variance.
    #[config(default = 1e-5)]
    pub epsilon: f64,
}

impl GraphNormConfig {
    /// Initializes α = γ = 1, β = 0.
    pub fn init(&self, device: &Device) -> GraphNorm {
        let all = |value: f64| Initializer::Constant { value }.init([1, self.width], device);
        GraphNorm { weight: all(1.0), bias: all(0.0), mean_scale: all(1.0), epsilon: self.epsilon }
    }
}

/// PyG's `GraphNorm` (Cai et al., 2021) of one graph. Per column: `c = x - α mean x`,
/// `y = γ c / √(mean c² + ε) + β`.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::nn::GraphNormConfig;
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_floats([[1.0], [5.0]], &device);
/// let y = GraphNormConfig::new(1).init(&device).forward(x);
/// let y = y.try_into_vec_as::<f32>().unwrap();
/// assert!((y[0] + 1.0).abs() < 1e-5 && (y[1] - 1.0).abs() < 1e-5);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct GraphNorm {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<2>>,
    mean_scale: Param<Tensor<2>>,
    #[module(skip)]
    epsilon: f64,
}

impl GraphNorm {
    /// [nodes, width] → [nodes, width].
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let mean = x.clone().mean_dim(0) * self.mean_scale.val();
        let centered = x - mean;
        let variance = centered.clone().square().mean_dim(0);
        let scale = self.weight.val() / (variance + self.epsilon).sqrt();
        centered * scale + self.bias.val()
    }
}
