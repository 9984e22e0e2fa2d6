//! Distances between the rows of sparse matrices.
#![allow(
    clippy::large_enum_variant,
    reason = "there is one for each call, and what is derived from it"
)]

use std::fmt;

use burn::{
    backend::{
        Backend, ExtensionType, backend_extension,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, IntDType},
};
use sparsek_kernels::distance::{Distance, Routine};

/// A distance between two matrices, and what is known about them.
#[derive(Clone, Copy)]
pub struct DistanceSpec {
    /// The distance.
    pub distance: &'static dyn Distance,
    /// Parameter of the distance, such as the exponent of Minkowski.
    pub p: f64,
    /// Columns of both matrices.
    pub cols: usize,
    /// Forced routine; `None` lets the dispatch choose.
    pub routine: Option<Routine>,
    /// Fraction of stored entries in the whole second matrix, if only a part of its rows is given.
    pub density: Option<f64>,
    /// Entries of the longest row of each matrix, or of the matrix that a part comes from.
    pub longest: [usize; 2],
    /// Largest magnitude in each matrix if known: infinity if any value is not a whole number.
    pub greatest: [Option<f32>; 2],
    /// Both matrices are the same one.
    pub same_matrix: bool,
}

impl fmt::Debug for DistanceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistanceSpec")
            .field("needs", &self.distance.needs())
            .field("p", &self.p)
            .field("cols", &self.cols)
            .field("routine", &self.routine)
            .field("density", &self.density)
            .field("longest", &self.longest)
            .field("greatest", &self.greatest)
            .field("same_matrix", &self.same_matrix)
            .finish()
    }
}

/// Transposed patterns of both matrices, for gradients. Columns keep their numbers, or are
/// renumbered without the empty ones in wide matrices.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Transposed<B: Backend> {
    /// No gradient is needed.
    Without,
    /// Both transposed patterns.
    Both {
        /// Renumbered column of each entry of `x`.
        x_places: IntTensor<B>,
        /// Offsets of the columns of `x`.
        x_indptr: IntTensor<B>,
        /// Row of each entry of transposed `x`.
        x_rows: IntTensor<B>,
        /// Position in `x` of each entry of transposed `x`.
        x_entries: IntTensor<B>,
        /// Renumbered column of each entry of `y`.
        y_places: IntTensor<B>,
        /// Offsets of the columns of `y`.
        y_indptr: IntTensor<B>,
        /// Row of each entry of transposed `y`.
        y_rows: IntTensor<B>,
        /// Position in `y` of each entry of transposed `y`.
        y_entries: IntTensor<B>,
    },
}

/// A search for the nearest rows.
#[derive(Clone, Copy, Debug)]
pub struct NearestSpec {
    /// The distance.
    pub by: DistanceSpec,
    /// Neighbors per row.
    pub k: usize,
    /// Skip the row itself; requires that both matrices are the same.
    pub exclude_self: bool,
    /// Rows of distances in memory at a time; `None` lets the backend choose.
    pub batch: Option<usize>,
    /// Dtype of the indices.
    pub index: IntDType,
}

/// A search for all distances within a radius.
#[derive(Clone, Copy, Debug)]
pub struct RadiusSpec {
    /// Radius, inclusive, rounded to the dtype of the distances.
    pub radius: f64,
    /// Accept distances of at least the radius instead of at most.
    pub largest: bool,
    /// Index row of the first query, if queries are rows of the index. Excludes each row itself.
    pub exclude_self: Option<usize>,
    /// Accepted distances in total, known when they are listed.
    pub total: usize,
}

