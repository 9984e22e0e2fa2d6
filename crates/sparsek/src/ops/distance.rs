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
    /// Parameter, such as Minkowski's exponent.
    pub p: f64,
    /// Columns of both matrices.
    pub cols: usize,
    /// Forced routine.
    pub routine: Option<Routine>,
    /// Fraction of stored entries of the whole second matrix, if this is a part of it.
    pub density: Option<f64>,
    /// Entries of the longest row of each matrix, or of the matrix it is a part of.
    pub longest: [usize; 2],
    /// Largest magnitude of each matrix, if known; infinity if any value is not a whole number.
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

/// A CSR matrix with ascending columns.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub struct CsrTensors<B: Backend> {
    /// Row offsets.
    pub indptr: IntTensor<B>,
    /// Column of each entry.
    pub indices: IntTensor<B>,
    /// Value of each entry.
    pub values: FloatTensor<B>,
}

/// A transposed pattern.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub struct TransposedPattern<B: Backend> {
    /// Column offsets.
    pub indptr: IntTensor<B>,
    /// Row of each transposed entry.
    pub rows: IntTensor<B>,
    /// Position in the matrix of each transposed entry.
    pub entries: IntTensor<B>,
}

/// Transposed patterns for gradients. Wide matrices drop and renumber columns that are empty in
/// both.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Transposed<B: Backend> {
    /// No gradient is needed.
    Without,
    /// Both patterns.
    Both {
        /// Column of each entry of `x` in this numbering.
        x_columns: IntTensor<B>,
        /// Transpose of `x`.
        #[extension_type]
        x: TransposedPattern<B>,
        /// Column of each entry of `y` in this numbering.
        y_columns: IntTensor<B>,
        /// Transpose of `y`.
        #[extension_type]
        y: TransposedPattern<B>,
    },
}

/// A search for the nearest rows.
#[derive(Clone, Copy, Debug)]
pub struct NearestSpec {
    /// The distance.
    pub by: DistanceSpec,
    /// Neighbors per row.
    pub k: usize,
    /// Skip the row itself, if both matrices are the same.
    pub exclude_self: bool,
    /// Queries per batch; the backend's choice if `None`.
    pub batch: Option<usize>,
    /// Dtype of the indices.
    pub index: IntDType,
}

/// A search for all distances within a radius.
#[derive(Clone, Copy, Debug)]
pub struct RadiusSpec {
    /// Inclusive radius, rounded to the dtype of the distances.
    pub radius: f64,
    /// Accept distances of at least the radius, not at most.
    pub largest: bool,
    /// Index row of the first query, to exclude each row itself.
    pub exclude_self: Option<usize>,
    /// Accepted distances in total; used by the second pass.
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
    use sparsek_kernels::distance::Radius;

    use super::{
        CsrTensorsMetadata, DistanceSpec, NearestSpec, RadiusSpec, TransposedMetadata,
        TransposedPatternMetadata, distance_dtype,
    };

    pub(super) fn one(_values: &TensorSpec) -> TensorSpec {
        TensorSpec::new([1].into(), DType::F32)
    }

    pub(super) fn counts(distances: &TensorSpec, _spec: &RadiusSpec) -> TensorSpec {
        let parts = Radius::blocks(distances.shape[1]);
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

    pub(super) fn pairs(
        x: &CsrTensorsMetadata,
        y: &CsrTensorsMetadata,
        _transposed: &TransposedMetadata,
        _spec: &DistanceSpec,
    ) -> TensorSpec {
        let shape = [x.indptr.shape[0] - 1, y.indptr.shape[0] - 1];
        TensorSpec::new(shape.into(), distance_dtype(x.values.dtype))
    }

    pub(super) fn nearest(
        x: &CsrTensorsMetadata,
        _y: &CsrTensorsMetadata,
        spec: &NearestSpec,
    ) -> (TensorSpec, TensorSpec) {
        let shape = [x.indptr.shape[0] - 1, spec.k];
        (
            TensorSpec::new(shape.into(), distance_dtype(x.values.dtype)),
            TensorSpec::new(shape.into(), DType::from(spec.index)),
        )
    }

    pub(super) fn gradient(
        x: &CsrTensorsMetadata,
        _y: &CsrTensorsMetadata,
        _y_transposed: &TransposedPatternMetadata,
        _upstream: &TensorSpec,
        _distances: &TensorSpec,
        _spec: &DistanceSpec,
    ) -> TensorSpec {
        x.values.clone()
    }
}

/// Distances between the rows of `x` and `y`.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait DistanceOps: Backend {
    /// Largest magnitude of the values, f32 `[1]`; infinity if any is not a whole number, or the
    /// backend does not use it. No gradient.
    #[fusion(meta = shapes::one)]
    fn greatest(values: FloatTensor<Self>) -> FloatTensor<Self>;

    /// All distances, `[rows of x, rows of y]`.
    #[fusion(meta = shapes::pairs)]
    fn pairwise(
        #[extension_type] x: CsrTensors<Self>,
        #[extension_type] y: CsrTensors<Self>,
        #[extension_type] transposed: Transposed<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self>;

    /// Distances and indices of the `k` nearest rows, nearest first: `[rows of x, k]`. No gradient.
    #[fusion(meta = shapes::nearest)]
    fn nearest(
        #[extension_type] x: CsrTensors<Self>,
        #[extension_type] y: CsrTensors<Self>,
        spec: NearestSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Counts accepted distances in each part of each row, i32, split as the kernels do. The output
    /// size is unknown, so this pass counts and [`list_within`](Self::list_within) fills.
    #[fusion(meta = shapes::counts)]
    fn count_within(distances: FloatTensor<Self>, spec: RadiusSpec) -> IntTensor<Self>;

    /// Lists accepted distances row by row, and their ascending columns, i32. `offsets` holds the
    /// first slot of each part. No gradient.
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
    /// Gradient of [`DistanceOps::pairwise`] for the values of `x`, with columns numbered as in
    /// [`Transposed`].
    #[fusion(meta = shapes::gradient)]
    fn pairwise_gradient(
        #[extension_type] x: CsrTensors<Self>,
        #[extension_type] y: CsrTensors<Self>,
        #[extension_type] y_transposed: TransposedPattern<Self>,
        upstream: FloatTensor<Self>,
        distances: FloatTensor<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self>;
}
