//! Reads compressed rows or columns: sizes, then offsets, then entries. Skips capacity after the
//! last offset.

use sparsek_kernels::spmm::MAX_ENTRIES;

use super::{
    matrix::{Matrix, Value, check_entries, check_rows, in_rows},
    text::excerpt,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    Needed,
    Optional,
}

/// Arrays of a matrix. Errors name the array.
pub trait Arrays {
    fn contains(&self, name: &str) -> bool;

    fn shape(&mut self, name: &str) -> Result<Vec<usize>, String>;

    fn ids(&mut self, name: &str, count: usize) -> Result<Vec<u32>, String>;

    /// Rounds numbers.
    fn values<T: Value>(&mut self, name: &str, count: usize) -> Result<Vec<T>, String>;
}

pub struct Source<'a, A> {
    pub arrays: &'a mut A,
    pub values: Values,
}

impl<A: Arrays> Source<'_, A> {
    pub fn csr<T: Value>(&mut self, shape: [usize; 2]) -> Result<Matrix<T>, String> {
        let (indices, stored) = self.vectors("indices")?;
        let indptr = self.offsets([shape[0], indices], "rows", 0)?;
        let entries = last(&indptr);
        check_entries::<T>(entries, 1, shape)?;
        let indices = self.ids("indices", entries, "column", shape[1])?;
        let values = self.values_of(stored, entries)?;
        Ok(Matrix { shape, indptr, indices, values })
    }

    pub fn csc<T: Value>(&mut self, shape: [usize; 2]) -> Result<Matrix<T>, String> {
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

    pub fn vector(&mut self, name: &str) -> Result<usize, String> {
        let shape = self.arrays.shape(name)?;
        match shape.as_slice() {
            &[length] if length <= MAX_ENTRIES + 1 => Ok(length),
            [length] => Err(format!("array {name}: {length} exceed the limit of {MAX_ENTRIES}")),
            _ => Err(bad_shape(name, &shape, "one dimension")),
        }
    }

    /// Entries; whether values exist.
    pub fn vectors(&mut self, ids: &str) -> Result<(usize, bool), String> {
        let entries = self.vector(ids)?;
        Ok((entries, self.stored(entries, ids)?))
    }

    /// Whether values exist, one per id.
    pub fn stored(&mut self, entries: usize, ids: &str) -> Result<bool, String> {
        if self.values == Values::Optional && !self.arrays.contains("data") {
            return Ok(false);
        }
        match self.vector("data")? {
            values if values == entries => Ok(true),
            values => {
                Err(format!("array data: {values} values for {entries} entries in array {ids}"))
            }
        }
    }

    /// Ascending from 0 to at most `stored`; the memory check adds `rows`.
    pub fn offsets(
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
        let offsets = self.arrays.ids("indptr", count + 1)?;
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

    pub fn ids(
        &mut self,
        name: &str,
        entries: usize,
        what: &str,
        limit: usize,
    ) -> Result<Vec<u32>, String> {
        let ids = self.arrays.ids(name, entries)?;
        check_ids(name, &ids, what, limit)?;
        Ok(ids)
    }

    pub fn values_of<T: Value>(
        &mut self,
        stored: bool,
        entries: usize,
    ) -> Result<Option<Vec<T>>, String> {
        let mut read = || self.arrays.values("data", entries);
        stored.then(&mut read).transpose()
    }
}

pub fn check_ids(name: &str, ids: &[u32], what: &str, limit: usize) -> Result<(), String> {
    match ids.iter().position(|&id| id as usize >= limit) {
        None => Ok(()),
        Some(entry) => Err(format!(
            "array {name}: {what} {} of entry {entry} is out of range: the matrix has {limit} \
             {what}s",
            ids[entry]
        )),
    }
}

pub fn last(offsets: &[u32]) -> usize {
    offsets.last().map_or(0, |&end| end as usize)
}

pub fn bad_shape(name: &str, shape: &[usize], needed: &str) -> String {
    let shape = excerpt(&format!("{shape:?}"));
    format!("array {name}: shape {shape}, {needed} is needed")
}
