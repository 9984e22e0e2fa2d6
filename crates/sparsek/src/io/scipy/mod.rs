//! Rows of scipy's `save_npz` files: csr, csc, coo or bsr.
//!
//! Reads headers, which must agree and fit the memory limit, then offsets, then entries. Memory
//! follows the entries; capacity behind the last offset is skipped.

use std::io::{Read, Seek};

use sparsek_kernels::spmm::MAX_ENTRIES;

use super::{
    memory,
    npy::{Header, Npy, Npz},
    text::excerpt,
};

/// Larger counts must not exceed the elements of the matrix, which bounds memory.
const REPEATED: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    Needed,
    Optional,
}

pub trait Value: Copy + Default {
    fn read(array: Npy<impl Read>) -> Result<Vec<Self>, String>;
}

impl Value for f32 {
    fn read(array: Npy<impl Read>) -> Result<Vec<Self>, String> {
        array.into_f32()
    }
}

impl Value for f64 {
    fn read(array: Npy<impl Read>) -> Result<Vec<Self>, String> {
        array.into_f64()
    }
}

impl Value for bool {
    fn read(array: Npy<impl Read>) -> Result<Vec<Self>, String> {
        array.into_nonzero()
    }
}

/// Row `i` has entries `indptr[i]..indptr[i + 1]`, checked. Columns keep the file's order and may
/// repeat; zeros are entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    pub shape: [usize; 2],
    pub indptr: Vec<u32>,
    pub indices: Vec<u32>,
    pub values: Option<Vec<T>>,
}

impl<T: Value> Matrix<T> {
    /// Reads a matrix. Without `format` (early scipy, GraphSAINT), it is coo if there is a `row`,
    /// else csr. Errors are one line with the array.
    pub fn read<R: Read + Seek>(npz: &mut Npz<R>, values: Values) -> Result<Self, String> {
        let mut file = Source { npz, values };
        match file.format()?.as_str() {
            "csr" => file.csr(),
            "csc" => file.csc(),
            "coo" => file.coo(),
            "bsr" => file.bsr(),
            other => Err(format!(
                "array format: the matrix is in {:?}; csr, csc, coo and bsr are read, and scipy's \
                 .tocsr() converts it",
                excerpt(other)
            )),
        }
    }
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

struct Source<'a, R: Read + Seek> {
    npz: &'a mut Npz<R>,
    values: Values,
}

