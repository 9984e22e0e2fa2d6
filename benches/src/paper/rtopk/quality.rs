//! Table 2: what early stop selects.

use cubecl::client::Client;
use rayon::prelude::*;
use sparsek_kernels::topk::{Method, TopkOptions};
use sparsek_tests::oracle;

use super::{
    estimate::Sample,
    exits::OURS,
    figures, loops,
    table::{Cell, Column, Table},
};
use crate::{
    case::RowCase,
    topk::{Form, Problem, checked_selection},
};

/// The loop that reproduces the paper's figures.
const BREAK: &str = "with Algorithm 1's break";

const FIGURES: [&str; 3] = ["E1", "E2", "hit"];

/// E1, E2 and hit rate of one selection, in percent.
type Quality = [Sample; 3];

/// One table for our loop, one for Algorithm 2 with Algorithm 1's break.
pub fn tables(client: &Client, input: &[f32]) -> anyhow::Result<[Table; 2]> {
    let rows = input.len() / figures::M;
    let table = |variant| Table { number: 2, rows, variant, columns: Vec::new() };
    let mut tables = [table(OURS), table(BREAK)];
    for column in &figures::TABLE_2 {
        let case = RowCase::new(rows, figures::M, column.k);
        let best = best(input, column.k);
        let mut cells = [Vec::new(), Vec::new()];
        for (&iterations, paper) in figures::ITERATIONS.iter().zip(&column.quality) {
            let mut problem = Problem::new(&case, Form::Pairs, input);
            problem.method = Method::EarlyStop(iterations);
            let selected = checked_selection(client, &problem)?;
            let ours = quality(input, &best, |row| {
                let selected = &selected[row * column.k..][..column.k];
                selected.iter().map(|&i| i as usize).collect()
            });
            let broken = quality(input, &best, |row| {
                let row = &input[row * figures::M..][..figures::M];
                loops::early_stop_with_break(row, column.k, iterations)
            });
            cells[0].extend(compare(iterations, paper, &ours));
            cells[1].extend(compare(iterations, paper, &broken));
        }
        for (table, cells) in tables.iter_mut().zip(cells) {
            table.columns.push(Column { m: figures::M, k: column.k, cells });
        }
    }
    Ok(tables)
}

/// The exact selection of each row, best first.
fn best(input: &[f32], k: usize) -> Vec<Vec<usize>> {
    let options = TopkOptions { sorted: true, ..TopkOptions::new(k) };
    let rows = input.par_chunks(figures::M);
    rows.map(|row| oracle::topk::select(row, &options)).collect()
}

fn quality(
    input: &[f32],
    best: &[Vec<usize>],
    selected: impl Fn(usize) -> Vec<usize> + Sync,
) -> Quality {
    let rows = input.par_chunks(figures::M).zip(best).enumerate();
    let each = rows.map(|(at, (row, best))| {
        of_row(row, best, &selected(at)).map(|value| Sample::default().with(value))
    });
    each.reduce(Quality::default, |a, b| [0, 1, 2].map(|i| a[i].and(b[i])))
}

/// Errors of the greatest and the least selected element, relative to the row's greatest element,
/// and the hit rate. The k-th element may be near zero, so the paper's E2 cannot be relative to it.
fn of_row(row: &[f32], best: &[usize], selected: &[usize]) -> [f64; 3] {
    let value = |i: usize| f64::from(row[i]);
    let (greatest, least) = (value(best[0]), value(best[best.len() - 1]));
    let values = || selected.iter().map(|&i| value(i));
    let found =
        (values().fold(f64::NEG_INFINITY, f64::max), values().fold(f64::INFINITY, f64::min));
    let hits = best.iter().filter(|i| selected.contains(i)).count();
    [
        100.0 * (greatest - found.0).abs() / greatest.abs(),
        100.0 * (least - found.1).abs() / greatest.abs(),
        100.0 * hits as f64 / best.len() as f64,
    ]
}

fn compare(iterations: u32, paper: &[f64; 3], ours: &Quality) -> Vec<Cell> {
    let figures = FIGURES.iter().zip(paper).zip(ours);
    figures
        .map(|((name, &paper), sample)| {
            Cell::new(
                format!("{iterations}: {name}"),
                paper,
                sample.mean(),
                sample.error(figures::ROWS),
            )
        })
        .collect()
}
