//! The greatest of the rows that a pattern names.

use burn::backend::{
    Backend, backend_extension,
    tensor::{FloatTensor, IntTensor},
};

#[cfg(feature = "fusion")]
mod shapes {
    use burn::{backend::fusion::custom::TensorSpec, tensor::DType};

    pub(super) fn winners(
        x: &TensorSpec,
        indptr: &TensorSpec,
        _indices: &TensorSpec,
    ) -> (TensorSpec, TensorSpec) {
        let shape = [indptr.shape[0] - 1, x.shape[1]];
        (
            TensorSpec::new(shape.into(), x.dtype),
            TensorSpec::new(shape.into(), DType::I32),
        )
    }
}

/// Aggregation by the maximum, with a gradient.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait MaximumOps: Backend {
    /// The greatest of the rows of `x` that each row of a pattern names, element by element; the transposed pattern, with the
    /// entry that each of its entries came from, serves the gradient.
    #[fusion(dtype = x, shape = [indptr[0] - 1, x[1]].into())]
    fn spmm_max(
        x: FloatTensor<Self>,
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
        transposed_indptr: IntTensor<Self>,
        transposed_indices: IntTensor<Self>,
        transposed_entries: IntTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// What the gradient of [`MaximumOps`] is made of; not differentiable itself.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait MaximumGradientOps: Backend {
    /// [`MaximumOps::spmm_max`], and which entry each element comes from (`i32`, -1 for none).
    #[fusion(meta = shapes::winners)]
    fn spmm_max_winners(
        x: FloatTensor<Self>,
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Sums of `upstream` over the entries that won, by the transposed pattern.
    #[fusion(dtype = upstream, shape = [transposed_indptr[0] - 1, upstream[1]].into())]
    fn spmm_max_gradient(
        upstream: FloatTensor<Self>,
        winners: IntTensor<Self>,
        transposed_indptr: IntTensor<Self>,
        transposed_indices: IntTensor<Self>,
        transposed_entries: IntTensor<Self>,
    ) -> FloatTensor<Self>;
}
