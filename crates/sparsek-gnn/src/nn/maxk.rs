//! MaxK layer.
use burn::{module::Module, tensor::Tensor};
use sparsek::{
    sparse::{Compressed, sparse_topk},
    topk::{Method, TopkOptions, topk_mask},
};

/// Configuration of [`MaxK`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxKConfig {
    /// Kept per row.
    pub k: usize,
    /// Default: exact.
    pub method: Method,
}

impl MaxKConfig {
    /// Exact selection of `k`.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            method: Method::Exact,
        }
    }

    /// Sets the method.
    pub fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// Makes the layer, without parameters.
    pub fn init(&self) -> MaxK {
        MaxK { config: *self }
    }
}

/// MaxK: `y[i] = x[i] if i ∈ topk(x) else 0` in each row.
///
/// The gradient reaches kept elements only. Ties go to the lowest index, as in [`sparsek::topk`].
/// Peng et al., *MaxK-GNN*, ASPLOS 2024.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::nn::MaxKConfig;
///
/// let x = Tensor::<2>::from_floats([[1.0, -3.0, 2.0], [-1.0, -2.0, -3.0]], &Device::flex());
/// let y = MaxKConfig::new(1).init().forward(x).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [0.0, 0.0, 2.0, -1.0, 0.0, 0.0]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct MaxK {
    #[module(skip)]
    config: MaxKConfig,
}

impl MaxK {
    /// Applies it, [.., width] → [.., width]; panics when k exceeds the width.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        topk_mask(
            x,
            &TopkOptions::new(self.config.k).with_method(self.config.method),
        )
    }

    /// Selects: [rows, width] → values and columns [rows, k]; panics when k exceeds the width.
    pub fn compress(&self, x: Tensor<2>) -> Compressed {
        sparse_topk(x, self.config.k, self.config.method)
    }
}
