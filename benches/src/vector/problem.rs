//! Seeded vectors, and the check of a selection from them.

use anyhow::{Context, ensure};
use rayon::prelude::*;
use sparsek_tests::{data::Distribution, element::Element};

use crate::topk::seeded_rows;

const SEEDED: usize = 1 << 16;

/// A vector drawn in blocks, each with a seed of its own.
pub fn vector<T: Element>(length: usize, dist: Distribution) -> Vec<T> {
    let mut input = seeded_rows::<T>(length.div_ceil(SEEDED), SEEDED, dist, 0);
    input.truncate(length);
    input
}

/// Checks that these are the k greatest elements in index order, ties to the lowest index. The
/// input has no NaN.
pub fn check<T: Element>(input: &[T], values: &[T], indices: &[i64]) -> anyhow::Result<()> {
    ensure!(indices.is_sorted_by(|a, b| a < b), "indices are not in order");
    let pairs = indices.iter().zip(values);
    ensure!(
        pairs.clone().all(|(&at, value)| input[at as usize].same(*value)),
        "values do not match the indices"
    );
    let least = values.iter().map(|value| value.wide_f64()).reduce(f64::min);
    let least = least.context("k is zero")?;
    let above = values.iter().filter(|value| value.wide_f64() > least);
    let (above, level) = (above.count(), |value: &T| value.wide_f64() == least);
    let found = input.par_iter().filter(|value| value.wide_f64() > least);
    ensure!(found.count() == above, "greater elements are missing");
    let last = pairs.filter(|(_, value)| level(value)).map(|(at, _)| *at);
    let last = last.max().context("nothing selected")? as usize;
    let first = input[..=last].par_iter().filter(|value| level(value));
    ensure!(first.count() == values.len() - above, "equal elements are not those of lowest index");
    Ok(())
}
