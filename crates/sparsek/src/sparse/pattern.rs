//! The pattern of a sparse matrix on the host.

use std::ops::Range;

/// Most entries of a pattern: offsets are `i32` on the devices.
pub const MAX_ENTRIES: usize = i32::MAX as usize;

/// Refuses what the offsets cannot count.
pub(crate) fn check_size(what: &'static str, found: usize) -> Result<(), PatternError> {
    let limit = MAX_ENTRIES;
    match found > limit {
        true => Err(PatternError::TooLarge { what, found, limit }),
        false => Ok(()),
    }
}

/// Why a CSR pattern was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The offsets do not number one more than the rows.
    #[error("indptr has {found} entries, but {rows} rows need {}", rows + 1)]
    IndptrLength {
        /// Rows of the matrix.
        rows: usize,
        /// Offsets found.
        found: usize,
    },
    /// The first offset is not 0 or the last is not the number of entries.
    #[error("indptr runs from {first} to {last}, but must run from 0 to the {entries} entries")]
    IndptrEnds {
        /// First offset.
        first: u32,
        /// Last offset.
        last: u32,
        /// Number of entries.
        entries: usize,
    },
    /// An offset is less than the one before it.
    #[error("indptr decreases at row {row}: from {before} to {after}")]
    IndptrOrder {
        /// The row that ends before it begins.
        row: usize,
        /// Where it begins.
        before: u32,
        /// Where it ends.
        after: u32,
    },
    /// A column id is not below the number of columns.
    #[error("column {column} of entry {entry} is out of range: the matrix has {cols} columns")]
    Column {
        /// Position of the entry.
        entry: usize,
        /// Its column.
        column: u32,
        /// Columns of the matrix.
        cols: usize,
    },
    /// More rows, columns or entries than 32-bit offsets address.
    #[error("{what}: {found} exceed the limit of {limit}")]
    TooLarge {
        /// Rows, columns or entries.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// The most supported.
        limit: usize,
    },
}

/// The pattern of a sparse matrix in CSR, checked; values live apart from it.
///
/// Columns of a row may come in any order and may repeat (their entries add up in products).
///
/// ```
/// use sparsek::sparse::Pattern;
///
/// // [. 1 .]
/// // [1 . 1]
/// let pattern = Pattern::new(2, 3, vec![0, 1, 3], vec![1, 0, 2]).unwrap();
/// let (transposed, entries) = pattern.transpose();
/// assert_eq!(transposed.indptr(), [0, 1, 2, 3]);
/// assert_eq!(transposed.indices(), [1, 0, 1]);
/// assert_eq!(entries, [1, 0, 2]);
/// assert!(Pattern::new(2, 3, vec![0, 1, 3], vec![1, 0, 3]).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    rows: usize,
    cols: usize,
    indptr: Vec<u32>,
    indices: Vec<u32>,
}

impl Pattern {
    /// Checks and takes a CSR pattern: `rows + 1` monotone offsets from 0 to the number of entries,
    /// and a column below `cols` for each entry.
    ///
    /// # Errors
    ///
    /// [`PatternError`] naming what is out of place, with the limit. At most [`MAX_ENTRIES`] entries,
    /// rows and columns.
    pub fn new(
        rows: usize,
        cols: usize,
        indptr: Vec<u32>,
        indices: Vec<u32>,
    ) -> Result<Self, PatternError> {
        check_size("rows", rows)?;
        check_size("columns", cols)?;
        check_size("entries", indices.len())?;
        if indptr.len() != rows + 1 {
            return Err(PatternError::IndptrLength {
                rows,
                found: indptr.len(),
            });
        }
        let (first, last) = (indptr[0], indptr[rows]);
        if first != 0 || last as usize != indices.len() {
            return Err(PatternError::IndptrEnds {
                first,
                last,
                entries: indices.len(),
            });
        }
        if let Some(row) = indptr.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(PatternError::IndptrOrder {
                row,
                before: indptr[row],
                after: indptr[row + 1],
            });
        }
        if let Some(entry) = indices.iter().position(|&column| column as usize >= cols) {
            return Err(PatternError::Column {
                entry,
                column: indices[entry],
                cols,
            });
        }
        Ok(Self {
            rows,
            cols,
            indptr,
            indices,
        })
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Stored entries.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Offsets of the rows, `rows + 1` of them.
    pub fn indptr(&self) -> &[u32] {
        &self.indptr
    }

    /// Column of each entry, row after row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The columns of a row.
    ///
    /// # Panics
    ///
    /// If the row is out of range.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.indices[self.indptr[row] as usize..self.indptr[row + 1] as usize]
    }

    /// The pattern of the rows in a range. O(rows and entries of the range).
    ///
    /// # Panics
    ///
    /// If the range ends before it begins or beyond the last row.
    pub fn slice_rows(&self, rows: Range<usize>) -> Self {
        let offsets = &self.indptr[rows.start..=rows.end];
        let (first, last) = (offsets[0], offsets[rows.len()]);
        Self {
            rows: rows.len(),
            cols: self.cols,
            indptr: offsets.iter().map(|offset| offset - first).collect(),
            indices: self.indices[first as usize..last as usize].to_vec(),
        }
    }

    /// The transposed pattern, and for each of its entries the entry of `self` it came from. Columns
    /// of its rows ascend. O(rows + cols + entries).
    pub fn transpose(&self) -> (Self, Vec<u32>) {
        let mut indptr = vec![0u32; self.cols + 1];
        for &column in &self.indices {
            indptr[column as usize + 1] += 1;
        }
        for column in 0..self.cols {
            indptr[column + 1] += indptr[column];
        }
        let mut next = indptr.clone();
        let mut indices = vec![0u32; self.nnz()];
        let mut entries = vec![0u32; self.nnz()];
        for row in 0..self.rows {
            for entry in self.indptr[row]..self.indptr[row + 1] {
                let slot = &mut next[self.indices[entry as usize] as usize];
                indices[*slot as usize] = row as u32;
                entries[*slot as usize] = entry;
                *slot += 1;
            }
        }
        let transposed = Self {
            rows: self.cols,
            cols: self.rows,
            indptr,
            indices,
        };
        (transposed, entries)
    }
}
