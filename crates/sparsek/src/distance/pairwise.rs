use std::sync::Arc;

use burn::{
    backend::Dispatch,
    tensor::{Tensor, read_sync},
};
use sparsek_kernels::distance::is_wide;

use super::{error::DistanceError, measure::Measure, types::Samples};
use crate::{
    ops::{DistanceOps, DistanceSpec, Transposed, TransposedPattern},
    sparse::{Csr, Pattern, upload},
};

/// Distances of all rows of `x` to all rows of `y`, or of `x`.
///
/// # Shapes and dtypes
///
/// `x`: m rows; `y`: n rows; equal columns, dtype and device. Result: `[m, n]`, f64 for f64, else
/// f32.
///
/// # Guarantees
///
/// Deterministic; routines agree up to rounding. Metrics ignore explicit zeros; custom semirings
/// count them. Empty rows, NaN, range and cancellation: `docs/guarantees.md`.
///
/// # Gradient
///
/// For both matrices, zeros of dense rows included; deterministic. None for pairs with infinite or
/// NaN distance. Without a slope:
///
/// - `Euclidean`: 0 for equal rows.
/// - `Manhattan`, `BrayCurtis`: 0 for differences or sums of 0.
/// - `Minkowski`: 0 for equal values.
/// - `Canberra`: 0 for equal values; −1 / y for a zero.
/// - `Hellinger`, `JensenShannon`: 0 for equal rows and for zeros.
/// - `KullbackLeibler`, `SymmetricKl`: 0 for zeros.
///
/// [`Dot`](super::Metric::Dot), `SqEuclidean`, `Cosine` and `Correlation` always have slopes.
///
/// Takes another `[m, n]` and the pairs of entries per column; `Minkowski`, each entry with each
/// row.
///
/// # Errors
///
/// If widths, dtypes or devices differ, or the parameter is out of range.
///
/// # Panics
///
/// If tracked values have no gradient, a forced routine cannot run, or the device lacks memory or
/// f64 logarithms.
///
/// # Cost
///
/// Pairs of entries per column; without shared memory (except on Flex), both rows of each pair.
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
pub fn pairwise_distances<S: Samples>(
    x: &S,
    y: Option<&S>,
    measure: impl Into<Measure>,
) -> Result<Tensor<2>, DistanceError> {
    check(x, y.unwrap_or(x))?;
    let measure = measure.into();
    measure.check()?;
    let tracked = measure.metric().is_some()
        && measure.distance.algebra().gradient.is_some()
        && x.device().is_autodiff();
    let convert = |rows: &S| match tracked {
        true => rows.to_tracked_csr(),
        false => read_sync(rows.to_csr()),
    };
    let (x, y) = (convert(x)?, y.map(convert).transpose()?);
    Ok(pairwise(&x, y.as_ref(), measure))
}

fn pairwise(x: &Csr, y: Option<&Csr>, measure: Measure) -> Tensor<2> {
    let other = y.unwrap_or(x);
    let spec = measure.spec([x, other], y.is_none());
    let distances = <Dispatch as DistanceOps>::pairwise(
        x.tensors(),
        other.tensors(),
        transposed(x, other, &spec),
        spec,
    );
    Tensor::from_dispatch(distances)
}

fn transposed(x: &Csr, y: &Csr, spec: &DistanceSpec) -> Transposed<Dispatch> {
    let device = x.device();
    if spec.distance.algebra().gradient.is_none() || !device.is_autodiff() {
        return Transposed::Without;
    }
    let transpose = |pattern: &Pattern| {
        let (pattern, entries) = pattern.transpose();
        let ids = [pattern.indptr(), pattern.indices(), &entries];
        let [indptr, rows, entries] = ids.map(|ids| upload(ids, &device).into_dispatch());
        TransposedPattern { indptr, rows, entries }
    };
    let [(x_columns, x), (y_columns, y)] = match is_wide(x.cols(), x.nnz() + y.nnz()) {
        true => renumbered([x.pattern(), y.pattern()]).map(|pattern| {
            let columns = upload(pattern.indices(), &device);
            (columns, Arc::new(pattern))
        }),
        false => [x, y].map(|matrix| (matrix.indices().clone(), matrix.pattern().clone())),
    };
    Transposed::Both {
        x_columns: x_columns.into_dispatch(),
        x: transpose(&x),
        y_columns: y_columns.into_dispatch(),
        y: transpose(&y),
    }
}

/// Drops columns that are empty in both.
fn renumbered(patterns: [&Pattern; 2]) -> [Pattern; 2] {
    let mut occupied: Vec<u32> = patterns.map(Pattern::indices).concat();
    occupied.sort_unstable();
    occupied.dedup();
    patterns.map(|pattern| {
        let columns = pattern.indices().iter();
        let places = columns.map(|column| occupied.partition_point(|other| other < column) as u32);
        Pattern::new(pattern.rows(), occupied.len(), pattern.indptr().to_vec(), places.collect())
            .expect("every column is occupied")
    })
}

pub(super) fn check<S: Samples>(x: &S, y: &S) -> Result<(), DistanceError> {
    check_kinds(x, y)?;
    let (x, y) = (x.device(), y.device());
    if x != y {
        return Err(DistanceError::Devices { x: format!("{x:?}"), y: format!("{y:?}") });
    }
    Ok(())
}

pub(super) fn check_kinds<S: Samples>(x: &S, y: &S) -> Result<(), DistanceError> {
    if x.cols() != y.cols() {
        let (x, y) = (x.cols(), y.cols());
        return Err(DistanceError::Columns { x, y });
    }
    if x.dtype() != y.dtype() {
        let (x, y) = (x.dtype(), y.dtype());
        return Err(DistanceError::Dtypes { x, y });
    }
    Ok(())
}
