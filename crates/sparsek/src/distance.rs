//! Distances between the rows of sparse matrices, and nearest neighbours by them.
//!
//! After Nolet et al., "GPU Semiring Primitives for Sparse Neighborhood Methods" (2022); the deviations are listed in
//! `docs/papers.md`.

mod graphs;
mod neighbors;

use std::sync::Arc;

use burn::{
    backend::Dispatch,
    tensor::{DType, Tensor},
};
pub use sparsek_kernels::distance::{
    Distance, HostSemiring, Metric, Needs, ROUTINES, Real, Rescale, Routine, Semiring, Sums,
    SumsExpand, UnknownMetric, quotient,
};
use sparsek_kernels::distance::{Entry, asks_for_values, is_wide};

pub use self::neighbors::NearestNeighbors;
use crate::{
    ops::{DistanceOps, DistanceSpec, Turned},
    sparse::{Csr, CsrError, Pattern, upload},
};

/// Why distances were refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DistanceError {
    /// Matrices of different widths.
    #[error("the matrices have {x} and {y} columns")]
    Columns {
        /// Columns of the one.
        x: usize,
        /// Columns of the other.
        y: usize,
    },
    /// Matrices of different dtypes.
    #[error("the matrices are of {x:?} and {y:?}")]
    Dtypes {
        /// Dtype of the one.
        x: DType,
        /// Dtype of the other.
        y: DType,
    },
    /// Matrices on different devices.
    #[error("the matrices are on different devices, {x} and {y}")]
    Devices {
        /// Where the one is.
        x: String,
        /// Where the other is.
        y: String,
    },
    /// A parameter that the measure cannot have.
    #[error("the parameter {p} is not finite and greater than 0")]
    Parameter {
        /// What was given.
        p: f64,
    },
    /// More neighbours than there are rows.
    #[error("{k} neighbours of each row, but the index has {rows} rows{}", if *.own { ", one of which is the row itself" } else { "" })]
    Neighbors {
        /// Neighbours asked for.
        k: usize,
        /// Rows of the index.
        rows: usize,
        /// Whether the row itself does not count.
        own: bool,
    },
    /// A result that is no sparse matrix.
    #[error(transparent)]
    Csr(#[from] CsrError),
}

/// How far two rows are apart: a [`Metric`], or a [`Semiring`] of one's own.
#[derive(Clone, Copy)]
pub struct Measure {
    distance: &'static dyn Distance,
    p: f64,
    routine: Option<Routine>,
    /// Of the index, if it is gone through in parts.
    whole: Option<Whole>,
}

/// What parts of an index have from the whole, so that they are gone through alike.
#[derive(Clone, Copy)]
struct Whole {
    /// Entries for each place.
    density: f64,
    /// Entries of the longest row.
    longest: usize,
}

impl From<Metric> for Measure {
    fn from(metric: Metric) -> Self {
        Self {
            distance: metric.distance(),
            p: metric.p(),
            routine: None,
            whole: None,
        }
    }
}

