use std::ops::Range;

use crate::distance::{
    prepare::{
        parts::{NORM_BLOCK, host::part_bits},
        range::host::row_factor,
    },
    semiring::{HostSemiring, Real, Rescale, host::max},
};

/// Host CSR matrix, columns ascending.
#[derive(Clone, Copy, Debug)]
pub struct HostMatrix<'a, S> {
    /// `rows+1` offsets.
    pub indptr: &'a [u32],
    /// Columns.
    pub indices: &'a [u32],
    /// Values.
    pub values: &'a [S],
    /// Column count.
    pub cols: usize,
}

/// Two matrices; `None` if the same.
pub type HostPair<'a, S> = (Option<&'a HostMatrix<'a, S>>, &'a HostMatrix<'a, S>);

pub(super) struct PreparedRows<'a, S> {
    pub matrix: HostMatrix<'a, S>,
    pub values: Vec<S>,
    pub norms: Vec<[S; 2]>,
    pub parts: Vec<u32>,
}

impl<S> HostMatrix<'_, S> {
    /// Row count.
    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    pub(super) fn entries(&self, row: usize) -> Range<usize> {
        self.indptr[row] as usize..self.indptr[row + 1] as usize
    }
}

impl<'a, S: Real> PreparedRows<'a, S> {
    pub fn new<M: HostSemiring>(matrix: HostMatrix<'a, S>, p: S) -> Self {
        let mut values = matrix.values.to_vec();
        let norms = (0..matrix.rows()).map(|row| {
            let row = &mut values[matrix.entries(row)];
            if M::STRATEGY.rescale == Some(Rescale::Rows) {
                let sizes = row.iter().map(|a| a.abs());
                let factor = row_factor(sizes.fold(S::new(0.0), max));
                row.iter_mut().for_each(|a| *a = *a * factor);
            }
            let norm = sum(row, |a| M::norm(a, p), combine::<M, S>);
            row.iter_mut().for_each(|a| *a = M::prepare(*a, norm));
            [norm, sum(row, M::second, |a, b| a + b)]
        });
        let norms = norms.collect();
        let parts = (0..matrix.rows())
            .map(|row| part_bits(matrix.entries(row).len() as u32, matrix.cols as u32));
        Self { matrix, values, norms, parts: parts.collect() }
    }

    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, S)> {
        let entries = self.matrix.entries(row);
        let columns = self.matrix.indices[entries.clone()].iter().copied();
        columns.zip(self.values[entries].iter().copied())
    }
}

pub(super) fn combine<M: HostSemiring, S: Real>(a: S, b: S) -> S {
    if M::ALGEBRA.maxima { max(a, b) } else { a + b }
}

fn sum<S: Real>(values: &[S], term: impl Fn(S) -> S, add: impl Fn(S, S) -> S) -> S {
    let blocks = values.chunks(NORM_BLOCK).map(|block| {
        let terms = block.iter().map(|&a| term(a));
        terms.fold(S::new(0.0), &add)
    });
    blocks.fold(S::new(0.0), &add)
}
