//! Distances between sparse rows.
#![allow(
    clippy::large_enum_variant,
    reason = "there is one for each call, and what is derived from it"
)]

use burn::{
    backend::{
        Backend, ExtensionType, backend_extension,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, IntDType},
};
use sparsek_kernels::distance::{DenseForm, Distance, Gradient, Routine};

/// A distance, and facts about two matrices.
#[derive(Clone, Copy, Debug)]
pub struct DistanceSpec {
    /// The distance.
    pub distance: &'static dyn Distance,
    /// Parameter, such as an exponent.
    pub p: f64,
    /// Columns.
    pub cols: usize,
    /// Forced routine.
    pub routine: Option<Routine>,
    /// Density of the whole second matrix, if this is a part.
    pub density: Option<f64>,
    /// Longest row of each (whole) matrix.
    pub longest: [usize; 2],
    /// Largest magnitudes, if known; infinity if not all whole numbers.
    pub greatest: [Option<f32>; 2],
    /// Both are the same matrix.
    pub same_matrix: bool,
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
    /// Row of each entry.
    pub rows: IntTensor<B>,
    /// Original position of each entry.
    pub entries: IntTensor<B>,
}

/// Transposes for gradients. Wide matrices drop and renumber columns that are empty in both.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Transposed<B: Backend> {
    /// No gradient.
    Without,
    /// Both patterns.
    Both {
        /// Renumbered columns of `x`.
        x_columns: IntTensor<B>,
        /// Transpose of `x`.
        #[extension_type]
        x: TransposedPattern<B>,
        /// Renumbered columns of `y`.
        y_columns: IntTensor<B>,
        /// Transpose of `y`.
        #[extension_type]
        y: TransposedPattern<B>,
    },
}

/// A nearest-neighbor search.
#[derive(Clone, Copy, Debug)]
pub struct NearestSpec {
    /// The distance.
    pub by: DistanceSpec,
    /// Neighbors per row.
    pub k: usize,
    /// Skip the row itself.
    pub exclude_self: bool,
    /// Queries per batch, or the backend's choice.
    pub batch: Option<usize>,
    /// Index dtype.
    pub index: IntDType,
}

/// A gradient for the values of the first matrix.
#[derive(Clone, Copy, Debug)]
pub struct GradientSpec {
    /// The distance.
    pub by: DistanceSpec,
    /// Its gradient by this matrix.
    pub slope: Gradient,
}

/// A radius search.
#[derive(Clone, Copy, Debug)]
pub struct RadiusSpec {
    /// Inclusive, rounded to the dtype of the distances.
    pub radius: f64,
    /// Accept at least the radius, not at most.
    pub largest: bool,
    /// Index row of the first query, to skip rows themselves.
    pub exclude_self: Option<usize>,
    /// Accepted distances, for the second pass.
    pub total: usize,
}

pub(crate) fn distance_dtype(values: DType) -> DType {
    match values {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

#[cfg(feature = "fusion")]
mod shapes {
    use burn::{backend::fusion::custom::TensorSpec, tensor::DType};
    use sparsek_kernels::distance::radius_blocks;

    use super::{
        CsrTensorsMetadata, DistanceSpec, GradientSpec, NearestSpec, RadiusSpec,
        TransposedMetadata, TransposedPatternMetadata, distance_dtype,
    };

    pub(super) fn one(_values: &TensorSpec) -> TensorSpec {
        TensorSpec::new([1].into(), DType::F32)
    }

    pub(super) fn counts(distances: &TensorSpec, _spec: &RadiusSpec) -> TensorSpec {
        let parts = radius_blocks(distances.shape[1]);
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
        _divisors: &TensorSpec,
        _spec: &GradientSpec,
    ) -> TensorSpec {
        x.values.clone()
    }
}

/// Distances between rows of `x` and `y`.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait DistanceOps: Backend {
    /// Largest magnitude, f32 `[1]`; infinity if not all whole numbers, or unused.
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

    /// Distances and indices, nearest first: `[rows of x, k]`.
    #[fusion(meta = shapes::nearest)]
    fn nearest(
        #[extension_type] x: CsrTensors<Self>,
        #[extension_type] y: CsrTensors<Self>,
        spec: NearestSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Accepted distances per block of a row, i32; [`list_within`](Self::list_within) fills.
    #[fusion(meta = shapes::counts)]
    fn count_within(distances: FloatTensor<Self>, spec: RadiusSpec) -> IntTensor<Self>;

    /// Accepted distances row by row, and their ascending columns, i32. `offsets`: first slot of
    /// each block.
    #[fusion(meta = shapes::listed)]
    fn list_within(
        distances: FloatTensor<Self>,
        offsets: IntTensor<Self>,
        spec: RadiusSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Dense rows divided by their norms, less their means if `centered`. Has no gradient.
    #[fusion(dtype = rows, shape = rows)]
    fn unit_rows(rows: FloatTensor<Self>, centered: bool) -> FloatTensor<Self>;

    /// Distances of dense queries to all rows, of unit length for angles. Has no gradient.
    #[fusion(dtype = queries, shape = [queries[0], rows[0]].into())]
    fn dense_distances(
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        form: DenseForm,
    ) -> FloatTensor<Self>;

    /// Distances of dense queries to their candidates, numbers of rows. Has no gradient.
    #[fusion(dtype = queries, shape = candidates)]
    fn candidate_distances(
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        candidates: IntTensor<Self>,
        form: DenseForm,
    ) -> FloatTensor<Self>;
}

/// Gradients of [`DistanceOps`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait DistanceGradientOps: Backend {
    /// Gradient of [`DistanceOps::pairwise`] for the values of `x`, with renumbered columns.
    /// `divisors`: distances by [`divisor`](sparsek_kernels::distance::divisor), else `distances`.
    #[fusion(meta = shapes::gradient)]
    fn pairwise_gradient(
        #[extension_type] x: CsrTensors<Self>,
        #[extension_type] y: CsrTensors<Self>,
        #[extension_type] y_transposed: TransposedPattern<Self>,
        upstream: FloatTensor<Self>,
        distances: FloatTensor<Self>,
        divisors: FloatTensor<Self>,
        spec: GradientSpec,
    ) -> FloatTensor<Self>;
}
