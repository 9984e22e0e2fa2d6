//! A published table beside ours.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{estimate::STANDARD_ERRORS, figures};

#[derive(Clone, Serialize)]
pub struct Cell {
    pub figure: String,
    pub paper: f64,
    pub ours: f64,
    /// Sampling error: three standard errors of the difference, plus the paper's rounding.
    pub error: f64,
    pub within: bool,
}

impl Cell {
    /// `error` excludes the paper's rounding.
    pub fn new(figure: impl Into<String>, paper: f64, ours: f64, error: f64) -> Self {
        let error = error + figures::ROUNDING;
        Self { figure: figure.into(), paper, ours, error, within: (ours - paper).abs() <= error }
    }

    fn standard_errors(&self) -> f64 {
        STANDARD_ERRORS * (self.ours - self.paper) / self.error
    }

    fn text(&self) -> String {
        let mark = if self.within { "" } else { " !" };
        format!("{:.2} ({:.2} ± {:.2}){mark}", self.ours, self.paper, self.error)
    }
}

pub struct Column {
    pub m: usize,
    pub k: usize,
    pub cells: Vec<Cell>,
}

/// A published table, counted by one loop.
pub struct Table {
    pub number: u8,
    pub rows: usize,
    pub variant: &'static str,
    pub columns: Vec<Column>,
}

impl Table {
    /// Cells that agree, and the root mean square difference in standard errors. It is about 1 if
    /// both figures come from the same loop.
    fn agreement(&self) -> String {
        let cells = || self.columns.iter().flat_map(|column| &column.cells);
        let all = cells().count();
        let within = cells().filter(|cell| cell.within).count();
        let squares: f64 = cells().map(|cell| cell.standard_errors().powi(2)).sum();
        let distance = (squares / all as f64).sqrt();
        format!(
            "{within} of {all} cells within the sampling error, {distance:.2} standard errors \
             apart (root mean square)."
        )
    }

    /// Prints the agreement and the cells that differ.
    pub fn print_outside(&self) {
        say!("{}", self.agreement());
        for column in &self.columns {
            for cell in column.cells.iter().filter(|cell| !cell.within) {
                say!("M = {}, k = {}, {}: {}", column.m, column.k, cell.figure, cell.text());
            }
        }
        say!();
    }

    /// Prints Markdown: our figure, then in brackets the paper's and the error; `!` marks a larger
    /// difference.
    pub fn print(&self) {
        say!("Table {}, {}, {} rows: {}\n", self.number, self.variant, self.rows, self.agreement());
        let sizes: BTreeSet<usize> = self.columns.iter().map(|column| column.m).collect();
        for m in sizes {
            let columns: Vec<&Column> = self.columns.iter().filter(|c| c.m == m).collect();
            let names: Vec<String> = columns.iter().map(|c| format!(" k = {} |", c.k)).collect();
            say!("| M = {m} |{}", names.concat());
            say!("| --- |{}", " --- |".repeat(columns.len()));
            for figure in row_names(&columns) {
                let cells: Vec<String> = columns.iter().map(|c| text(c, figure)).collect();
                say!("| {figure} |{}", cells.concat());
            }
            say!();
        }
    }
}

/// Row names, from the longest column.
fn row_names<'a>(columns: &[&'a Column]) -> Vec<&'a str> {
    let longest = columns.iter().max_by_key(|column| column.cells.len());
    longest.map_or(Vec::new(), |column| column.cells.iter().map(|cell| &*cell.figure).collect())
}

fn text(column: &Column, figure: &str) -> String {
    let cell = column.cells.iter().find(|cell| cell.figure == figure);
    cell.map_or(" |".into(), |cell| format!(" {} |", cell.text()))
}
