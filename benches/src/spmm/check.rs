//! Compares sampled rows of a product with sums in f64.

use anyhow::ensure;
use sparsek::sparse::Pattern;
use sparsek_kernels::topk::TopkOptions;
use sparsek_tests::oracle::topk::select;

use super::{
    graph::longest,
    operands::{FEATURES, UPSTREAM, number},
};

/// Evenly spaced rows to check, besides the longest.
const ROWS: usize = 40;

/// A graph, its transpose, and the rows to check.
pub struct Checked<'a> {
    graph: &'a Pattern,
    transposed: &'a Pattern,
    width: usize,
    rows: Vec<usize>,
}

impl<'a> Checked<'a> {
    pub fn new(graph: &'a Pattern, transposed: &'a Pattern, width: usize) -> Self {
        let step = graph.rows().div_ceil(ROWS).max(1);
        let mut rows: Vec<usize> = (0..graph.rows()).step_by(step).collect();
        rows.push(longest(graph));
        rows.push(longest(transposed));
        Self { graph, transposed, width, rows }
    }

    /// Columns of the k greatest elements of a row of features.
    fn selected(&self, row: usize, k: usize) -> Vec<usize> {
        if k == self.width {
            return (0..k).collect();
        }
        let features: Vec<f32> = (0..self.width).map(|column| self.feature(row, column)).collect();
        select(&features, &TopkOptions::new(k))
    }

    fn feature(&self, row: usize, column: usize) -> f32 {
        number(row * self.width + column, FEATURES)
    }

    /// Checks the values of compressed rows.
    pub fn compressed(&self, found: impl Row, k: usize) -> anyhow::Result<usize> {
        for &at in &self.rows {
            let columns = self.selected(at, k).into_iter();
            let values: Vec<f32> = columns.map(|column| self.feature(at, column)).collect();
            ensure!(found(at)? == values, "row {at} differs from the oracle");
        }
        Ok(self.rows.len())
    }

    /// Checks the product with the k greatest elements of each row of features.
    pub fn forward(&self, found: impl Row, k: usize) -> anyhow::Result<usize> {
        for &at in &self.rows {
            let mut sums = vec![[0.0f64; 2]; self.width];
            for &from in self.graph.row(at) {
                for column in self.selected(from as usize, k) {
                    add(&mut sums[column], self.feature(from as usize, column));
                }
            }
            compare(at, self.graph.row(at).len(), &found(at)?, &sums)?;
        }
        Ok(self.rows.len())
    }

    /// Checks the gradient of the compressed values.
    pub fn backward(&self, found: impl Row, k: usize) -> anyhow::Result<usize> {
        for &at in &self.rows {
            let selected = self.selected(at, k);
            let mut sums = vec![[0.0f64; 2]; k];
            for &from in self.transposed.row(at) {
                for (sum, column) in sums.iter_mut().zip(&selected) {
                    add(sum, number(from as usize * self.width + column, UPSTREAM));
                }
            }
            compare(at, self.transposed.row(at).len(), &found(at)?, &sums)?;
        }
        Ok(self.rows.len())
    }
}

/// Reads a row of a result.
pub trait Row: Fn(usize) -> anyhow::Result<Vec<f32>> {}

impl<F: Fn(usize) -> anyhow::Result<Vec<f32>>> Row for F {}

/// Adds a term to a sum and to its magnitude.
fn add(sum: &mut [f64; 2], term: f32) {
    sum[0] += f64::from(term);
    sum[1] += f64::from(term.abs());
}

fn compare(row: usize, terms: usize, found: &[f32], sums: &[[f64; 2]]) -> anyhow::Result<()> {
    for (column, (&found, &[sum, magnitude])) in found.iter().zip(sums).enumerate() {
        let bound = (terms + 2) as f64 * f64::from(f32::EPSILON) * magnitude;
        ensure!(
            (f64::from(found) - sum).abs() <= bound,
            "row {row}, element {column}: {found} instead of {sum}"
        );
    }
    Ok(())
}
