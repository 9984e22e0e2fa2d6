//! Compares a backend's results with the oracle.

use sparsek_kernels::topk::{Method, TopkOptions};

use crate::data::Matrix;
use crate::element::{Element, Wide};
use crate::oracle::topk::{select, slots, tolerance};

/// Position in a slot without a selected element.
pub const MISSING: i64 = -1;

/// Checks positions, and values if given, against the oracle, element by element.
///
/// `Precision(eps)` is also checked against its definition, so that an error that the oracle shares
/// does not pass.
pub fn selection<T: Element>(
    matrix: &Matrix<T>,
    options: &TopkOptions,
    values: Option<&[T]>,
    positions: &[i64],
) -> Result<(), String> {
    let k = options.k;
    let expected = matrix.rows * k;
    if positions.len() != expected {
        return Err(format!("{} positions instead of {expected} for {options:?}", positions.len()));
    }
    if let Some(values) = values.filter(|values| values.len() != expected) {
        return Err(format!("{} values instead of {expected} for {options:?}", values.len()));
    }
    for i in 0..matrix.rows {
        let row = matrix.existing(i);
        let found = &positions[i * k..(i + 1) * k];
        let wanted = slots(row, options);
        let start = matrix.columns(i).start;
        let position = |j: usize| wanted[j].map_or(MISSING, |at| (start + at) as i64);
        if let Some(at) = (0..k).find(|&j| found[j] != position(j)) {
            return Err(mismatch(matrix, i, options, at, found[at], position(at)));
        }
        if let Some(values) = values {
            let values = &values[i * k..(i + 1) * k];
            let value = |j: usize| wanted[j].map_or(T::of(0.0), |at| row[at]);
            if let Some(j) = (0..k).find(|&j| !values[j].same(value(j))) {
                return Err(format!(
                    "{}: value {j} is {:?}, the element at {} is {:?}",
                    context(matrix, i, options),
                    values[j],
                    position(j),
                    value(j)
                ));
            }
        }
        if let Method::Precision(eps) = options.method {
            let selected: Vec<usize> = wanted.into_iter().flatten().collect();
            check_tolerance(row, options, eps, &selected)
                .map_err(|e| format!("{}: {e}", context(matrix, i, options)))?;
        }
    }
    Ok(())
}

/// Checks a dense mask: selected elements keep their values, all others are +0.
pub fn mask<T: Element>(
    matrix: &Matrix<T>,
    options: &TopkOptions,
    dense: &[T],
) -> Result<(), String> {
    if dense.len() != matrix.data.len() {
        return Err(format!("{} elements instead of {}", dense.len(), matrix.data.len()));
    }
    for i in 0..matrix.rows {
        let row = matrix.existing(i);
        let start = matrix.columns(i).start;
        let mut wanted = vec![T::of(0.0); matrix.cols];
        slots(row, options).into_iter().flatten().for_each(|j| wanted[start + j] = row[j]);
        let found = &dense[i * matrix.cols..(i + 1) * matrix.cols];
        if let Some(j) = (0..matrix.cols).find(|&j| !found[j].same(wanted[j])) {
            return Err(format!(
                "{}: element {j} is {:?} instead of {:?}",
                context(matrix, i, options),
                found[j],
                wanted[j]
            ));
        }
    }
    Ok(())
}

/// Checks that no selected element is more than eps · max|x| worse than the k-th.
fn check_tolerance<T: Element>(
    row: &[T],
    options: &TopkOptions,
    eps: f32,
    selected: &[usize],
) -> Result<(), String> {
    let exact = select(
        row,
        &TopkOptions { k: selected.len(), method: Method::Exact, sorted: true, ..*options },
    );
    let Some(kth) = exact.last().map(|&i| row[i].wide()).filter(|x| x.is_finite()) else {
        return Ok(());
    };
    // Thresholds are f32 except for f64, and subnormals count as zero.
    let rounding = if size_of::<T>() == 8 && T::FLOAT { 1e-15 } else { 1.3e-7 };
    let slack = tolerance(row, eps) + tolerance(row, rounding) + f64::from(f32::MIN_POSITIVE);
    for &i in selected {
        let x = row[i].wide();
        let behind =
            if options.largest { kth.to_f64() - x.to_f64() } else { x.to_f64() - kth.to_f64() };
        if behind > slack {
            return Err(format!(
                "element {i} = {x:?} is {behind} worse than the k-th, {kth:?}; the slack is {slack}"
            ));
        }
    }
    Ok(())
}

fn context<T: Element>(matrix: &Matrix<T>, row: usize, options: &TopkOptions) -> String {
    let columns = matrix.lengths.as_ref();
    let columns =
        columns.map_or(String::new(), |_| format!(", columns {:?},", matrix.columns(row)));
    format!("row {row}{columns} of {} × {} {}, {options:?}", matrix.rows, matrix.cols, T::NAME)
}

fn mismatch<T: Element>(
    matrix: &Matrix<T>,
    i: usize,
    options: &TopkOptions,
    at: usize,
    found: i64,
    wanted: i64,
) -> String {
    let row = matrix.row(i);
    let show = |j: i64| match usize::try_from(j).ok().and_then(|j| row.get(j)) {
        Some(x) => format!("{j} ({x:?}, bits {:#x})", x.bits()),
        None => format!("{j} (outside the row)"),
    };
    format!(
        "{}: output {at} is position {} instead of {}",
        context(matrix, i, options),
        show(found),
        show(wanted)
    )
}
