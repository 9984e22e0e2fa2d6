//! The entries of a matrix inside kernels: the column of each, and its factor.

use cubecl::prelude::*;

/// What an entry is multiplied with, besides the row's factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Factors {
    pub weighted: bool,
    /// Whether the weight of an entry is found through its number.
    pub permuted: bool,
    /// Whether rows have a factor of their own.
    pub rows: bool,
    /// Whether columns have one.
    pub cols: bool,
}

impl Factors {
    /// Whether entries are multiplied with anything.
    pub fn any(&self) -> bool {
        self.weighted || self.cols
    }

    /// Those of entries, but not of columns.
    pub fn without_cols(self) -> Self {
        Self {
            cols: false,
            ..self
        }
    }
}

/// The entries of a matrix.
#[derive(CubeType)]
pub(super) struct Entries<'a, E: Float, S: Float> {
    indices: &'a [i32],
    weights: &'a [E],
    entries: &'a [i32],
    cols: &'a [S],
    #[cube(comptime)]
    factors: Factors,
}

#[cube]
impl<'a, E: Float, S: Float> Entries<'a, E, S> {
    pub fn new(
        indices: &'a [i32],
        weights: &'a [E],
        entries: &'a [i32],
        cols: &'a [S],
        #[comptime] factors: Factors,
    ) -> Entries<'a, E, S> {
        Entries::<'a, E, S> {
            indices,
            weights,
            entries,
            cols,
            factors,
        }
    }

    pub fn column(&self, entry: i32) -> usize {
        self.indices[entry as usize] as usize
    }

    /// The weight of an entry times the factor of its column.
    pub fn factor(&self, entry: i32, column: usize) -> S {
        let mut factor = S::new(1.0);
        if comptime!(self.factors.weighted) {
            let from = if comptime!(self.factors.permuted) {
                self.entries[entry as usize]
            } else {
                entry
            };
            factor = S::cast_from(self.weights[from as usize]);
        }
        if comptime!(self.factors.cols) {
            factor *= self.cols[column];
        }
        factor
    }
}

/// The factor of a row.
#[cube]
pub(super) fn row_factor<S: Float>(rows: &[S], row: usize, #[comptime] factors: Factors) -> S {
    let mut factor = S::new(1.0);
    if comptime!(factors.rows) {
        factor = rows[row];
    }
    factor
}
