//! The backend operations behind the tensor API, routed by device.

mod aggregate;
mod dense;
mod distance;
mod lists;
mod maximum;
mod members;

use burn::{
    backend::{
        Backend, ExtensionType, backend_extension,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::IntDType,
};
use sparsek_kernels::topk::{Method, TopkOptions};

pub use aggregate::{
    AggregateGradientOps, AggregateOps, CompressedSpec, Factor, Factors, Operator, Stretched,
};
pub use dense::{DenseGradientOps, DenseOps};
pub(crate) use distance::computed;
pub use distance::{
    DistanceGradientOps, DistanceOps, DistanceSpec, NearestSpec, Turned, WithinOps, WithinSpec,
};
pub use lists::{ListOps, Members, Outcome};
pub use maximum::{MaximumGradientOps, MaximumOps};
pub use members::{MemberGradientOps, MemberOps};

/// What a backend selects along the last dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopkSpec {
    /// Elements kept per row.
    pub k: usize,
    /// The greatest elements if true, else the least.
    pub largest: bool,
    /// Output ordered by value, then index; otherwise by index.
    pub sorted: bool,
    /// How the members are found.
    pub method: Method,
    /// Dtype of the indices.
    pub index: IntDType,
}

impl From<&TopkSpec> for TopkOptions {
    fn from(spec: &TopkSpec) -> Self {
        Self {
            k: spec.k,
            largest: spec.largest,
            sorted: spec.sorted,
            method: spec.method,
        }
    }
}

/// How much of each row exists.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Lengths<B: Backend> {
    /// All of it.
    Whole,
    /// Its first elements, as many as this tells: a u32 for each row, at most its length.
    Each(IntTensor<B>),
}

#[cfg(feature = "fusion")]
mod shapes {
    use super::{LengthsMetadata, TopkSpec};
    use burn::{
        backend::fusion::custom::TensorSpec,
        tensor::{DType, Shape},
    };

    pub(super) fn members(
        input: &TensorSpec,
        lengths: &LengthsMetadata,
        spec: &TopkSpec,
    ) -> (TensorSpec, TensorSpec) {
        let indices = indices(input, lengths, spec);
        (TensorSpec::new(indices.shape.clone(), input.dtype), indices)
    }

    pub(super) fn indices(
        input: &TensorSpec,
        _lengths: &LengthsMetadata,
        spec: &TopkSpec,
    ) -> TensorSpec {
        TensorSpec::new(with_last(&input.shape, spec.k), DType::from(spec.index))
    }

    pub(super) fn with_last(shape: &Shape, last: usize) -> Shape {
        let mut shape = shape.clone();
        let rank = shape.num_dims();
        shape[rank - 1] = last;
        shape
    }
}

/// Operations with a gradient. The tensor functions of this crate check their arguments and call them.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait SparsekOps: Backend {
    /// Values and indices of the members of each row.
    #[fusion(meta = shapes::members)]
    fn topk_float(
        input: FloatTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Values and indices of the members of each row.
    #[fusion(meta = shapes::members)]
    fn topk_int(
        input: IntTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>);

    /// Indices of the members of each row.
    #[fusion(meta = shapes::indices)]
    fn argtopk_float(
        input: FloatTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self>;

    /// Indices of the members of each row.
    #[fusion(meta = shapes::indices)]
    fn argtopk_int(
        input: IntTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self>;

    /// The input with everything but the members set to zero.
    #[fusion(dtype = input, shape = input)]
    fn topk_mask(
        input: FloatTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> FloatTensor<Self>;
}

/// What the gradients of [`SparsekOps`] are made of; not differentiable themselves.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait GradientOps: Backend {
    /// [`SparsekOps::topk_mask`] and the indices of the members, in index order.
    #[fusion(meta = |input, lengths, spec| (input.clone(), shapes::indices(input, lengths, spec)))]
    fn topk_mask_indices(
        input: FloatTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Puts `source[.., i]` at `indices[.., i]` of rows of `cols` zeros; nothing where the index is -1.
    #[fusion(dtype = source, shape = shapes::with_last(source, *cols))]
    fn scatter_members(
        source: FloatTensor<Self>,
        indices: IntTensor<Self>,
        cols: usize,
    ) -> FloatTensor<Self>;

    /// `source` with everything but the elements at `indices` set to zero.
    #[fusion(dtype = source, shape = source)]
    fn keep_members(source: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self>;
}