impl<R: Read + Seek> Source<'_, R> {
    fn format(&mut self) -> Result<String, String> {
        if self.npz.contains("format") {
            return self.npz.read("format", |array| array.into_text());
        }
        let coo = self.npz.contains("row") && !self.npz.contains("indptr");
        Ok(if coo { "coo" } else { "csr" }.to_string())
    }

    fn csr<T: Value>(&mut self) -> Result<Matrix<T>, String> {
        let shape = self.shape()?;
        let (indices, stored) = self.vectors("indices")?;
        let indptr = self.offsets([shape[0], indices], "rows", 0)?;
        let entries = last(&indptr);
        self.check_entries::<T>(entries, 1, shape)?;
        let indices = self.ids("indices", entries, "column", shape[1])?;
        let values = self.values_of(stored, entries)?;
        Ok(Matrix { shape, indptr, indices, values })
    }

    fn csc<T: Value>(&mut self) -> Result<Matrix<T>, String> {
        let shape = self.shape()?;
        let (indices, stored) = self.vectors("indices")?;
        let indptr = self.offsets([shape[1], indices], "columns", shape[0])?;
        let entries = last(&indptr);
        self.check_entries::<T>(entries, 2, shape)?;
        let rows = self.ids("indices", entries, "row", shape[0])?;
        let values = self.values_of(stored, entries)?;
        let columns = indptr.windows(2).zip(0u32..);
        let columns = columns.flat_map(|(ends, column)| (ends[0]..ends[1]).map(move |_| column));
        Ok(in_rows(shape, &rows, columns, values))
    }

    fn coo<T: Value>(&mut self) -> Result<Matrix<T>, String> {
        let shape = self.shape()?;
        let (entries, stored) = self.vectors("row")?;
        let columns = self.vector("col")?;
        if columns != entries {
            return Err(format!(
                "array col: {columns} columns for the {entries} rows of array row"
            ));
        }
        check_offsets(shape[0], "rows")?;
        self.check_entries::<T>(entries, 2, shape)?;
        let rows = self.ids("row", entries, "row", shape[0])?;
        let columns = self.ids("col", entries, "column", shape[1])?;
        let values = self.values_of(stored, entries)?;
        Ok(in_rows(shape, &rows, columns.into_iter(), values))
    }

    /// Zeros of blocks are entries.
    fn bsr<T: Value>(&mut self) -> Result<Matrix<T>, String> {
        let shape = self.shape()?;
        let data = self.npz.header("data")?;
        let &[stored, height, width] = data.shape.as_slice() else {
            return Err(bad_shape("data", &data, "[blocks, height, width]"));
        };
        let whole = |size: usize, block: usize| block > 0 && size.is_multiple_of(block);
        if !whole(shape[0], height) || !whole(shape[1], width) {
            return Err(format!(
                "array data: blocks of {height} × {width} do not fill a matrix of {} × {}",
                shape[0], shape[1]
            ));
        }
        let indices = self.vector("indices")?;
        if indices != stored {
            return Err(format!("array data: {stored} blocks, but array indices has {indices}"));
        }
        let [block_rows, block_cols] = [shape[0] / height, shape[1] / width];
        let indptr = self.offsets([block_rows, indices], "rows of blocks", shape[0])?;
        let blocks = last(&indptr);
        let entries = blocks.saturating_mul(height).saturating_mul(width);
        self.check_entries::<T>(entries, 2, shape)?;
        let block_indices = self.ids("indices", blocks, "block column", block_cols)?;
        let blocked: Vec<T> = self.npz.read("data", |array| T::read(array.first(entries)))?;

        let mut matrix = Matrix {
            shape,
            indptr: Vec::with_capacity(shape[0] + 1),
            indices: Vec::with_capacity(entries),
            values: None,
        };
        let mut values = Vec::with_capacity(entries);
        matrix.indptr.push(0);
        for ends in indptr.windows(2) {
            for row in 0..height {
                for block in ends[0] as usize..ends[1] as usize {
                    let first = block_indices[block] * width as u32;
                    matrix.indices.extend(first..first + width as u32);
                    values.extend(&blocked[(block * height + row) * width..][..width]);
                }
                matrix.indptr.push(matrix.indices.len() as u32);
            }
        }
        matrix.values = Some(values);
        Ok(matrix)
    }

    fn shape(&mut self) -> Result<[usize; 2], String> {
        let header = self.npz.header("shape")?;
        let sizes = match header.shape.as_slice() {
            [2] => self.npz.read("shape", |array| array.into_u32())?,
            [count] => return Err(format!("array shape: {count} numbers, a matrix has 2")),
            _ => return Err(bad_shape("shape", &header, "[2]")),
        };
        let shape = [sizes[0] as usize, sizes[1] as usize];
        for (what, size) in [("rows", shape[0]), ("columns", shape[1])] {
            if size > MAX_ENTRIES {
                return Err(format!(
                    "array shape: {what}: {size} exceed the limit of {MAX_ENTRIES}"
                ));
            }
        }
        Ok(shape)
    }

    fn vector(&mut self, name: &str) -> Result<usize, String> {
        let header = self.npz.header(name)?;
        match header.shape.as_slice() {
            &[length] if length <= MAX_ENTRIES + 1 => Ok(length),
            [length] => Err(format!("array {name}: {length} exceed the limit of {MAX_ENTRIES}")),
            _ => Err(bad_shape(name, &header, "one dimension")),
        }
    }

    /// Length of ids; whether there are values.
    fn vectors(&mut self, ids: &str) -> Result<(usize, bool), String> {
        let entries = self.vector(ids)?;
        if self.values == Values::Optional && !self.npz.contains("data") {
            return Ok((entries, false));
        }
        match self.vector("data")? {
            values if values == entries => Ok((entries, true)),
            values => {
                Err(format!("array data: {values} values for {entries} entries in array {ids}"))
            }
        }
    }

    /// `count` offsets, rising from 0 to at most `stored`. The memory check adds `rows` numbers.
    fn offsets(
        &mut self,
        [count, stored]: [usize; 2],
        each: &str,
        rows: usize,
    ) -> Result<Vec<u32>, String> {
        let found = self.vector("indptr")?;
        if found != count + 1 {
            return Err(format!(
                "array indptr: {found} offsets, but {count} {each} need {}",
                count + 1
            ));
        }
        check_offsets(count + rows, each)?;
        let offsets = self.npz.read("indptr", |array| array.into_u32())?;
        if offsets[0] != 0 {
            return Err(format!("array indptr: it begins with {}, not 0", offsets[0]));
        }
        if let Some(at) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
            let (before, after) = (offsets[at], offsets[at + 1]);
            return Err(format!(
                "array indptr: it decreases after {at} {each}, from {before} to {after}"
            ));
        }
        match last(&offsets) {
            end if end > stored => Err(format!(
                "array indptr: it ends with {end}, but array indices has {stored} entries"
            )),
            _ => Ok(offsets),
        }
    }

    /// Refuses more entries than the matrix has, or memory holds `copies` times.
    fn check_entries<T>(
        &self,
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
                "{entries} entries for the {places} places of the matrix; scipy's \
                 .sum_duplicates() makes one of those that share a place"
            ));
        }
        let bytes = copies * (size_of::<u32>() + size_of::<T>());
        memory::check(
            format_args!("a matrix of {entries} entries"),
            memory::product(&[entries, bytes]),
        )
        .map_err(|error| error.to_string())
    }

    fn ids(
        &mut self,
        name: &str,
        entries: usize,
        what: &str,
        limit: usize,
    ) -> Result<Vec<u32>, String> {
        let ids = self.npz.read(name, |array| array.first(entries).into_u32())?;
        match ids.iter().position(|&id| id as usize >= limit) {
            None => Ok(ids),
            Some(entry) => Err(format!(
                "array {name}: {what} {} of entry {entry} is out of range: the matrix has {limit} \
                 {what}s",
                ids[entry]
            )),
        }
    }

    fn values_of<T: Value>(
        &mut self,
        stored: bool,
        entries: usize,
    ) -> Result<Option<Vec<T>>, String> {
        let mut read = || self.npz.read("data", |array| T::read(array.first(entries)));
        stored.then(&mut read).transpose()
    }
}

/// Sorts by row, stably.
fn in_rows<T: Value>(
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
    // Offsets are now ends: the next starts.
    indptr.copy_within(..shape[0], 1);
    indptr[0] = 0;
    Matrix { shape, indptr, indices, values: sorted }
}

fn check_offsets(count: usize, each: &str) -> Result<(), String> {
    let asked = memory::product(&[count, size_of::<u32>()]);
    memory::check(format_args!("a matrix of {count} {each}"), asked)
        .map_err(|error| error.to_string())
}

fn last(offsets: &[u32]) -> usize {
    offsets.last().map_or(0, |&end| end as usize)
}

fn bad_shape(name: &str, header: &Header, needed: &str) -> String {
    let shape = excerpt(&format!("{:?}", header.shape));
    format!("array {name}: shape {shape}, {needed} is needed")
}

#[cfg(test)]
mod tests;
