use burn::{config::Config, tensor::Tensor};
use sparsek::dense::column_sums;

use super::dense::scaled;

/// PyG's `PairNorm` (Zhao and Akoglu, 2020): with `c = x - mean x` over nodes,
/// `y = s c / √(ε + mean_i ‖c[i]‖²)`, or individually `y[i] = s c[i] / (ε + ‖c[i]‖)`.
///
/// Keeps total squared distances of nodes constant.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::nn::PairNorm;
///
/// let x = Tensor::<2>::from_floats([[1.0, 0.0], [5.0, 0.0]], &Device::flex());
/// let y = PairNorm::new().forward(x).try_into_vec_as::<f32>().unwrap();
/// assert!((y[0] + 1.0).abs() < 1e-5 && (y[2] - 1.0).abs() < 1e-5);
/// # }
/// ```
#[derive(Config, Debug, PartialEq)]
pub struct PairNorm {
    /// Scale s.
    #[config(default = 1.0)]
    pub scale: f64,
    /// Scales each row by its own norm.
    #[config(default = false)]
    pub individually: bool,
    /// ε.
    #[config(default = 1e-5)]
    pub epsilon: f64,
}

impl PairNorm {
    /// [nodes, width] → [nodes, width]; individually, rows at the mean get gradient 0.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let centered = x.clone() - x.mean_dim(0);
        let squares = centered.clone().square().sum_dim(1);
        if self.individually {
            // √ has infinite slope at 0.
            return centered * self.scale / (squares.clamp_min(1e-24).sqrt() + self.epsilon);
        }
        let mean = column_sums(squares) / centered.dims()[0] as f64;
        scaled(centered, (mean + self.epsilon).sqrt().recip() * self.scale)
    }
}
