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
use sparsek_kernels::topk::{DrawSettings, TopkOptions, VectorOptions};

/// Selection along the last dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopkSpec {
    /// Options.
    pub options: TopkOptions,
    /// Index dtype.
    pub index: IntDType,
}

/// Selection from one vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorSpec {
    /// Options.
    pub options: VectorOptions,
    /// Index dtype.
    pub index: IntDType,
}

/// Token draw per row.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawSpec {
    /// Candidates per row.
    pub k: usize,
    /// Token dtype.
    pub index: IntDType,
    /// One, or one per row.
    pub settings: Vec<DrawSettings>,
    /// Random seed.
    pub seed: [u32; 2],
}

impl DrawSpec {
    pub(crate) fn candidates(&self, sorted: bool) -> TopkSpec {
        TopkSpec { options: TopkOptions::new(self.k).with_sorted(sorted), index: self.index }
    }
}

/// Valid elements per row.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Bounds<B: Backend> {
    /// All.
    Whole,
    /// First elements: count per row, u32.
    Lengths(IntTensor<B>),
    /// Column range.
    Between {
        /// First column per row, u32.
        starts: IntTensor<B>,
        /// Exclusive end per row, u32.
        ends: IntTensor<B>,
    },
}

/// Maps columns to a cache; index dtype.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum IndexMap<B: Backend> {
    /// Added to each row's indices.
    Offsets(IntTensor<B>),
    /// Pages, `[rows, pages]`.
    Pages(IntTensor<B>),
    /// Pages, then offsets.
    Both {
        /// As [`Pages`](Self::Pages).
        pages: IntTensor<B>,
        /// As [`Offsets`](Self::Offsets).
        offsets: IntTensor<B>,
    },
}

impl<B: Backend> IndexMap<B> {
    pub(crate) fn parts(self) -> (Option<IntTensor<B>>, Option<IntTensor<B>>) {
        match self {
            Self::Offsets(offsets) => (None, Some(offsets)),
            Self::Pages(pages) => (Some(pages), None),
            Self::Both { pages, offsets } => (Some(pages), Some(offsets)),
        }
    }
}

/// Selected elements and positions.
pub enum SelectedBuffers {
    /// On a device, valid after queued kernels.
    #[cfg(feature = "cubecl")]
    Device {
        /// Client.
        client: Client,
        /// Elements.
        values: Handle,
        /// Positions.
        positions: Handle,
    },
    /// On the host.
    Host {
        /// Elements.
        values: TensorData,
        /// Positions.
        positions: TensorData,
    },
}

/// Selection or error.
pub type Outcome = Result<SelectedBuffers, String>;

#[cfg(feature = "fusion")]
mod shapes {
    use super::{BoundsMetadata, DrawSpec, TopkSpec, VectorSpec};
    use burn::{
        backend::fusion::custom::TensorSpec,
        tensor::{DType, Shape},
    };

    pub(super) fn selected(
        input: &TensorSpec,
        bounds: &BoundsMetadata,
        spec: &TopkSpec,
    ) -> (TensorSpec, TensorSpec) {
        let indices = indices(input, bounds, spec);
        (TensorSpec::new(indices.shape.clone(), input.dtype), indices)
    }

    pub(super) fn indices(
        input: &TensorSpec,
        _bounds: &BoundsMetadata,
        spec: &TopkSpec,
    ) -> TensorSpec {
        TensorSpec::new(with_last(&input.shape, spec.options.k), DType::from(spec.index))
    }

    pub(super) fn of_vector(input: &TensorSpec, spec: &VectorSpec) -> (TensorSpec, TensorSpec) {
        let shape = Shape::from([spec.options.k]);
        let indices = TensorSpec::new(shape.clone(), DType::from(spec.index));
        (TensorSpec::new(shape, input.dtype), indices)
    }

