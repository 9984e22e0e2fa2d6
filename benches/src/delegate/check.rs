//! Whether members are those of a vector.

use anyhow::{Context, ensure};
use rayon::prelude::*;
use sparsek_tests::element::Element;

/// Whether these are the k greatest, ties to the lowest index, in index order. For inputs without NaN.
pub fn check<T: Element>(input: &[T], values: &[T], indices: &[i64]) -> anyhow::Result<()> {
    ensure!(
        indices.is_sorted_by(|a, b| a < b),
        "indices are not in order"
    );
    let there = indices.iter().zip(values);
    ensure!(
        there
            .clone()
            .all(|(&at, value)| input[at as usize].same(*value)),
        "values are not those of the indices"
    );
    let least = values.iter().map(|value| value.wide_f64()).reduce(f64::min);
    let least = least.context("k is zero")?;
    let above = values.iter().filter(|value| value.wide_f64() > least);
    let (above, level) = (above.count(), |value: &T| value.wide_f64() == least);
    let found = input.par_iter().filter(|value| value.wide_f64() > least);
    ensure!(found.count() == above, "greater elements are missing");
    let last = there.filter(|(_, value)| level(value)).map(|(at, _)| *at);
    let last = last.max().context("no least member")? as usize;
    let first = input[..=last].par_iter().filter(|value| level(value));
    ensure!(
        first.count() == values.len() - above,
        "equal elements are not the first"
    );
    Ok(())
}
