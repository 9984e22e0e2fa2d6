use super::types::PreparedRows;
use crate::distance::{semiring::Real, sizes::is_wide};

pub(super) struct HostColumns<S> {
    slots: Slots,
    starts: Vec<u32>,
    entries: Vec<(u32, S)>,
    places: Vec<u32>,
}

enum Slots {
    Every,
    /// Ascending.
    Occupied(Vec<u32>),
}

impl Slots {
    fn new<S: Real>(rows: &PreparedRows<S>) -> Self {
        if !is_wide(rows.matrix.cols, rows.values.len()) {
            return Self::Every;
        }
        let mut occupied = rows.matrix.indices.to_vec();
        occupied.sort_unstable();
        occupied.dedup();
        Self::Occupied(occupied)
    }

    fn count(&self, cols: usize) -> usize {
        match self {
            Self::Every => cols,
            Self::Occupied(columns) => columns.len(),
        }
    }

    fn of(&self, column: u32) -> Option<usize> {
        match self {
            Self::Every => Some(column as usize),
            Self::Occupied(columns) => columns.binary_search(&column).ok(),
        }
    }
}

impl<S: Real> HostColumns<S> {
    pub(super) fn new(rows: &PreparedRows<S>) -> Self {
        let slots = Slots::new(rows);
        let count = slots.count(rows.matrix.cols);
        let mut starts = vec![0; count + 1];
        let of = |column| slots.of(column).expect("a column with an entry");
        for &column in rows.matrix.indices {
            starts[of(column) + 1] += 1;
        }
        for slot in 0..count {
            starts[slot + 1] += starts[slot];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0, S::new(0.0)); rows.values.len()];
        let mut places = Vec::with_capacity(entries.len());
        for row in 0..rows.matrix.rows() {
            for (column, value) in rows.row(row) {
                let place = &mut next[of(column)];
                entries[*place as usize] = (row as u32, value);
                places.push(*place);
                *place += 1;
            }
        }
        Self { slots, starts, entries, places }
    }

    pub(super) fn column(&self, column: u32, from: Option<usize>) -> &[(u32, S)] {
        let Some(slot) = self.slots.of(column) else {
            return &[];
        };
        let start = from.map_or(self.starts[slot], |entry| self.places[entry]);
        &self.entries[start as usize..self.starts[slot + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::types::HostMatrix;
    use super::*;
    use crate::distance::metrics::Dot;

    const COLS: usize = (1 << 31) - 4096;

    #[rstest]
    #[case::first(0, None, &[(1, 3.0)])]
    #[case::shared(7, None, &[(0, 1.0), (1, 4.0)])]
    #[case::from_an_entry(7, Some(3), &[(1, 4.0)])]
    #[case::last(COLS as u32 - 1, None, &[(0, 2.0)])]
    #[case::empty(8, None, &[])]
    fn columns_without_entries_take_no_memory(
        #[case] column: u32,
        #[case] from: Option<usize>,
        #[case] expected: &[(u32, f32)],
    ) {
        let matrix = HostMatrix {
            indptr: &[0, 2, 4],
            indices: &[7, COLS as u32 - 1, 0, 7],
            values: &[1.0, 2.0, 3.0, 4.0f32],
            cols: COLS,
        };
        let rows = PreparedRows::new::<Dot>(matrix, 0.0);
        let columns = HostColumns::new(&rows);
        assert_eq!(columns.starts.len(), 4);
        assert_eq!(columns.column(column, from), expected);
    }
}
