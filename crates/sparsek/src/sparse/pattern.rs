use std::{
    ops::Range,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use rayon::prelude::*;

use super::error::PatternError;
use crate::io::memory;

/// Most entries: offsets are i32, and units count beyond a row's end.
pub const MAX_ENTRIES: usize = sparsek_kernels::spmm::MAX_ENTRIES;

pub(crate) fn check_size(what: &'static str, found: usize) -> Result<(), PatternError> {
    let limit = MAX_ENTRIES;
    match found > limit {
        true => Err(PatternError::TooLarge { what, found, limit }),
        false => Ok(()),
    }
}

/// Checked CSR pattern. A row's columns may be unsorted and repeat; products sum repeats.
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Unchecked"))]
pub struct Pattern {
    rows: usize,
    cols: usize,
    indptr: Vec<u32>,
    indices: Vec<u32>,
}

#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct Unchecked {
    rows: usize,
    cols: usize,
    indptr: Vec<u32>,
    indices: Vec<u32>,
}

#[cfg(feature = "serde")]
impl TryFrom<Unchecked> for Pattern {
    type Error = PatternError;

    fn try_from(read: Unchecked) -> Result<Self, PatternError> {
        Self::new(read.rows, read.cols, read.indptr, read.indices)
    }
}

impl Pattern {
    /// Checks `rows + 1` monotone offsets from 0 to the entry count, columns below `cols`, and
    /// [`MAX_ENTRIES`].
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
            return Err(PatternError::IndptrLength { rows, found: indptr.len() });
        }
        let (first, last) = (indptr[0], indptr[rows]);
        if first != 0 || last as usize != indices.len() {
            return Err(PatternError::IndptrEnds { first, last, entries: indices.len() });
        }
        if let Some(row) = indptr.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(PatternError::IndptrOrder {
                row,
                before: indptr[row],
                after: indptr[row + 1],
            });
        }
        if let Some(entry) = indices.iter().position(|&column| column as usize >= cols) {
            return Err(PatternError::Column { entry, column: indices[entry], cols });
        }
        Ok(Self { rows, cols, indptr, indices })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Entries.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Row offsets: `rows + 1`.
    pub fn indptr(&self) -> &[u32] {
        &self.indptr
    }

    /// Entry columns.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Columns of a row; panics out of range.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.indices[self.indptr[row] as usize..self.indptr[row + 1] as usize]
    }

    /// Longest row's entries. O(rows).
    pub fn longest(&self) -> usize {
        let ends = self.indptr.windows(2);
        ends.map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0)
    }

    pub(super) fn row_ids(&self) -> Vec<u32> {
        let mut ids = Vec::with_capacity(self.nnz());
        for (row, ends) in self.indptr.windows(2).enumerate() {
            ids.resize(ends[1] as usize, row as u32);
        }
        ids
    }

    /// Slices rows; panics out of bounds.
    pub fn slice_rows(&self, rows: Range<usize>) -> Self {
        assert!(
            rows.start <= rows.end && rows.end <= self.rows,
            "slice_rows: rows {rows:?} of a pattern of {} rows",
            self.rows,
        );
        let offsets = &self.indptr[rows.start..=rows.end];
        let (first, last) = (offsets[0], offsets[rows.len()]);
        Self {
            rows: rows.len(),
            cols: self.cols,
            indptr: offsets.iter().map(|offset| offset - first).collect(),
            indices: self.indices[first as usize..last as usize].to_vec(),
        }
    }

    /// Transpose with ascending columns, and each entry's original position.
    ///
    /// O(rows + cols + entries); O(cols + entries log(entries)) if columns outnumber entries.
    /// Panics if offsets exceed [`memory::limit`].
    pub fn transpose(&self) -> (Self, Vec<u32>) {
        let offsets = memory::product(&[self.cols + 1, size_of::<u32>()]);
        let what = format_args!("the transpose of a matrix of {} columns", self.cols);
        if let Err(error) = memory::check(what, offsets) {
            panic!("{error}");
        }
        if self.cols > self.nnz() {
            return self.transpose_by_sorting();
        }
        // Counting sort by shares of rows. Disjoint slots allow relaxed stores.
        let mut shares: Vec<(Range<usize>, Vec<u32>)> = self
            .shares()
            .into_par_iter()
            .map(|rows| {
                let mut counts = vec![0u32; self.cols];
                for &column in &self.indices[self.entries(&rows)] {
                    counts[column as usize] += 1;
                }
                (rows, counts)
            })
            .collect();
        let mut indptr = Vec::with_capacity(self.cols + 1);
        let mut total = 0;
        for column in 0..self.cols {
            indptr.push(total);
            for (_, counts) in &mut shares {
                let count = std::mem::replace(&mut counts[column], total);
                total += count;
            }
        }
        indptr.push(total);
        let zeros = || -> Vec<AtomicU32> { (0..self.nnz()).map(|_| AtomicU32::new(0)).collect() };
        let (indices, entries) = (zeros(), zeros());
        shares.into_par_iter().for_each(|(rows, mut next)| {
            for row in rows {
                for entry in self.entries(&(row..row + 1)) {
                    let slot = &mut next[self.indices[entry] as usize];
                    indices[*slot as usize].store(row as u32, Relaxed);
                    entries[*slot as usize].store(entry as u32, Relaxed);
                    *slot += 1;
                }
            }
        });
        let plain =
            |numbers: Vec<AtomicU32>| numbers.into_iter().map(AtomicU32::into_inner).collect();
        let transposed = Self { rows: self.cols, cols: self.rows, indptr, indices: plain(indices) };
        (transposed, plain(entries))
    }

    fn transpose_by_sorting(&self) -> (Self, Vec<u32>) {
        // The entry as second key keeps row order.
        let key = |&entry: &u32| (self.indices[entry as usize], entry);
        let mut entries: Vec<u32> = (0..self.nnz() as u32).collect();
        entries.par_sort_unstable_by_key(key);
        let row_of = self.row_ids();
        let mut indptr = Vec::with_capacity(self.cols + 1);
        for (at, &entry) in entries.iter().enumerate() {
            indptr.resize(self.indices[entry as usize] as usize + 1, at as u32);
        }
        indptr.resize(self.cols + 1, self.nnz() as u32);
        let transposed = Self {
            rows: self.cols,
            cols: self.rows,
            indptr,
            indices: entries.iter().map(|&at| row_of[at as usize]).collect(),
        };
        (transposed, entries)
    }

    fn entries(&self, rows: &Range<usize>) -> Range<usize> {
        self.indptr[rows.start] as usize..self.indptr[rows.end] as usize
    }

    /// At most one per thread, each with `cols` entries or more.
    fn shares(&self) -> Vec<Range<usize>> {
        let most = self.nnz() / self.cols.max(1);
        let count = rayon::current_num_threads().min(most).max(1);
        let end = |at: usize| match at == count {
            true => self.rows,
            false => {
                let entry = (self.nnz() * at / count) as u32;
                self.indptr.partition_point(|&offset| offset < entry)
            }
        };
        (0..count).map(|at| end(at)..end(at + 1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::{fixture, rstest};

    use super::*;

    #[fixture]
    fn pattern() -> Pattern {
        let (rows, cols) = (40usize, 7usize);
        let lengths = (0..rows).map(|row| (row * row % 61) as u32);
        let indptr: Vec<u32> = std::iter::once(0)
            .chain(lengths.scan(0, |sum, length| {
                *sum += length;
                Some(*sum)
            }))
            .collect();
        let indices: Vec<u32> = (0..indptr[rows]).map(|entry| entry * 5 % 11 % 7).collect();
        let pattern = Pattern::new(rows, cols, indptr, indices).unwrap();
        assert_eq!(pattern.longest(), 60);
        pattern
    }

    #[rstest]
    fn threads_transpose_as_one_does(pattern: Pattern, #[values(1, 2, 3, 16)] threads: usize) {
        let (rows, cols) = (pattern.rows(), pattern.cols());
        let mut expected: Vec<(u32, u32, u32)> = (0..rows)
            .flat_map(|row| pattern.entries(&(row..row + 1)).map(move |entry| (row, entry)))
            .map(|(row, entry)| (pattern.indices[entry], row as u32, entry as u32))
            .collect();
        expected.sort_unstable();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let (transposed, entries) = pool.build().unwrap().install(|| pattern.transpose());
        assert_eq!((transposed.rows(), transposed.cols()), (cols, rows));
        let found: Vec<(u32, u32, u32)> = (0..cols)
            .flat_map(|row| transposed.entries(&(row..row + 1)).map(move |at| (row, at)))
            .map(|(row, at)| (row as u32, transposed.indices[at], entries[at]))
            .collect();
        assert_eq!(found, expected);
    }

    #[rstest]
    fn sorting_transposes_as_counting_does(pattern: Pattern) {
        let (transposed, entries) = pattern.transpose();
        assert_eq!(pattern.transpose_by_sorting(), (transposed, entries));
    }

    #[test]
    fn an_empty_pattern_is_transposed() {
        let empty = Pattern::new(2, 0, vec![0; 3], Vec::new()).unwrap();
        assert_eq!(empty.transpose().0, Pattern::new(0, 2, vec![0], Vec::new()).unwrap());
    }

    #[test]
    fn wide_patterns_are_transposed_by_their_entries() {
        let wide = Pattern::new(2, 1_000_000, vec![0, 3, 5], vec![9, 7, 9, 999_999, 9]).unwrap();
        let (transposed, entries) = wide.transpose();
        assert_eq!((transposed.rows(), transposed.cols()), (1_000_000, 2));
        assert_eq!(transposed.indices(), [0, 0, 0, 1, 1]);
        assert_eq!(entries, [1, 0, 2, 4, 3]);
        let offsets = [0, 7, 8, 9, 10, 999_999, 1_000_000].map(|at| transposed.indptr()[at]);
        assert_eq!(offsets, [0, 0, 1, 1, 4, 4, 5]);
    }
}
