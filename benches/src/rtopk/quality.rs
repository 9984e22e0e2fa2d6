//! Table 2: what early stop selects.

use cubecl::client::Client;
use rayon::prelude::*;
use sparsek_kernels::topk::{Method, TopkOptions};
use sparsek_tests::oracle;

use super::{
    estimate::Sample,
    exits::OURS,
    loops, paper,
    table::{Cell, Column, Table},
};
use crate::{
    case::RowCase,
    topk::{Form, Problem, checked_members},
};

/// The loop that the paper's figures come from.
pub const BREAK: &str = "with Algorithm 1's break";

/// The rows of the table for one number of iterations.
const FIGURES: [&str; 3] = ["E1", "E2", "hit"];

/// E1, E2 and hit rate of one selection, in percent.
type Quality = [Sample; 3];

/// The table of ours, and of Algorithm 2 with Algorithm 1's break.
pub fn tables(client: &Client, input: &[f32]) -> anyhow::Result<[Table; 2]> {
    let rows = input.len() / paper::M;
    let table = |variant| Table {
        number: 2,
        rows,
        variant,
        columns: Vec::new(),
    };
    let mut tables = [table(OURS), table(BREAK)];
    for column in &paper::TABLE_2 {
        let case = RowCase::new(rows, paper::M, column.k);
        let best = best(input, column.k);
        let mut cells = [Vec::new(), Vec::new()];
        for (&iterations, paper) in paper::ITERATIONS.iter().zip(&column.quality) {
            let mut problem = Problem::new(&case, Form::Pairs, input);
            problem.method = Method::EarlyStop(iterations);
            let members = checked_members(client, &problem)?;
            let ours = quality(input, &best, |row| {
                let members = &members[row * column.k..][..column.k];
                members.iter().map(|&i| i as usize).collect()
            });
            let broken = quality(input, &best, |row| {
                let row = &input[row * paper::M..][..paper::M];
                loops::early_stop_with_break(row, column.k, iterations)
            });
            cells[0].extend(compare(iterations, paper, &ours));
            cells[1].extend(compare(iterations, paper, &broken));
        }
        for (table, cells) in tables.iter_mut().zip(cells) {
            table.columns.push(Column {
                m: paper::M,
                k: column.k,
                cells,
            });
        }
    }
    Ok(tables)
}

/// The members of the exact selection of each row, best first.
fn best(input: &[f32], k: usize) -> Vec<Vec<usize>> {
    let options = TopkOptions {
        sorted: true,
        ..TopkOptions::new(k)
    };
    let rows = input.par_chunks(paper::M);
    rows.map(|row| oracle::topk::select(row, &options))
        .collect()
}

fn quality(
    input: &[f32],
    best: &[Vec<usize>],
    members: impl Fn(usize) -> Vec<usize> + Sync,
) -> Quality {
    let rows = input.par_chunks(paper::M).zip(best).enumerate();
    let each = rows.map(|(at, (row, best))| {
        of_row(row, best, &members(at)).map(|value| Sample::default().with(value))
    });
    each.reduce(Quality::default, |a, b| [0, 1, 2].map(|i| a[i].and(b[i])))
}

/// The errors of the greatest and the least member, relative to the greatest of the row, and the share
/// of the best among the members. The least of the best may be near zero, so the paper's E2 cannot be
/// relative to it.
fn of_row(row: &[f32], best: &[usize], members: &[usize]) -> [f64; 3] {
    let value = |i: usize| f64::from(row[i]);
    let (greatest, least) = (value(best[0]), value(best[best.len() - 1]));
    let values = || members.iter().map(|&i| value(i));
    let found = (
        values().fold(f64::NEG_INFINITY, f64::max),
        values().fold(f64::INFINITY, f64::min),
    );
    let hits = best.iter().filter(|i| members.contains(i)).count();
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
                sample.error(paper::ROWS),
            )
        })
        .collect()
}
