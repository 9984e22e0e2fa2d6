//! Row-wise selections.

use std::sync::mpsc::Sender;

use burn::{
    backend::{
        Backend, ExtensionType, backend_extension,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{IntDType, TensorData},
};
#[cfg(feature = "cubecl")]
use cubecl::{client::Client, server::Handle};
use sparsek_kernels::topk::{Method, TopkOptions};

/// A selection along the last dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopkSpec {
    /// Elements kept per row.
    pub k: usize,
    /// Select the greatest elements, else the least.
    pub largest: bool,
    /// Order by value, then index; else by index.
    pub sorted: bool,
    /// Selection method.
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

/// Valid length of each row.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Lengths<B: Backend> {
    /// All elements are valid.
    Whole,
    /// The first elements of each row are valid: one u32 count per row, at most its length.
    Each(IntTensor<B>),
}

/// Selected elements of a vector and their positions.
pub enum SelectedBuffers {
    /// Device memory, valid once the queued kernels have run.
    #[cfg(feature = "cubecl")]
    Device {
        /// Client of the device.
        client: Client,
        /// Selected elements.
        values: Handle,
        /// Their positions.
        positions: Handle,
    },
    /// Host memory.
    Host {
        /// Selected elements.
        values: TensorData,
        /// Their positions.
        positions: TensorData,
    },
}

/// Selected elements, or the reason of a failure.
pub type Outcome = Result<SelectedBuffers, String>;

#[cfg(feature = "fusion")]
mod shapes {
    use super::{LengthsMetadata, TopkSpec};
    use burn::{
        backend::fusion::custom::TensorSpec,
        tensor::{DType, Shape},
    };

    pub(super) fn selected(
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

/// Selections with a gradient.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait TopkOps: Backend {
    /// Values and indices of the selected elements of each row.
    #[fusion(meta = shapes::selected)]
    fn topk_float(
        input: FloatTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// [`topk_float`](Self::topk_float) of integers.
    #[fusion(meta = shapes::selected)]
    fn topk_int(
        input: IntTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>);

    /// Indices of the selected elements of each row.
    #[fusion(meta = shapes::indices)]
    fn argtopk_float(
        input: FloatTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self>;

    /// [`argtopk_float`](Self::argtopk_float) of integers.
    #[fusion(meta = shapes::indices)]
    fn argtopk_int(
        input: IntTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self>;

    /// Sets everything but the selected elements to zero.
    #[fusion(dtype = input, shape = input)]
    fn topk_mask(
        input: FloatTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> FloatTensor<Self>;
}

/// Parts of the gradients of [`TopkOps`] and of sharded selections. Not differentiable.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait TopkGradientOps: Backend {
    /// [`TopkOps::topk_mask`] and the selected indices, ascending.
    #[fusion(meta = |input, lengths, spec| (input.clone(), shapes::indices(input, lengths, spec)))]
    fn topk_mask_indices(
        input: FloatTensor<Self>,
        #[extension_type] lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Scatters `source[.., i]` to `indices[.., i]` in rows of `cols` zeros; skips index -1.
    #[fusion(dtype = source, shape = shapes::with_last(source, *cols))]
    fn scatter_selected(
        source: FloatTensor<Self>,
        indices: IntTensor<Self>,
        cols: usize,
    ) -> FloatTensor<Self>;

    /// Sets everything but the elements at `indices` to zero.
    #[fusion(dtype = source, shape = source)]
    fn keep_selected(source: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self>;

    /// Launches a selection and sends its buffers through the channel. Returns the input, since an
    /// operation must return a tensor.
    #[fusion(dtype = input, shape = input)]
    fn topk_send_float(
        input: FloatTensor<Self>,
        spec: TopkSpec,
        to: Sender<Outcome>,
    ) -> FloatTensor<Self>;

    /// [`topk_send_float`](Self::topk_send_float) of integers.
    #[fusion(dtype = input, shape = input)]
    fn topk_send_int(
        input: IntTensor<Self>,
        spec: TopkSpec,
        to: Sender<Outcome>,
    ) -> IntTensor<Self>;

    /// Selects, and gathers `places` (in the index dtype) at the selected positions.
    #[fusion(meta = |input, _, spec| shapes::selected(input, &LengthsMetadata::Whole, spec))]
    fn topk_gather_float(
        input: FloatTensor<Self>,
        places: TensorData,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// [`topk_gather_float`](Self::topk_gather_float) of integers.
    #[fusion(meta = |input, _, spec| shapes::selected(input, &LengthsMetadata::Whole, spec))]
    fn topk_gather_int(
        input: IntTensor<Self>,
        places: TensorData,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>);
}
