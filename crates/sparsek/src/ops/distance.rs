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

/// Distance between two matrices.
#[derive(Clone, Copy, Debug)]
pub struct DistanceSpec {
    /// Distance.
    pub distance: &'static dyn Distance,
    /// Metric parameter.
    pub p: f64,
    /// Columns.
    pub cols: usize,
    /// Forced routine.
    pub routine: Option<Routine>,
    /// Unsplit second matrix's density.
    pub density: Option<f64>,
    /// Longest row per whole matrix.
    pub longest: [usize; 2],
    /// Largest magnitudes; infinity unless all whole numbers.
    pub greatest: [Option<f32>; 2],
    /// Same matrix twice.
    pub same_matrix: bool,
}

/// CSR matrix with ascending columns.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub struct CsrTensors<B: Backend> {
    /// Row offsets.
    pub indptr: IntTensor<B>,
    /// Columns.
    pub indices: IntTensor<B>,
    /// Values.
    pub values: FloatTensor<B>,
}

/// Transposed pattern.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub struct TransposedPattern<B: Backend> {
    /// Column offsets.
    pub indptr: IntTensor<B>,
    /// Rows.
    pub rows: IntTensor<B>,
    /// Original positions.
    pub entries: IntTensor<B>,
}

/// Transposes for gradients. Wide matrices drop columns empty in both, and renumber.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Transposed<B: Backend> {
    /// No gradient.
    Without,
    /// Both patterns.
    Both {
        /// Renumbered `x` columns.
        x_columns: IntTensor<B>,
        /// `x` transposed.
        #[extension_type]
        x: TransposedPattern<B>,
        /// Renumbered `y` columns.
        y_columns: IntTensor<B>,
        /// `y` transposed.
        #[extension_type]
        y: TransposedPattern<B>,
    },
}

/// Nearest-neighbor search.
#[derive(Clone, Copy, Debug)]
pub struct NearestSpec {
    /// Distance.
    pub by: DistanceSpec,
    /// Neighbors per row.
    pub k: usize,
    /// Skip the row itself.
    pub exclude_self: bool,
    /// Queries per batch.
    pub batch: Option<usize>,
    /// Index dtype.
    pub index: IntDType,
}

/// Candidates whose bounds are within limits.
#[derive(Clone, Copy, Debug)]
pub struct ListedSpec {
    /// Distance.
    pub form: DenseForm,
    /// Most candidates per query.
    pub capacity: usize,
    /// Index dtype.
    pub index: IntDType,
}

/// Gradient for the first matrix.
#[derive(Clone, Copy, Debug)]
pub struct GradientSpec {
    /// Distance.
    pub by: DistanceSpec,
    /// Its slope.
    pub slope: Gradient,
}

/// Radius search.
#[derive(Clone, Copy, Debug)]
pub struct RadiusSpec {
    /// Inclusive, rounded to the distances' dtype.
    pub radius: f64,
    /// Accept distances ≥ the radius.
    pub largest: bool,
    /// First query's index row.
    pub exclude_self: Option<usize>,
    /// Accepted distances; second pass only.
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
        CsrTensorsMetadata, DistanceSpec, GradientSpec, ListedSpec, NearestSpec, RadiusSpec,
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

    pub(super) fn near(
        _factors: &TensorSpec,
        _index: &TensorSpec,
        _offsets: &TensorSpec,
        _limits: &TensorSpec,
        queries: &TensorSpec,
        _rows: &TensorSpec,
        spec: &ListedSpec,
    ) -> (TensorSpec, TensorSpec) {
        let shape = [queries.shape[0], spec.capacity];
        (
            TensorSpec::new(shape.into(), queries.dtype),
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

/// Distances between rows; only `pairwise` has a gradient.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait DistanceOps: Backend {
    /// Largest magnitude, f32; infinity if unused or not all whole.
    #[fusion(meta = shapes::one)]
    fn greatest(values: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Distances `[x rows, y rows]`.
    #[fusion(meta = shapes::pairs)]
    fn pairwise(
        #[extension_type] x: CsrTensors<Self>,
        #[extension_type] y: CsrTensors<Self>,
        #[extension_type] transposed: Transposed<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self>;

    /// Distances and indices, nearest first: `[rows, k]`.
    #[fusion(meta = shapes::nearest)]
    fn nearest(
        #[extension_type] x: CsrTensors<Self>,
        #[extension_type] y: CsrTensors<Self>,
        spec: NearestSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Accepted distances per row block, i32.
    #[fusion(meta = shapes::counts)]
    fn count_within(distances: FloatTensor<Self>, spec: RadiusSpec) -> IntTensor<Self>;

    /// Accepted distances and i32 columns. `offsets`: first slot per block.
    #[fusion(meta = shapes::listed)]
    fn list_within(
        distances: FloatTensor<Self>,
        offsets: IntTensor<Self>,
        spec: RadiusSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Scales rows to unit length, optionally centered.
    #[fusion(dtype = rows, shape = rows)]
    fn unit_rows(rows: FloatTensor<Self>, centered: bool) -> FloatTensor<Self>;

    /// Distances to all rows; angles need unit rows.
    #[fusion(dtype = queries, shape = [queries[0], rows[0]].into())]
    fn dense_distances(
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        form: DenseForm,
    ) -> FloatTensor<Self>;

    /// Distances to candidate rows.
    #[fusion(dtype = queries, shape = candidates)]
    fn candidate_distances(
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        candidates: IntTensor<Self>,
        form: DenseForm,
    ) -> FloatTensor<Self>;

    /// Distances to the rows where `factors · index + offsets` ≤ the query's limit, by ascending
    /// number: `[m, capacity]`, and the numbers. Padded with the farthest distance; NaN if there
    /// are more. f32; on GPUs needs [`filters_columns`](sparsek_kernels::dense::filters_columns).
    #[fusion(meta = shapes::near)]
    fn near_distances(
        factors: FloatTensor<Self>,
        index: FloatTensor<Self>,
        offsets: FloatTensor<Self>,
        limits: FloatTensor<Self>,
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        spec: ListedSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);
}

/// Gradients of [`DistanceOps`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait DistanceGradientOps: Backend {
    /// Gradient for `x` values. `divisors`: distances by
    /// [`divisor`](sparsek_kernels::distance::divisor), else `distances`.
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
