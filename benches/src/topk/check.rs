//! Comparison of results with the oracle.

use anyhow::ensure;
use rayon::prelude::*;
use sparsek_kernels::topk::TopkOptions;
use sparsek_tests::{element::Element, oracle};

use super::problem::{Form, Problem};

/// Rows compared before a case is timed, evenly spread over the matrix.
pub const CHECKED_ROWS: usize = 1 << 15;

pub enum Output<'a, T> {
    /// Selected values and their columns, `[rows, k]`.
    Pairs(&'a [T], &'a [u32]),
    /// Columns of the selected elements, `[rows, k]`.
    Indices(&'a [u32]),
    Dense(&'a [T]),
}

/// Compares up to `most` evenly spread rows with the oracle, the last included. Returns their
/// number.
pub fn check<T: Element>(
    problem: &Problem<T>,
    output: &Output<T>,
    most: usize,
) -> anyhow::Result<usize> {
    let rows = problem.case.rows;
    let step = rows.div_ceil(most).max(1);
    let sample: Vec<usize> = (0..rows).rev().step_by(step).collect();
    let wrong = sample.par_iter().find_any(|&&row| !matches(problem, output, row));
    ensure!(wrong.is_none(), "row {wrong:?} differs from the oracle");
    Ok(sample.len())
}

fn matches<T: Element>(problem: &Problem<T>, output: &Output<T>, row: usize) -> bool {
    let (cols, k) = (problem.case.cols, problem.case.k);
    let (start, input) = problem.row(row);
    let options = problem.options();
    let options = TopkOptions { k: k.min(input.len()), ..options };
    let selected = oracle::topk::select(input, &options);
    let range = row * k..row * k + options.k;
    let has_columns = |indices: &[u32]| {
        // Empty slots come last.
        let mut empty = indices[range.end..(row + 1) * k].iter();
        let found = indices[range.clone()].iter().map(|&i| i as usize);
        empty.all(|&index| index == u32::MAX) && found.eq(selected.iter().map(|&i| start + i))
    };
    match output {
        Output::Pairs(values, indices) => {
            let values = &values[range.clone()];
            has_columns(indices) && same(values, selected.iter().map(|&i| input[i]))
        }
        Output::Indices(indices) => has_columns(indices),
        Output::Dense(values) => {
            let mut dense = vec![T::of(0.0); cols];
            for (at, &i) in selected.iter().enumerate() {
                dense[start + i] = if problem.form == Form::Gradient {
                    problem.gradients[row * k + at]
                } else {
                    input[i]
                };
            }
            same(&values[row * cols..][..cols], dense.into_iter())
        }
    }
}

fn same<T: Element>(found: &[T], expected: impl Iterator<Item = T>) -> bool {
    found.iter().zip(expected).all(|(a, b)| a.same(b))
}
