use std::io::Read;

use sparsek_kernels::spmm::MAX_ENTRIES;

use super::{memory, npy::Npy};

/// Larger entry counts must fit the matrix.
const REPEATED: usize = 1 << 20;

pub trait Value: Copy + Default {
    fn read(array: Npy<impl Read>) -> Result<Vec<Self>, String>;

    /// Rounds; `bool`: not 0.
    fn of(number: f64) -> Self;
}

impl Value for f32 {
    fn read(array: Npy<impl Read>) -> Result<Vec<Self>, String> {
        array.into_f32()
    }

    fn of(number: f64) -> Self {
        number as f32
    }
}

impl Value for f64 {
    fn read(array: Npy<impl Read>) -> Result<Vec<Self>, String> {
        array.into_f64()
    }

    fn of(number: f64) -> Self {
        number
    }
}

impl Value for bool {
    fn read(array: Npy<impl Read>) -> Result<Vec<Self>, String> {
        array.into_nonzero()
    }

    fn of(number: f64) -> Self {
        number != 0.0
    }
}

/// CSR, checked. Columns keep the file's order and may repeat; zeros are entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    pub shape: [usize; 2],
    pub indptr: Vec<u32>,
    pub indices: Vec<u32>,
    pub values: Option<Vec<T>>,
}

impl Matrix<bool> {
    pub fn drop_zeros(&mut self) -> usize {
        let Some(values) = self.values.take() else {
            return 0;
        };
        let mut kept = 0;
        let mut begin = 0;
        for row in 0..self.shape[0] {
            let end = self.indptr[row + 1];
            let entries = begin as usize..end as usize;
            for entry in entries.filter(|&entry| values[entry]) {
                self.indices[kept] = self.indices[entry];
                kept += 1;
            }
            begin = end;
            self.indptr[row + 1] = kept as u32;
        }
        self.indices.truncate(kept);
        values.len() - kept
    }
}

pub(super) fn check_size(shape: [usize; 2]) -> Result<(), String> {
    for (what, size) in ["rows", "columns"].into_iter().zip(shape) {
        if size > MAX_ENTRIES {
            return Err(format!("{what}: {size} exceed the limit of {MAX_ENTRIES}"));
        }
    }
    Ok(())
}

pub(super) fn check_rows(count: usize, each: &str) -> Result<(), String> {
    let asked = memory::product(&[count, size_of::<u32>()]);
    memory::check(format_args!("a matrix of {count} {each}"), asked)
        .map_err(|error| error.to_string())
}

/// `copies` of the entries must fit in memory.
pub(super) fn check_entries<T>(
    entries: usize,
    copies: usize,
    shape: [usize; 2],
) -> Result<(), String> {
    if entries > MAX_ENTRIES {
        return Err(format!("entries: {entries} exceed the limit of {MAX_ENTRIES}"));
    }
    let places = memory::product(&shape);
    if entries > REPEATED && entries as u128 > places {
        return Err(format!(
            "{entries} entries for the {places} places of the matrix; scipy's .sum_duplicates() \
             makes one of those that share a place"
        ));
    }
    let bytes = copies * (size_of::<u32>() + size_of::<T>());
    memory::check(format_args!("a matrix of {entries} entries"), memory::product(&[entries, bytes]))
        .map_err(|error| error.to_string())
}

/// Sorts by row, stably.
pub(super) fn in_rows<T: Value>(
    shape: [usize; 2],
    rows: &[u32],
    columns: impl Iterator<Item = u32>,
    values: Option<Vec<T>>,
) -> Matrix<T> {
    let mut indptr = vec![0u32; shape[0] + 1];
    for &row in rows {
        indptr[row as usize + 1] += 1;
    }
    for row in 0..shape[0] {
        indptr[row + 1] += indptr[row];
    }
    let mut indices = vec![0; rows.len()];
    let mut sorted = values.as_ref().map(|values| vec![T::default(); values.len()]);
    for ((entry, &row), column) in rows.iter().enumerate().zip(columns) {
        let slot = &mut indptr[row as usize];
        indices[*slot as usize] = column;
        if let (Some(sorted), Some(values)) = (&mut sorted, &values) {
            sorted[*slot as usize] = values[entry];
        }
        *slot += 1;
    }
    // Offsets are ends: the next starts.
    indptr.copy_within(..shape[0], 1);
    indptr[0] = 0;
    Matrix { shape, indptr, indices, values: sorted }
}