impl Measure {
    /// A semiring: written with [`semiring!`](crate::semiring), it runs on every device.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use cubecl::prelude::*;
    /// use sparsek::{
    ///     distance::{Measure, Needs, Semiring, pairwise_distances},
    ///     semiring,
    ///     sparse::Csr,
    /// };
    ///
    /// /// The best product of all columns that both rows have, or 0 where none is greater.
    /// struct MaxTimes;
    ///
    /// semiring! {
    ///     #[cube]
    ///     impl Semiring for MaxTimes {
    ///         const NEEDS: Needs = Needs { largest: true, ..Needs::PRODUCTS };
    ///
    ///         fn reduce<S: Float>(a: S, b: S) -> S {
    ///             max(a, b)
    ///         }
    ///
    ///         fn product<S: Float>(a: S, b: S, _p: S) -> S {
    ///             a * b
    ///         }
    ///     }
    /// }
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]], &Device::flex());
    /// let x = Csr::from_dense(x).unwrap();
    /// let best = pairwise_distances(&x, None, Measure::semiring::<MaxTimes>()).unwrap();
    /// best.into_data().assert_eq(&TensorData::from([[4.0, 6.0], [6.0, 16.0]]), false);
    /// ```
    pub fn semiring<M: Semiring + HostSemiring>() -> Self {
        Self {
            distance: Entry::<M>::of(),
            p: 0.0,
            routine: None,
            whole: None,
        }
    }

    /// Forces a routine.
    pub fn with_routine(self, routine: Option<Routine>) -> Self {
        Self { routine, ..self }
    }

    /// The same to parts of an index, which have from it what is known of its values.
    fn to_parts_of(self, index: &Csr) -> Self {
        self.greatest([index; 2]);
        Self {
            whole: Some(Whole {
                density: density(index),
                longest: index.pattern().longest(),
            }),
            ..self
        }
    }

    fn check(&self) -> Result<(), DistanceError> {
        let p = self.p;
        match self.distance.needs().parameter && !(p.is_finite() && p > 0.0) {
            true => Err(DistanceError::Parameter { p }),
            false => Ok(()),
        }
    }

    fn spec(&self, [x, y]: [&Csr; 2], own: bool) -> DistanceSpec {
        let longest = || y.pattern().longest();
        DistanceSpec {
            distance: self.distance,
            p: self.p,
            cols: x.cols(),
            routine: self.routine,
            density: self.whole.map(|whole| whole.density),
            longest: [
                x.pattern().longest(),
                self.whole.map_or_else(longest, |whole| whole.longest),
            ],
            greatest: self.greatest([x, y]),
            own,
        }
    }

    /// What is known of the values of two matrices: they are looked at once for each, where it matters.
    fn greatest(&self, [x, y]: [&Csr; 2]) -> [Option<f32>; 2] {
        let density = self.whole.map_or_else(|| density(y), |whole| whole.density);
        let needs = self.distance.needs();
        let looked_at = match self.routine {
            None => asks_for_values(&needs, density),
            Some(forced) => forced == Routine::Product,
        };
        [x, y].map(|matrix| looked_at.then(|| matrix.greatest()))
    }
}

/// Entries for each place.
fn density(matrix: &Csr) -> f64 {
    let places = matrix.rows().max(1) as f64 * matrix.cols().max(1) as f64;
    matrix.nnz() as f64 / places
}

/// Distances of all rows of `x` to all rows of `y`, or to those of `x` itself.
///
/// # Shapes and dtypes
///
/// `x`: m rows, `y`: n rows, of as many columns and of one dtype on one device; the result is `[m, n]`, of f64 for values of
/// f64 and of f32 for all others.
///
/// # Guarantees
///
/// The same input gives the same bits on every run. The routine does not matter up to rounding, nor do explicit zeros to
/// metrics; to a semiring of one's own they are entries. Metrics follow SciPy where definitions differ, for rows without entries
/// too; each says so. All but correlation, KL and symmetric KL are evaluated again, column by column, where most of a difference
/// of large sums cancels. NaN and infinities count as not zero in patterns and are outside the contract elsewhere: see
/// `docs/guarantees.md`.
///
/// # Gradient
///
/// With respect to the values of both matrices, for [`Metric::Dot`], `Euclidean`, `SqEuclidean`, `Cosine` and `Manhattan`: a number
/// for each entry, deterministic. Where the distance has no slope, at equal rows or values, it is 0. Takes another `[m, n]` and the
/// pairs of entries in one column, and on devices with autodiff the patterns are transposed by the host.
///
/// # Errors
///
/// [`DistanceError`] for matrices of different widths, dtypes or devices, and for a parameter out of range.
///
/// # Panics
///
/// If values are tracked and the distance has no gradient; if the device cannot run a routine that was forced, lacks the
/// memory, or has no logarithms and powers of f64 (Vulkan, WebGPU) where the metric needs them.
///
/// # Cost
///
/// On Flex and on devices with shared memory the pairs of entries in one column, and one write of the result; also
/// both rows of pairs that cancel, or whose Chebyshev distance the greatest entries do not tell. Else both rows of each pair. A copy
/// of `y` by column for the former.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::{
///     distance::{Metric, pairwise_distances},
///     sparse::Csr,
/// };
///
/// let x = Tensor::<2>::from_data([[1.0, 0.0, 2.0], [0.0, 4.0, 2.0]], &Device::flex());
/// let x = Csr::from_dense(x).unwrap();
/// let d = pairwise_distances(&x, None, Metric::Manhattan).unwrap();
/// d.into_data().assert_eq(&TensorData::from([[0.0, 5.0], [5.0, 0.0]]), false);
/// ```
pub fn pairwise_distances(
    x: &Csr,
    y: Option<&Csr>,
    measure: impl Into<Measure>,
) -> Result<Tensor<2>, DistanceError> {
    let other = y.unwrap_or(x);
    check(x, other)?;
    let measure = measure.into();
    measure.check()?;
    let spec = measure.spec([x, other], y.is_none());
    let distances = <Dispatch as DistanceOps>::pairwise(
        x.indptr().clone().into_dispatch(),
        x.indices().clone().into_dispatch(),
        x.values().clone().into_dispatch(),
        other.indptr().clone().into_dispatch(),
        other.indices().clone().into_dispatch(),
        other.values().clone().into_dispatch(),
        turned(x, other, &spec),
        spec,
    );
    Ok(Tensor::from_dispatch(distances))
}

