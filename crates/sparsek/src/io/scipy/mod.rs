//! scipy's `save_npz`: reads csr, csc, coo, bsr, dia; writes csr.

mod write;

use std::io::{Read, Seek};

pub use self::write::{Item, bytes};
pub use super::{
    compressed::Values,
    matrix::{Matrix, Value},
};
use super::{
    compressed::{Arrays, Source, bad_shape, check_ids, last},
    matrix::{check_entries, check_rows, check_size, in_rows},
    npy::Npz,
    text::excerpt,
};

impl<T: Value> Matrix<T> {
    /// Without `format` (early scipy, GraphSAINT): coo if `row` exists, else csr.
    pub fn read<R: Read + Seek>(npz: &mut Npz<R>, values: Values) -> Result<Self, String> {
        let mut file = Source { arrays: npz, values };
        let format = file.format()?;
        let shape = file.shape()?;
        match format.as_str() {
            "csr" => file.csr(shape),
            "csc" => file.csc(shape),
            "coo" => file.coo(shape),
            "bsr" => file.bsr(shape),
            "dia" => file.dia(shape),
            other => Err(format!(
                "array format: the matrix is in {:?}; csr, csc, coo, bsr and dia are read, and \
                 scipy's .tocsr() converts it",
                excerpt(other)
            )),
        }
    }
}

impl<R: Read + Seek> Arrays for Npz<R> {
    fn contains(&self, name: &str) -> bool {
        Npz::contains(self, name)
    }

    fn shape(&mut self, name: &str) -> Result<Vec<usize>, String> {
        Ok(self.header(name)?.shape)
    }

    fn ids(&mut self, name: &str, count: usize) -> Result<Vec<u32>, String> {
        self.read(name, |array| array.first(count).into_u32())
    }

    fn values<T: Value>(&mut self, name: &str, count: usize) -> Result<Vec<T>, String> {
        self.read(name, |array| T::read(array.first(count)))
    }
}

impl<R: Read + Seek> Source<'_, Npz<R>> {
    fn format(&mut self) -> Result<String, String> {
        if self.arrays.contains("format") {
            return self.arrays.read("format", |array| array.into_text());
        }
        let coo = self.arrays.contains("row") && !self.arrays.contains("indptr");
        Ok(if coo { "coo" } else { "csr" }.to_string())
    }

    fn coo<T: Value>(&mut self, shape: [usize; 2]) -> Result<Matrix<T>, String> {
        if self.arrays.contains("coords") && !self.arrays.contains("row") {
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

    fn coords<T: Value>(&mut self, shape: [usize; 2]) -> Result<Matrix<T>, String> {
        let header = self.arrays.header("coords")?;
        let &[2, entries] = header.shape.as_slice() else {
            return Err(bad_shape("coords", &header.shape, "[2, entries]"));
        };
        let stored = self.stored(entries, "coords")?;
        check_rows(shape[0], "rows")?;
        check_entries::<T>(entries, 3, shape)?;
        let ids = self.arrays.read("coords", |array| array.into_u32())?;
        let (rows, columns) = ids.split_at(entries);
        check_ids("coords", rows, "row", shape[0])?;
        check_ids("coords", columns, "column", shape[1])?;
        let values = self.values_of(stored, entries)?;
        Ok(in_rows(shape, rows, columns.iter().copied(), values))
    }

    /// Zeros of blocks are entries.
    fn bsr<T: Value>(&mut self, shape: [usize; 2]) -> Result<Matrix<T>, String> {
        let data = self.arrays.header("data")?;
        let &[stored, height, width] = data.shape.as_slice() else {
            return Err(bad_shape("data", &data.shape, "[blocks, height, width]"));
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
        let blocked: Vec<T> = self.arrays.read("data", |array| T::read(array.first(entries)))?;

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

    /// Zeros are padding.
    fn dia<T: Value>(&mut self, shape: [usize; 2]) -> Result<Matrix<T>, String> {
        let data = self.arrays.header("data")?;
        let &[stored, width] = data.shape.as_slice() else {
            return Err(bad_shape("data", &data.shape, "[diagonals, columns]"));
        };
        let count = self.vector("offsets")?;
        if count != stored {
            return Err(format!("array data: {stored} diagonals, but array offsets has {count}"));
        }
        check_rows(shape[0], "rows")?;
        check_entries::<T>(data.len, 3, [usize::MAX; 2])?;
        let offsets = self.arrays.read("offsets", |array| array.into_i64())?;
        let mut diagonals: Vec<(i64, usize)> = offsets.into_iter().zip(0..).collect();
        diagonals.sort_unstable();
        if let Some(&[(offset, _), _]) =
            diagonals.array_windows().find(|[one, other]| one.0 == other.0)
        {
            return Err(format!("array offsets: the diagonal {offset} is there twice"));
        }
        let nonzero = self.arrays.read("data", |array| array.into_nonzero())?;
        let stored: Vec<T> = self.arrays.read("data", |array| T::read(array))?;
        let [height, cols] = shape.map(|size| size as i64);
        let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (offset, diagonal) in diagonals {
            // Column j is in row j - offset.
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
        let header = self.arrays.header("shape")?;
        let sizes = match header.shape.as_slice() {
            [2] => self.arrays.read("shape", |array| array.into_u32())?,
            [count] => return Err(format!("array shape: {count} numbers, a matrix has 2")),
            _ => return Err(bad_shape("shape", &header.shape, "[2]")),
        };
        let shape = [sizes[0] as usize, sizes[1] as usize];
        check_size(shape).map_err(|reason| format!("array shape: {reason}"))?;
        Ok(shape)
    }
}

#[cfg(test)]
mod tests;