    pub(super) fn drawn(logits: &TensorSpec, spec: &DrawSpec) -> TensorSpec {
        TensorSpec::new(Shape::from([logits.shape[0]]), DType::from(spec.index))
    }

    pub(super) fn with_last(shape: &Shape, last: usize) -> Shape {
        let mut shape = shape.clone();
        let rank = shape.num_dims();
        shape[rank - 1] = last;
        shape
    }
}

/// Selections.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait TopkOps: Backend {
    /// Values and indices.
    #[fusion(meta = shapes::selected)]
    fn topk_float(
        input: FloatTensor<Self>,
        #[extension_type] bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Of integers.
    #[fusion(meta = shapes::selected)]
    fn topk_int(
        input: IntTensor<Self>,
        #[extension_type] bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>);

    /// Indices.
    #[fusion(meta = shapes::indices)]
    fn argtopk_float(
        input: FloatTensor<Self>,
        #[extension_type] bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self>;

    /// Of integers.
    #[fusion(meta = shapes::indices)]
    fn argtopk_int(
        input: IntTensor<Self>,
        #[extension_type] bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self>;

    /// Zeroes all other elements.
    #[fusion(dtype = input, shape = input)]
    fn topk_mask(
        input: FloatTensor<Self>,
        #[extension_type] bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> FloatTensor<Self>;

    /// Maps `[rows, k]` through pages of `page` columns, then offsets. Unused slots stay.
    #[fusion(dtype = indices, shape = indices)]
    fn remap(
        indices: IntTensor<Self>,
        #[extension_type] map: IndexMap<Self>,
        page: usize,
    ) -> IntTensor<Self>;

    /// Draws a token per row, `[rows]`. No gradient.
    #[fusion(meta = shapes::drawn)]
    fn draw(logits: FloatTensor<Self>, spec: DrawSpec) -> IntTensor<Self>;

    /// Of a vector.
    #[fusion(meta = shapes::of_vector)]
    fn topk_vector_float(
        input: FloatTensor<Self>,
        spec: VectorSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Of integers.
    #[fusion(meta = shapes::of_vector)]
    fn topk_vector_int(
        input: IntTensor<Self>,
        spec: VectorSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>);
}

/// Gradients and sharded selections.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait TopkGradientOps: Backend {
    /// [`TopkOps::topk_mask`] and ascending indices.
    #[fusion(meta = |input, bounds, spec| (input.clone(), shapes::indices(input, bounds, spec)))]
    fn topk_mask_indices(
        input: FloatTensor<Self>,
        #[extension_type] bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Scatters `source` to `indices` in zeros; skips -1.
    #[fusion(dtype = source, shape = shapes::with_last(source, *cols))]
    fn scatter_selected(
        source: FloatTensor<Self>,
        indices: IntTensor<Self>,
        cols: usize,
    ) -> FloatTensor<Self>;

    /// Zeroes all but `indices`.
    #[fusion(dtype = source, shape = source)]
    fn keep_selected(source: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self>;

    /// Sends a selection; returns the input, as operations must.
    #[fusion(dtype = input, shape = input)]
    fn topk_send_float(
        input: FloatTensor<Self>,
        spec: TopkSpec,
        to: Sender<Outcome>,
    ) -> FloatTensor<Self>;

    /// Of integers.
    #[fusion(dtype = input, shape = input)]
    fn topk_send_int(
        input: IntTensor<Self>,
        spec: TopkSpec,
        to: Sender<Outcome>,
    ) -> IntTensor<Self>;

    /// Selects, then gathers `places`, of the index dtype.
    #[fusion(meta = |input, _, spec| shapes::selected(input, &BoundsMetadata::Whole, spec))]
    fn topk_gather_float(
        input: FloatTensor<Self>,
        places: TensorData,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Of integers.
    #[fusion(meta = |input, _, spec| shapes::selected(input, &BoundsMetadata::Whole, spec))]
    fn topk_gather_int(
        input: IntTensor<Self>,
        places: TensorData,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>);
}