/// What a gradient needs, where there may be one.
fn turned(x: &Csr, y: &Csr, spec: &DistanceSpec) -> Turned<Dispatch> {
    let device = x.device();
    if spec.distance.needs().gradient.is_none() || !device.is_autodiff() {
        return Turned::Without;
    }
    let turn = |pattern: &Pattern| {
        let (pattern, entries) = pattern.transpose();
        let columns = [pattern.indptr(), pattern.indices(), &entries];
        columns.map(|ids| upload(ids, &device).into_dispatch())
    };
    let [(x_places, x), (y_places, y)] = match is_wide(x.cols(), x.nnz() + y.nnz()) {
        true => renumbered([x.pattern(), y.pattern()]).map(|pattern| {
            let places = upload(pattern.indices(), &device);
            (places, Arc::new(pattern))
        }),
        false => [x, y].map(|matrix| (matrix.indices().clone(), matrix.pattern().clone())),
    };
    let [x_indptr, x_rows, x_entries] = turn(&x);
    let [y_indptr, y_rows, y_entries] = turn(&y);
    Turned::Both {
        x_places: x_places.into_dispatch(),
        y_places: y_places.into_dispatch(),
        x_indptr,
        x_rows,
        x_entries,
        y_indptr,
        y_rows,
        y_entries,
    }
}

/// Two patterns with those of their columns alone that have an entry in either.
fn renumbered(patterns: [&Pattern; 2]) -> [Pattern; 2] {
    let mut occupied: Vec<u32> = patterns.map(Pattern::indices).concat();
    occupied.sort_unstable();
    occupied.dedup();
    patterns.map(|pattern| {
        let columns = pattern.indices().iter();
        let places = columns.map(|column| occupied.partition_point(|other| other < column) as u32);
        Pattern::new(
            pattern.rows(),
            occupied.len(),
            pattern.indptr().to_vec(),
            places.collect(),
        )
        .expect("every column is occupied")
    })
}

fn check(x: &Csr, y: &Csr) -> Result<(), DistanceError> {
    if x.cols() != y.cols() {
        let (x, y) = (x.cols(), y.cols());
        return Err(DistanceError::Columns { x, y });
    }
    if x.dtype() != y.dtype() {
        let (x, y) = (x.dtype(), y.dtype());
        return Err(DistanceError::Dtypes { x, y });
    }
    let (x, y) = (x.device(), y.device());
    if x != y {
        return Err(DistanceError::Devices {
            x: format!("{x:?}"),
            y: format!("{y:?}"),
        });
    }
    Ok(())
}
