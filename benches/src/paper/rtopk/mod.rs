//! RTop-K, Tables 1, 2 and 5: statistics of our kernels' selections, beside the published ones.

mod estimate;
mod exits;
mod figures;
mod loops;
mod quality;
mod table;

use std::path::PathBuf;

use anyhow::bail;
use cubecl::client::Client;
use serde::Serialize;
use sparsek_tests::{
    backend::{Backend, Kind},
    data::Distribution,
};

use self::table::{Cell, Table};
use crate::{record, topk::seeded_rows};

/// Reproduces RTop-K's Tables 1, 2 and 5.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// Rows for Tables 1 and 2. Table 5 uses a tenth, as in the paper.
    #[arg(long, default_value_t = figures::ROWS)]
    rows: usize,
    /// Appends one JSON line per figure.
    #[arg(long)]
    json: Option<PathBuf>,
}

impl Arguments {
    /// Without records; None for the paper's rows.
    pub fn new(backend: Kind, rows: Option<usize>) -> Self {
        Self { backend, rows: rows.unwrap_or(figures::ROWS), json: None }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    bench: &'static str,
    backend: String,
    device: &'a str,
    table: u8,
    variant: &'static str,
    rows: usize,
    m: usize,
    k: usize,
    #[serde(flatten)]
    cell: &'a Cell,
}

/// Selects with the kernels, checks every row, compares with the paper.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let Some(client) = &backend.client else {
        bail!("{} has no kernels", arguments.backend);
    };
    say!("{} ({})", arguments.backend, backend.label);
    say!(
        "Ours, then in brackets the paper's figure and the sampling error (three standard errors \
         and rounding). ! marks a larger difference.\n"
    );
    let tables = [
        table_1(client, arguments.rows)?,
        table_2(client, arguments.rows)?,
        table_5(client, (arguments.rows / 10).max(1))?,
    ];
    for table in tables.iter().flatten() {
        write(arguments, &backend, table)?;
    }
    Ok(())
}

fn table_1(client: &Client, rows: usize) -> anyhow::Result<[Table; 2]> {
    let input = normal(rows, figures::M);
    let eps = figures::TABLE_1_EPS;
    let columns = exits::columns(client, &input, &figures::TABLE_1, eps, figures::ROWS)?;
    let tables = exits::tables(1, rows, columns);
    tables[0].print();
    for column in &figures::TABLE_1 {
        let (low, high) = exits::average_of_column(column);
        if !(low - figures::ROUNDING..=high + figures::ROUNDING).contains(&column.average) {
            say!(
                "k = {}: the paper's average exit, {:.2}, does not follow from its own column, \
                 which allows {low:.2} to {high:.2}.",
                column.k,
                column.average
            );
        }
    }
    say!(
        "\nThe same rows by the loop as printed. It tests thres - min against eps max, not max - \
         min against eps max(|min|, |max|) (R7, R8), so a search that exits by width exits one \
         iteration earlier."
    );
    tables[1].print_outside();
    Ok(tables)
}

fn table_2(client: &Client, rows: usize) -> anyhow::Result<[Table; 2]> {
    let tables = quality::tables(client, &normal(rows, figures::M))?;
    tables[0].print();
    say!(
        "Algorithm 2 as printed converges to the exact selection; the paper's figures do not. The \
         same rows by a loop that exits when the count is k, as Algorithm 1's does, but selects \
         from min:\n"
    );
    tables[1].print();
    say!(
        "E2 is relative to the greatest element of the row. Relative to the k-th, which is near \
         zero for k = 128, it would differ widely from the paper's.\n"
    );
    Ok(tables)
}

fn table_5(client: &Client, rows: usize) -> anyhow::Result<[Table; 2]> {
    let mut found = [Vec::new(), Vec::new()];
    for columns in figures::TABLE_5.chunk_by(|a, b| a.m == b.m) {
        let input = normal(rows, columns[0].m);
        let more = exits::columns(client, &input, columns, 0.0, figures::TABLE_5_ROWS)?;
        for (found, more) in found.iter_mut().zip(more) {
            found.extend(more);
        }
    }
    let tables = exits::tables(5, rows, found);
    tables[0].print();
    say!("The same rows by the loop as printed, stopped where it would never exit (R9).");
    tables[1].print_outside();
    Ok(tables)
}

fn normal(rows: usize, cols: usize) -> Vec<f32> {
    seeded_rows(rows, cols, Distribution::Normal, 0)
}

fn write(arguments: &Arguments, backend: &Backend, table: &Table) -> anyhow::Result<()> {
    let Some(path) = &arguments.json else {
        return Ok(());
    };
    for column in &table.columns {
        for cell in &column.cells {
            let line = Line {
                bench: "rtopk-stats",
                backend: arguments.backend.to_string(),
                device: &backend.label,
                table: table.number,
                variant: table.variant,
                rows: table.rows,
                m: column.m,
                k: column.k,
                cell,
            };
            record::append(path, &line)?;
        }
    }
    Ok(())
}
