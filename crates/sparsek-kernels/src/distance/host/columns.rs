//! An inverted index of a matrix.

use super::Ready;
use crate::distance::semiring::Real;

/// The entries of each column.
pub(super) struct Columns<S> {
    starts: Vec<usize>,
    entries: Vec<(u32, S)>,
    /// Where each entry of the matrix went.
    places: Vec<u32>,
}

impl<S: Real> Columns<S> {
    pub(super) fn new(ready: &Ready<S>) -> Self {
        let mut starts = vec![0; ready.matrix.cols + 1];
        for &column in ready.matrix.indices {
            starts[column as usize + 1] += 1;
        }
        for column in 0..ready.matrix.cols {
            starts[column + 1] += starts[column];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0, S::new(0.0)); ready.values.len()];
        let mut places = Vec::with_capacity(entries.len());
        for row in 0..ready.matrix.rows() {
            for (column, value) in ready.row(row) {
                let slot = &mut next[column as usize];
                entries[*slot] = (row as u32, value);
                places.push(*slot as u32);
                *slot += 1;
            }
        }
        Self {
            starts,
            entries,
            places,
        }
    }

    /// All of a column, or those from an entry of the matrix on.
    pub(super) fn column(&self, column: u32, from: Option<usize>) -> &[(u32, S)] {
        let column = column as usize;
        let start = from.map_or(self.starts[column], |entry| self.places[entry] as usize);
        &self.entries[start..self.starts[column + 1]]
    }
}
