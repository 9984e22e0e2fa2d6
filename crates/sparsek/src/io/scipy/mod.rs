//! scipy's `save_npz` files: reads csr, csc, coo, bsr and dia, writes csr.
//!
//! Reads headers, which must agree and fit the memory limit, then offsets, then entries. Memory
//! follows the entries; capacity behind the last offset is skipped.

mod write;

use std::io::{Read, Seek};

use sparsek_kernels::spmm::MAX_ENTRIES;

pub use self::write::{Item, bytes};
pub use super::matrix::{Matrix, Value};
use super::{
    matrix::{check_entries, check_rows, check_size, in_rows},
    npy::{Header, Npz},
    text::excerpt,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    Needed,
    Optional,
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
            "dia" => file.dia(),
            other => Err(format!(
                "array format: the matrix is in {:?}; csr, csc, coo, bsr and dia are read, and \
                 scipy's .tocsr() converts it",
                excerpt(other)
            )),
        }
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
        check_entries::<T>(entries, 1, shape)?;
        let indices = self.ids("indices", entries, "column", shape[1])?;
        let values = self.values_of(stored, entries)?;
        Ok(Matrix { shape, indptr, indices, values })
    }

    fn csc<T: Value>(&mut self) -> Result<Matrix<T>, String> {
        let shape = self.shape()?;
        let (indices, stored) = self.vectors("indices")?;
        let indptr = self.offsets([shape[1], indices], "columns", shape[0])?;
        let entries = last(&indptr);
        check_entries::<T>(entries, 2, shape)?;
        let rows = self.ids("indices", entries, "row", shape[0])?;
        let values = self.values_of(stored, entries)?;
        let columns = indptr.windows(2).zip(0u32..);
        let columns = columns.flat_map(|(ends, column)| (ends[0]..ends[1]).map(move |_| column));
        Ok(in_rows(shape, &rows, columns, values))
    }

    fn coo<T: Value>(&mut self) -> Result<Matrix<T>, String> {
        let shape = self.shape()?;
        if self.npz.contains("coords") && !self.npz.contains("row") {
            return self.coords(shape);
        }
        let (entries, stored) = self.vectors("row")?;
        let columns = self.vector("col")?;
        if columns != entries {
            return Err(format!(
                "array col: {columns} columns for the {entries} rows of array row"
            ));
        }
        check_rows(shape[0], "rows")?;
        check_entries::<T>(entries, 2, shape)?;
        let rows = self.ids("row", entries, "row", shape[0])?;
        let columns = self.ids("col", entries, "column", shape[1])?;
        let values = self.values_of(stored, entries)?;
        Ok(in_rows(shape, &rows, columns.into_iter(), values))
    }

    /// Rows and columns in one array, as arrays of more dimensions have them.
    fn coords<T: Value>(&mut self, shape: [usize; 2]) -> Result<Matrix<T>, String> {
        let header = self.npz.header("coords")?;
        let &[2, entries] = header.shape.as_slice() else {
            return Err(bad_shape("coords", &header, "[2, entries]"));
        };
        let stored = self.stored(entries, "coords")?;
        check_rows(shape[0], "rows")?;
        check_entries::<T>(entries, 3, shape)?;
        let ids = self.npz.read("coords", |array| array.into_u32())?;
        let (rows, columns) = ids.split_at(entries);
        check_ids("coords", rows, "row", shape[0])?;
        check_ids("coords", columns, "column", shape[1])?;
        let values = self.values_of(stored, entries)?;
        Ok(in_rows(shape, rows, columns.iter().copied(), values))
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
        check_entries::<T>(entries, 2, shape)?;
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

    /// Zeros are padding, as in scipy.
    fn dia<T: Value>(&mut self) -> Result<Matrix<T>, String> {
        let shape = self.shape()?;
        let data = self.npz.header("data")?;
        let &[stored, width] = data.shape.as_slice() else {
            return Err(bad_shape("data", &data, "[diagonals, columns]"));
        };
        let count = self.vector("offsets")?;
        if count != stored {
            return Err(format!("array data: {stored} diagonals, but array offsets has {count}"));
        }
        check_rows(shape[0], "rows")?;
        check_entries::<T>(data.len, 3, [usize::MAX; 2])?;
        let offsets = self.npz.read("offsets", |array| array.into_i64())?;
        let mut diagonals: Vec<(i64, usize)> = offsets.into_iter().zip(0..).collect();
        diagonals.sort_unstable();
        if let Some(&[(offset, _), _]) =
            diagonals.array_windows().find(|[one, other]| one.0 == other.0)
        {
            return Err(format!("array offsets: the diagonal {offset} is there twice"));
        }
        let nonzero = self.npz.read("data", |array| array.into_nonzero())?;
        let stored: Vec<T> = self.npz.read("data", |array| T::read(array))?;
        let [height, cols] = shape.map(|size| size as i64);
        let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (offset, diagonal) in diagonals {
            // Column j of the diagonal lies in row j - offset.
            let end = cols.min(width as i64).min(offset.saturating_add(height));
            for column in offset.max(0)..end {
                let place = diagonal * width + column as usize;
                if nonzero[place] {
                    rows.push((column - offset) as u32);
                    columns.push(column as u32);
                    values.push(stored[place]);
                }
            }
        }
        Ok(in_rows(shape, &rows, columns.into_iter(), Some(values)))
    }

    fn shape(&mut self) -> Result<[usize; 2], String> {
        let header = self.npz.header("shape")?;
        let sizes = match header.shape.as_slice() {
            [2] => self.npz.read("shape", |array| array.into_u32())?,
            [count] => return Err(format!("array shape: {count} numbers, a matrix has 2")),
            _ => return Err(bad_shape("shape", &header, "[2]")),
        };
        let shape = [sizes[0] as usize, sizes[1] as usize];
        check_size(shape).map_err(|reason| format!("array shape: {reason}"))?;
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
        Ok((entries, self.stored(entries, ids)?))
    }

    /// Whether there are values, one for each id.
    fn stored(&mut self, entries: usize, ids: &str) -> Result<bool, String> {
        if self.values == Values::Optional && !self.npz.contains("data") {
            return Ok(false);
        }
        match self.vector("data")? {
            values if values == entries => Ok(true),
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
        check_rows(count + rows, each)?;
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

    fn ids(
        &mut self,
        name: &str,
        entries: usize,
        what: &str,
        limit: usize,
    ) -> Result<Vec<u32>, String> {
        let ids = self.npz.read(name, |array| array.first(entries).into_u32())?;
        check_ids(name, &ids, what, limit)?;
        Ok(ids)
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

fn check_ids(name: &str, ids: &[u32], what: &str, limit: usize) -> Result<(), String> {
    match ids.iter().position(|&id| id as usize >= limit) {
        None => Ok(()),
        Some(entry) => Err(format!(
            "array {name}: {what} {} of entry {entry} is out of range: the matrix has {limit} \
             {what}s",
            ids[entry]
        )),
    }
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
