use burn::{config::Config, tensor::Tensor};

/// PyG's `JumpingKnowledge` (Xu et al., 2018), `cat` and `max`.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::nn::JumpingKnowledge;
///
/// let of = |x: [[f32; 2]; 1]| Tensor::<2>::from_floats(x, &Device::flex());
/// let y = JumpingKnowledge::Max.forward(vec![of([[1.0, 4.0]]), of([[3.0, 2.0]])]);
/// assert_eq!(y.try_into_vec_as::<f32>().unwrap(), [3.0, 4.0]);
/// # }
/// ```
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum JumpingKnowledge {
    /// Concatenation; widths may differ.
    Cat,
    /// Maximum; same widths.
    Max,
}

impl JumpingKnowledge {
    /// Each [nodes, d] → [nodes, layers × d] or [nodes, d]; panics without layers.
    pub fn forward(&self, layers: Vec<Tensor<2>>) -> Tensor<2> {
        match self {
            Self::Cat => Tensor::cat(layers, 1),
            Self::Max => {
                let all = Tensor::stack::<3>(layers, 2).max_dim(2);
                let [nodes, width, _] = all.dims();
                all.reshape([nodes, width])
            }
        }
    }
}
