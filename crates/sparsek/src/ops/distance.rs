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

/// Which distance, between what.
#[derive(Clone, Copy)]
pub struct DistanceSpec {
    /// The distance.
    pub distance: &'static dyn Distance,
    /// Its parameter.
    pub p: f64,
    /// Columns of both matrices.
    pub cols: usize,
    /// The routine; chosen where there is none.
    pub routine: Option<Routine>,
    /// Entries for each place of the matrix of which the second one is a part, if it is one.
    pub density: Option<f64>,
    /// Entries of the longest row of each matrix, of that one instead of its part.
    pub longest: [usize; 2],
    /// The greatest magnitude of the values of each, infinite if they are not whole numbers, where that is known.
    pub greatest: [Option<f32>; 2],
    /// Both matrices are the same.
    pub own: bool,
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
            .field("own", &self.own)
            .finish()
    }
}

/// The entries of both matrices by column, which only gradients need: transposed patterns, and for each of their entries the one it
/// came from. Columns are those of the matrices, or numbered anew where few of them have entries.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Turned<B: Backend> {
    /// No gradient is asked for.
    Without,
    /// Of both.
    Both {
        /// Column of each entry of `x` in this numbering.
        x_places: IntTensor<B>,
        /// Offsets of the columns of `x`.
        x_indptr: IntTensor<B>,
        /// Row of each of its entries.
        x_rows: IntTensor<B>,
        /// Which entry it is.
        x_entries: IntTensor<B>,
        /// Column of each entry of `y` in this numbering.
        y_places: IntTensor<B>,
        /// Offsets of the columns of `y`.
        y_indptr: IntTensor<B>,
        /// Row of each of its entries.
        y_rows: IntTensor<B>,
        /// Which entry it is.
        y_entries: IntTensor<B>,
    },
}

/// Which rows are the nearest.
#[derive(Clone, Copy, Debug)]
pub struct NearestSpec {
    /// By which distance.
    pub by: DistanceSpec,
    /// How many.
    pub k: usize,
    /// Without the row itself, where both matrices are the same.
    pub exclude_self: bool,
    /// Rows whose distances are in memory at a time, if not as many as the backend chooses.
    pub batch: Option<usize>,
    /// Dtype of the indices.
    pub index: IntDType,
}

/// Which distances are within a radius.
#[derive(Clone, Copy, Debug)]
pub struct WithinSpec {
    /// How near is near; distances of f32 take the nearest f32.
    pub radius: f64,
    /// Near is at least the radius, not at most.
    pub largest: bool,
    /// The index's row that the first row is, where rows are the index's own: none is near itself.
    pub own: Option<usize>,
    /// How many are near, where they are listed.
    pub total: usize,
}

/// The dtype of distances of values of a dtype.
pub(crate) fn computed(values: DType) -> DType {
    match values {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

#[cfg(feature = "fusion")]
mod shapes {
    use burn::{backend::fusion::custom::TensorSpec, tensor::DType};

    use sparsek_kernels::distance::Within;

    use super::{DistanceSpec, NearestSpec, TurnedMetadata, WithinSpec, computed};

    pub(super) fn one(_values: &TensorSpec) -> TensorSpec {
        TensorSpec::new([1].into(), DType::F32)
    }

    pub(super) fn counts(distances: &TensorSpec, _spec: &WithinSpec) -> TensorSpec {
        let stretches = Within::stretches(distances.shape[1]);
        TensorSpec::new([distances.shape[0], stretches].into(), DType::I32)
    }

    pub(super) fn listed(
        distances: &TensorSpec,
        _offsets: &TensorSpec,
        spec: &WithinSpec,
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
        _turned: &TurnedMetadata,
        _spec: &DistanceSpec,
    ) -> TensorSpec {
        let shape = [x_indptr.shape[0] - 1, y_indptr.shape[0] - 1];
        TensorSpec::new(shape.into(), computed(x_values.dtype))
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
            TensorSpec::new(shape.into(), computed(x_values.dtype)),
            TensorSpec::new(shape.into(), DType::from(spec.index)),
        )
    }
}

/// Distances of the rows of `x` to the rows of `y`, both in CSR with ascending columns.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait DistanceOps: Backend {
    /// The greatest magnitude of values, f32, `[1]`; infinity where one of them is not a whole number, and on backends where that does
    /// not matter. Without gradient.
    #[fusion(meta = shapes::one)]
    fn greatest(values: FloatTensor<Self>) -> FloatTensor<Self>;

    /// All of them, `[rows of x, rows of y]`.
    #[fusion(meta = shapes::pairs)]
    #[allow(clippy::too_many_arguments, reason = "two matrices of three tensors")]
    fn pairwise(
        x_indptr: IntTensor<Self>,
        x_indices: IntTensor<Self>,
        x_values: FloatTensor<Self>,
        y_indptr: IntTensor<Self>,
        y_indices: IntTensor<Self>,
        y_values: FloatTensor<Self>,
        #[extension_type] turned: Turned<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self>;

    /// Those to the `k` nearest rows, the nearest first, and which these are: `[rows of x, k]`. Without gradient.
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
}

/// Which distances are within a radius, in two steps: how many there are is known to nobody before.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait WithinOps: Backend {
    /// How many of `[rows, across]` distances are near in each stretch of each row, as
    /// [`Within`](sparsek_kernels::distance::Within) has it: i32.
    #[fusion(meta = shapes::counts)]
    fn count_within(distances: FloatTensor<Self>, spec: WithinSpec) -> IntTensor<Self>;

    /// Those distances, row after row, and their places in their row, i32, ascending; `offsets` are where those of each stretch
    /// begin. Without gradient.
    #[fusion(meta = shapes::listed)]
    fn list_within(
        distances: FloatTensor<Self>,
        offsets: IntTensor<Self>,
        spec: WithinSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>);
}

/// What the gradients of [`DistanceOps`] are made of; not differentiable themselves.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait DistanceGradientOps: Backend {
    /// The gradient of [`DistanceOps::pairwise`] with respect to the values of `x`, given that of the distances and these; the
    /// pattern of `y` transposed, and columns numbered, as in [`Turned`].
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
        turned_indptr: IntTensor<Self>,
        turned_rows: IntTensor<Self>,
        turned_entries: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        distances: FloatTensor<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self>;
}
