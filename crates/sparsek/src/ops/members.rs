//! Linear layers of compressed rows.

use burn::backend::{
    Backend, backend_extension,
    tensor::{FloatTensor, IntTensor},
};

/// Layers of compressed rows: `[rows, k]` values and their columns, ascending in each row.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait MemberOps: Backend {
    /// The compressed rows as a matrix, times `weight`.
    #[fusion(dtype = values, shape = [values[0], weight[1]].into())]
    fn linear_members(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// What the gradients of [`MemberOps`] are made of; not differentiable themselves.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait MemberGradientOps: Backend {
    /// With respect to the values: `upstream · weightᵀ` at the columns.
    #[fusion(dtype = upstream, shape = columns)]
    fn linear_members_gradient(
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// With respect to the weight, of `width` rows.
    #[fusion(dtype = upstream, shape = [*width, upstream[1]].into())]
    fn linear_members_weight_gradient(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self>;
}
