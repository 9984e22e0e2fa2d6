//! What trains dense rows: linear layers and layer normalisation whose gradients sum over very many rows.

use burn::backend::{Backend, backend_extension, tensor::FloatTensor};

/// Layers of dense rows, `[rows, width]`.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait DenseOps: Backend {
    /// `x · weight`.
    #[fusion(dtype = x, shape = [x[0], weight[1]].into())]
    fn linear_rows(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `x · weight + bias`.
    #[fusion(dtype = x, shape = [x[0], weight[1]].into())]
    fn linear_rows_biased(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// Each row less its mean, divided by its deviation, times gamma, plus beta.
    #[fusion(dtype = x, shape = x)]
    fn layer_norm_rows(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self>;
}

#[cfg(feature = "fusion")]
mod shapes {
    use burn::backend::fusion::custom::TensorSpec;

    pub(super) fn normalised(
        x: &TensorSpec,
        gamma: &TensorSpec,
        _upstream: &TensorSpec,
        _epsilon: &f32,
    ) -> (TensorSpec, TensorSpec) {
        let parameters = [2, gamma.shape[0]];
        (x.clone(), TensorSpec::new(parameters.into(), x.dtype))
    }
}

/// What the gradients of [`DenseOps`] are made of; not differentiable themselves.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait DenseGradientOps: Backend {
    /// `upstream · weightᵀ`.
    #[fusion(dtype = upstream, shape = [upstream[0], weight[0]].into())]
    fn linear_rows_backward(
        weight: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// `xᵀ · upstream`.
    #[fusion(dtype = upstream, shape = [x[1], upstream[1]].into())]
    fn linear_rows_gradient(x: FloatTensor<Self>, upstream: FloatTensor<Self>)
    -> FloatTensor<Self>;

    /// The sum of all rows.
    #[fusion(dtype = x, shape = [x[1]].into())]
    fn column_sums(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// The gradients of [`DenseOps::layer_norm_rows`]: of the rows, and of gamma and beta as the rows of a matrix.
    #[fusion(meta = shapes::normalised)]
    fn layer_norm_rows_gradient(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
        epsilon: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}
