//! Tables 1 and 5: the iteration at which Algorithm 1 exits.

use cubecl::client::Client;
use rayon::prelude::*;
use sparsek_kernels::topk::Method;
use sparsek_tests::oracle::{self, topk::Exit};

use super::{
    estimate::{Sample, error_of_percentage},
    figures, loops,
    table::{Cell, Column, Table},
};
use crate::{
    case::RowCase,
    topk::{Form, Problem, checked_selection},
};

/// Our loop, which the kernels match on every row, and the loop as the paper prints it.
pub const OURS: &str = "ours";
const PRINTED: &str = "as printed";

/// Columns of one row length, counted by our loop and by the printed one.
pub fn columns(
    client: &Client,
    input: &[f32],
    columns: &[figures::Exits],
    eps: f32,
    paper_rows: usize,
) -> anyhow::Result<[Vec<Column>; 2]> {
    let mut found = [Vec::new(), Vec::new()];
    for column in columns {
        let case = RowCase::new(input.len() / column.m, column.m, column.k);
        let mut problem = Problem::new(&case, Form::Pairs, input);
        problem.method = Method::Precision(eps);
        checked_selection(client, &problem)?;
        let rows = || input.par_chunks(column.m);
        let ours: Vec<u32> =
            rows().map(|row| iteration(oracle::topk::exit(row, column.k, true, eps))).collect();
        let printed: Vec<u32> = rows().map(|row| loops::printed_exit(row, column.k, eps)).collect();
        found[0].push(compare(column, &ours, paper_rows));
        found[1].push(compare(column, &printed, paper_rows));
    }
    Ok(found)
}

/// One table for each loop.
pub fn tables(number: u8, rows: usize, columns: [Vec<Column>; 2]) -> [Table; 2] {
    let [ours, printed] = columns;
    let table = |variant, columns| Table { number, rows, variant, columns };
    [table(OURS, ours), table(PRINTED, printed)]
}

/// The midpoint that ended the search, from 1: the one that k elements reach, or the first untried
/// one.
fn iteration(exit: Exit) -> u32 {
    if exit.found { exit.counts - 1 } else { exit.counts }
}

fn compare(column: &figures::Exits, exits: &[u32], paper_rows: usize) -> Column {
    let rows = exits.len();
    let mut cells: Vec<Cell> = column
        .cumulative
        .iter()
        .zip(column.first..)
        .map(|(&paper, iteration)| {
            let count = exits.iter().filter(|&&exit| exit as usize <= iteration).count();
            let ours = 100.0 * count as f64 / rows as f64;
            let error = error_of_percentage(count, rows, paper, paper_rows);
            Cell::new(iteration.to_string(), paper, ours, error)
        })
        .collect();
    let sample = exits.iter().fold(Sample::default(), |sample, &exit| sample.with(exit.into()));
    cells.push(Cell::new("average", column.average, sample.mean(), sample.error(paper_rows)));
    if let Some(predicted) = column.predicted {
        cells.push(Cell::new("E(n)", predicted, expected_exit(column.m, column.k), 0.0));
    }
    Column { m: column.m, k: column.k, cells }
}

/// Bounds on the average exit implied by the paper's column. Exits before its first iteration are
/// unknown.
pub fn average_of_column(column: &figures::Exits) -> (f64, f64) {
    let left: f64 = column.cumulative.iter().map(|share| 1.0 - share / 100.0).sum();
    let unknown = (column.first - 1) as f64;
    let known = 1.0 + left;
    (known + unknown * (1.0 - column.cumulative[0] / 100.0), known + unknown)
}

/// Equation 4: the expected number of iterations.
pub fn expected_exit(m: usize, k: usize) -> f64 {
    let (m, k) = (m as f64, k as f64);
    let quantile = upper_quantile(k / m);
    let width = (2.0 * m * (m.ln() / std::f64::consts::PI).sqrt()).log2();
    width - quantile * quantile / (2.0 * std::f64::consts::LN_2)
}

/// The value that a share (at most 1/2) of the standard normal distribution exceeds.
fn upper_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 10.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if 0.5 - share_up_to(middle) > share {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The share of the standard normal distribution between 0 and `x`, by Simpson's rule.
fn share_up_to(x: f64) -> f64 {
    const STEPS: u32 = 1000;
    let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    let step = x / f64::from(STEPS);
    let sum: f64 =
        (1..STEPS).map(|i| f64::from(2 + 2 * (i % 2)) * density(f64::from(i) * step)).sum();
    (density(0.0) + sum + density(x)) * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal_distribution() {
        assert!((upper_quantile(0.025) - 1.959_963_985).abs() < 1e-8);
        assert!(upper_quantile(0.5).abs() < 1e-8);
    }

    #[test]
    fn equation_4_gives_the_papers_numbers() {
        for column in &figures::TABLE_5 {
            let expected = expected_exit(column.m, column.k);
            assert!((expected - column.predicted.unwrap_or(0.0)).abs() <= figures::ROUNDING);
        }
    }

    #[test]
    fn averages_of_table_5_follow_from_its_columns() {
        for column in &figures::TABLE_5 {
            let (low, high) = average_of_column(column);
            assert!(low == high && (low - column.average).abs() < 2.0 * figures::ROUNDING);
        }
    }
}
