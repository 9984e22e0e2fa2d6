//! Distances between rows of two sparse matrices.
//!
//! [`Index`] prepares one, [`Index::distances`] compares rows with it, by any [`Semiring`] or named
//! [`Metric`].
//!
//! ```text
//! x, y: Matrix → prepare: norms, values → routine: sums of pairs → core, finalize: distances
//! ```
//!
//! Deterministic; routines and host agree up to rounding.
//!
//! Nolet et al., "GPU Semiring Primitives for Sparse Neighborhood Methods" (2022).

#[cfg(feature = "kernels")]
mod dense_rows;
#[cfg(feature = "kernels")]
mod dense_tile;
#[cfg(feature = "kernels")]
mod exclude_self;
#[cfg(feature = "kernels")]
mod expand_sort;
#[cfg(feature = "kernels")]
mod gradient;
mod host;
#[cfg(feature = "kernels")]
mod hybrid;
#[cfg(feature = "kernels")]
mod inverted;
#[cfg(feature = "kernels")]
mod job;
#[cfg(feature = "kernels")]
mod launch;
#[cfg(feature = "kernels")]
mod merge;
mod metric;
pub mod metrics;
#[cfg(feature = "kernels")]
mod plan;
mod prepare;
#[cfg(feature = "kernels")]
mod radius;
#[cfg(feature = "kernels")]
mod register_tile;
mod semiring;
mod sizes;
mod slopes;
#[cfg(feature = "kernels")]
mod tensor_core;
mod tuning;
mod types;

#[cfg(feature = "kernels")]
use std::ops::Range;

#[cfg(feature = "kernels")]
use cubecl::{prelude::*, server::Handle};

#[cfg(feature = "kernels")]
use self::prepare::{columns::Columns, packed::Packed};
#[cfg(feature = "kernels")]
pub use self::{
    dense_rows::{Listed, dense_distances, listed_distances, unit_rows},
    exclude_self::exclude_self,
    gradient::{Transposed, Upstream, gradient},
    job::Job,
    plan::{choose, index_part},
    prepare::packed::greatest,
    radius::Radius,
    semiring::{Parameter, Semiring, SumsExpand, infinity, quotient},
    tensor_core::multiplies,
    types::{Matrix, Prepared},
};
pub use self::{
    host::{HostMatrix, HostPair},
    metric::{Distance, DynMetric, Each},
    metrics::{Metric, UnknownMetric, divisor},
    semiring::{
        Algebra, Dense, Gradient, HostSemiring, Inner, Real, Rescale, Strategy, Sums,
        host as formulas,
    },
    sizes::{inspects_values, is_wide, radius_blocks},
    slopes::host as slopes_of_columns,
    tuning::{RADIUS_BLOCK, SquareRange},
    types::{DenseForm, ROUTINES, Routine},
};
#[cfg(feature = "kernels")]
use crate::{
    device::{require_buffers, require_logarithms},
    error::KernelError,
    launch::allocate,
};

/// Matrix prepared for [`distances`](Self::distances).
#[cfg(feature = "kernels")]
pub struct Index {
    distance: &'static dyn Distance,
    parameter: Parameter,
    routine: Routine,
    prepared: Prepared,
    columns: Option<Columns>,
    packed: Option<Packed>,
}

#[cfg(feature = "kernels")]
impl Index {
    /// Prepares a matrix; [`Routine::TensorCore`] only if forced.
    ///
    /// Errors: an unsupported dtype or routine.
    pub fn new(
        client: &Client,
        matrix: &Matrix,
        distance: &'static dyn Distance,
        p: f64,
        routine: Option<Routine>,
    ) -> Result<Self, KernelError> {
        let (algebra, strategy) = (distance.algebra(), distance.strategy());
        require_buffers(client, merge::BUFFERS)?;
        if algebra.logarithms {
            require_logarithms(client, matrix.dtype)?;
        }
        let routine = match routine {
            None => choose(client, distance, None, matrix, None),
            Some(routine) => {
                match routine {
                    Routine::Inverted => inverted::check(client, &algebra, matrix)?,
                    Routine::DenseTile => dense_tile::check(client, strategy.dense, matrix)?,
                    Routine::RegisterTile => register_tile::check(client, &strategy, matrix)?,
                    Routine::Hybrid => hybrid::check(client)?,
                    Routine::ExpandSort => expand_sort::check(client)?,
                    Routine::TensorCore => tensor_core::check(client, strategy.inner, matrix)?,
                    Routine::Merge => (),
                }
                routine
            }
        };
        let parameter = Parameter::of(p);
        let prepared = distance.prepare(client, matrix, parameter)?;
        let columns = match routine {
            Routine::Inverted => Some(Columns::new(client, &prepared, &algebra)?),
            _ => None,
        };
        let packed = match strategy.inner {
            Some(inner) if routine == Routine::TensorCore => {
                Some(Packed::new(client, &prepared, 0..matrix.rows, inner)?)
            }
            _ => None,
        };
        Ok(Self { distance, parameter, routine, prepared, columns, packed })
    }

    /// Left side of [`distances`](Self::distances).
    ///
    /// Errors as [`new`](Self::new).
    pub fn prepare(&self, client: &Client, matrix: &Matrix) -> Result<Prepared, KernelError> {
        self.distance.prepare(client, matrix, self.parameter)
    }

    /// Index matrix, as left side.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// Chosen routine.
    pub fn routine(&self) -> Routine {
        self.routine
    }

    /// Distances of rows of `x`: `[rows.len(), index rows]`, of [`Prepared::dtype`].
    ///
    /// Errors: rows out of range, `x` unfit for index or routine, an oversized output.
    pub fn distances(
        &self,
        client: &Client,
        x: &Prepared,
        rows: Range<usize>,
    ) -> Result<Handle, KernelError> {
        self.between(client, x, rows, false)
    }

    /// Distances of index rows; all at once, half the work if symmetric.
    ///
    /// Errors as [`distances`](Self::distances).
    pub fn own_distances(
        &self,
        client: &Client,
        rows: Range<usize>,
    ) -> Result<Handle, KernelError> {
        self.between(client, &self.prepared, rows, true)
    }

    fn between(
        &self,
        client: &Client,
        x: &Prepared,
        rows: Range<usize>,
        same: bool,
    ) -> Result<Handle, KernelError> {
        let y = &self.prepared;
        if rows.start > rows.end || rows.end > x.rows {
            return Err(KernelError::Rows { first: rows.start, end: rows.end, rows: x.rows });
        }
        if x.cols != y.cols {
            return Err(KernelError::Columns { found: x.cols, expected: y.cols });
        }
        if x.dtype != y.dtype {
            return Err(KernelError::DtypesDiffer { found: x.dtype, expected: y.dtype });
        }
        if self.routine == Routine::TensorCore {
            let inner = self.distance.strategy().inner;
            tensor_core::check_values(inner, x)?;
            tensor_core::check_values(inner, y)?;
            tensor_core::check_size([rows.len(), x.cols])?;
        }
        let output = allocate(client, "distances", rows.len() * y.rows, x.dtype)?;
        let job = Job {
            client,
            x,
            y,
            columns: self.columns.as_ref(),
            packed: self.packed.as_ref(),
            rows,
            same,
            parameter: self.parameter,
            output: &output,
        };
        if job.pairs() > 0 {
            self.distance.launch(&job, self.routine)?;
        }
        Ok(output)
    }
}