/// Dtype of distances between values of a dtype.
pub(crate) fn distance_dtype(values: DType) -> DType {
    match values {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

#[cfg(feature = "fusion")]
mod shapes {
    use burn::{backend::fusion::custom::TensorSpec, tensor::DType};

    use sparsek_kernels::distance::Within;

    use super::{DistanceSpec, NearestSpec, RadiusSpec, TransposedMetadata, distance_dtype};

    pub(super) fn one(_values: &TensorSpec) -> TensorSpec {
        TensorSpec::new([1].into(), DType::F32)
    }

    pub(super) fn counts(distances: &TensorSpec, _spec: &RadiusSpec) -> TensorSpec {
        let parts = Within::stretches(distances.shape[1]);
        TensorSpec::new([distances.shape[0], parts].into(), DType::I32)
    }

    pub(super) fn listed(
        distances: &TensorSpec,
        _offsets: &TensorSpec,
        spec: &RadiusSpec,
    ) -> (TensorSpec, TensorSpec) {
        (
            TensorSpec::new([spec.total].into(), distances.dtype),
            TensorSpec::new([spec.total].into(), DType::I32),
        )
    }

    #[allow(clippy::too_many_arguments, reason = "those of the operation")]
    pub(super) fn pairs(
        x_indptr: &TensorSpec,
        _x_indices: &TensorSpec,
        x_values: &TensorSpec,
        y_indptr: &TensorSpec,
        _y_indices: &TensorSpec,
        _y_values: &TensorSpec,
        _transposed: &TransposedMetadata,
        _spec: &DistanceSpec,
    ) -> TensorSpec {
        let shape = [x_indptr.shape[0] - 1, y_indptr.shape[0] - 1];
        TensorSpec::new(shape.into(), distance_dtype(x_values.dtype))
    }

    pub(super) fn nearest(
        x_indptr: &TensorSpec,
        _x_indices: &TensorSpec,
        x_values: &TensorSpec,
        _y_indptr: &TensorSpec,
        _y_indices: &TensorSpec,
        _y_values: &TensorSpec,
        spec: &NearestSpec,
    ) -> (TensorSpec, TensorSpec) {
        let shape = [x_indptr.shape[0] - 1, spec.k];
        (
            TensorSpec::new(shape.into(), distance_dtype(x_values.dtype)),
            TensorSpec::new(shape.into(), DType::from(spec.index)),
        )
    }
}

/// Distances between the rows of `x` and `y`, both CSR with ascending columns.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait DistanceOps: Backend {
    /// Largest magnitude of the values, f32 `[1]`; infinity if any is not a whole number, or if the
    /// backend does not use it. No gradient.
    #[fusion(meta = shapes::one)]
    fn greatest(values: FloatTensor<Self>) -> FloatTensor<Self>;

    /// All distances, `[rows of x, rows of y]`.
    #[fusion(meta = shapes::pairs)]
    #[allow(clippy::too_many_arguments, reason = "two matrices of three tensors")]
    fn pairwise(
        x_indptr: IntTensor<Self>,
        x_indices: IntTensor<Self>,
        x_values: FloatTensor<Self>,
        y_indptr: IntTensor<Self>,
        y_indices: IntTensor<Self>,
        y_values: FloatTensor<Self>,
        #[extension_type] transposed: Transposed<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self>;

    /// Distances and indices of the `k` nearest rows, nearest first: `[rows of x, k]`. No gradient.
    #[fusion(meta = shapes::nearest)]
    #[allow(clippy::too_many_arguments, reason = "two matrices of three tensors")]
    fn nearest(
        x_indptr: IntTensor<Self>,
        x_indices: IntTensor<Self>,
        x_values: FloatTensor<Self>,
        y_indptr: IntTensor<Self>,
        y_indices: IntTensor<Self>,
        y_values: FloatTensor<Self>,
        spec: NearestSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Counts the accepted distances in each part of each row, i32.
    /// [`Within`](sparsek_kernels::distance::Within) defines the parts. The output size of a radius
    /// search is unknown, so this first pass counts and [`list_within`](Self::list_within) fills.
    #[fusion(meta = shapes::counts)]
    fn count_within(distances: FloatTensor<Self>, spec: RadiusSpec) -> IntTensor<Self>;

    /// Lists the accepted distances row by row, and their ascending columns, i32. `offsets` holds
    /// the first slot of each part. No gradient.
    #[fusion(meta = shapes::listed)]
    fn list_within(
        distances: FloatTensor<Self>,
        offsets: IntTensor<Self>,
        spec: RadiusSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);
}

/// Parts of the gradients of [`DistanceOps`]. Not differentiable.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait DistanceGradientOps: Backend {
    /// Gradient of [`DistanceOps::pairwise`] with respect to the values of `x`. Takes `y`
    /// transposed, with columns numbered as in [`Transposed`].
    #[fusion(dtype = x_values, shape = x_indices)]
    #[allow(
        clippy::too_many_arguments,
        reason = "two matrices, one of them transposed as well"
    )]
    fn pairwise_gradient(
        x_indptr: IntTensor<Self>,
        x_indices: IntTensor<Self>,
        x_values: FloatTensor<Self>,
        y_indptr: IntTensor<Self>,
        y_indices: IntTensor<Self>,
        y_values: FloatTensor<Self>,
        transposed_indptr: IntTensor<Self>,
        transposed_rows: IntTensor<Self>,
        transposed_entries: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        distances: FloatTensor<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self>;
}
