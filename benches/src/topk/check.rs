//! Results held against the oracle.

use anyhow::ensure;
use rayon::prelude::*;
use sparsek_tests::{element::Element, oracle};

use super::{Form, Problem};

/// A result in the host's memory.
pub enum Output<'a, T> {
    /// Members and their columns, `[rows, k]`.
    Pairs(&'a [T], &'a [u32]),
    /// `[rows, cols]`.
    Dense(&'a [T]),
}

/// Compares up to `most` rows with the oracle, evenly spread, the last among them, and returns how
/// many they were.
pub fn check<T: Element>(
    problem: &Problem<T>,
    output: &Output<T>,
    most: usize,
) -> anyhow::Result<usize> {
    let rows = problem.case.rows;
    let step = rows.div_ceil(most).max(1);
    let sample: Vec<usize> = (0..rows).rev().step_by(step).collect();
    let wrong = sample
        .par_iter()
        .find_any(|&&row| !right(problem, output, row));
    ensure!(wrong.is_none(), "row {wrong:?} differs from the oracle");
    Ok(sample.len())
}

fn right<T: Element>(problem: &Problem<T>, output: &Output<T>, row: usize) -> bool {
    let (cols, k) = (problem.case.cols, problem.case.k);
    let input = problem.row(row);
    let members = oracle::topk::select(input, &problem.options());
    match output {
        Output::Pairs(values, indices) => {
            let range = row * k..(row + 1) * k;
            let found = indices[range.clone()].iter().map(|&i| i as usize);
            found.eq(members.iter().copied())
                && same(&values[range], members.iter().map(|&i| input[i]))
        }
        Output::Dense(values) => {
            let mut dense = vec![T::of(0.0); cols];
            for (at, &i) in members.iter().enumerate() {
                dense[i] = if problem.form == Form::Gradient {
                    problem.gradients[row * k + at]
                } else {
                    input[i]
                };
            }
            same(&values[row * cols..][..cols], dense.into_iter())
        }
    }
}

fn same<T: Element>(found: &[T], right: impl Iterator<Item = T>) -> bool {
    found.iter().zip(right).all(|(a, b)| a.same(b))
}
