use burn::tensor::Tensor;

use super::{
    csr::Csr,
    error::CsrError,
    pattern::{MAX_ENTRIES, Pattern, check_size},
    repeat::repeat,
    tensor::gather,
};

impl Csr {
    /// Rows by number, repeated or not: numpy's `a[rows]`. Differentiable. Panics out of bounds, or
    /// above [`MAX_ENTRIES`].
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 2.0]], &Device::flex());
    /// let a = Csr::from_dense(x).unwrap().select_rows(&[1, 1, 0]);
    /// let rows = TensorData::from([[0.0, 2.0], [0.0, 2.0], [1.0, 0.0]]);
    /// a.to_dense().into_data().assert_eq(&rows, false);
    /// ```
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        let pattern = self.pattern();
        let mut indptr = Vec::with_capacity(rows.len() + 1);
        indptr.push(0);
        let (mut indices, mut entries) = (Vec::new(), Vec::new());
        for &row in rows {
            assert!(
                row < self.rows(),
                "select_rows: row {row} of a matrix of {} rows",
                self.rows(),
            );
            indices.extend(pattern.row(row));
            entries.extend(pattern.indptr()[row]..pattern.indptr()[row + 1]);
            assert!(indices.len() <= MAX_ENTRIES, "select_rows: more than {MAX_ENTRIES} entries",);
            indptr.push(indices.len() as u32);
        }
        self.with_entries([rows.len(), self.cols()], indptr, indices, &entries)
    }

    /// The rows where `keep` is true. Differentiable. Panics if lengths differ.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 2.0]], &Device::flex());
    /// let a = Csr::from_dense(x).unwrap().filter_rows(&[false, true]);
    /// a.to_dense().into_data().assert_eq(&TensorData::from([[0.0, 2.0]]), false);
    /// ```
    pub fn filter_rows(&self, keep: &[bool]) -> Self {
        let (found, rows) = (keep.len(), self.rows());
        assert!(found == rows, "filter_rows: {found} choices for {rows} rows");
        let kept: Vec<usize> = (0..rows).filter(|&row| keep[row]).collect();
        self.select_rows(&kept)
    }

    /// The columns where `keep` is true, renumbered. Differentiable. Panics if lengths differ.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]], &Device::flex());
    /// let a = Csr::from_dense(x).unwrap().filter_cols(&[false, true, true]);
    /// let columns = TensorData::from([[0.0, 3.0], [2.0, 0.0]]);
    /// a.to_dense().into_data().assert_eq(&columns, false);
    /// ```
    pub fn filter_cols(&self, keep: &[bool]) -> Self {
        let (found, cols) = (keep.len(), self.cols());
        assert!(found == cols, "filter_cols: {found} choices for {cols} columns");
        let mut count = 0u32;
        let numbers: Vec<u32> = keep
            .iter()
            .map(|&kept| {
                count += u32::from(kept);
                count
            })
            .collect();
        let pattern = self.pattern();
        let mut indptr = Vec::with_capacity(self.rows() + 1);
        indptr.push(0);
        let (mut indices, mut entries) = (Vec::new(), Vec::new());
        for row in 0..self.rows() {
            for (entry, &column) in (pattern.indptr()[row]..).zip(pattern.row(row)) {
                if keep[column as usize] {
                    indices.push(numbers[column as usize] - 1);
                    entries.push(entry);
                }
            }
            indptr.push(indices.len() as u32);
        }
        self.with_entries([self.rows(), count as usize], indptr, indices, &entries)
    }

    /// Stacks matrices: scipy's `vstack`. Differentiable.
    ///
    /// Errors without matrices, if columns, dtypes or devices differ, or above [`MAX_ENTRIES`].
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 2.0]], &Device::flex());
    /// let a = Csr::from_dense(x).unwrap();
    /// let both = Csr::vstack(&[&a, &a.slice_rows(0..1)]).unwrap();
    /// let rows = TensorData::from([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]]);
    /// both.to_dense().into_data().assert_eq(&rows, false);
    /// ```
    pub fn vstack(matrices: &[&Self]) -> Result<Self, CsrError> {
        let first = check(matrices, "columns", Self::cols)?;
        let rows = total(matrices, "rows", Self::rows)?;
        let entries = total(matrices, "entries", Self::nnz)?;
        let mut indptr = Vec::with_capacity(rows + 1);
        indptr.push(0);
        let mut indices = Vec::with_capacity(entries);
        for matrix in matrices {
            let before = indices.len() as u32;
            let ends = matrix.pattern().indptr()[1..].iter();
            indptr.extend(ends.map(|end| before + end));
            indices.extend(matrix.pattern().indices());
        }
        let pattern = Pattern::new(rows, first.cols(), indptr, indices)?;
        Ok(Self::assemble(pattern.into(), values(matrices)))
    }

    /// Joins matrices side by side: scipy's `hstack`. Differentiable.
    ///
    /// Errors without matrices, if rows, dtypes or devices differ, or above [`MAX_ENTRIES`].
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 2.0]], &Device::flex());
    /// let a = Csr::from_dense(x).unwrap();
    /// let both = Csr::hstack(&[&a, &a]).unwrap();
    /// let rows = TensorData::from([[1.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 2.0]]);
    /// both.to_dense().into_data().assert_eq(&rows, false);
    /// ```
    pub fn hstack(matrices: &[&Self]) -> Result<Self, CsrError> {
        let first = check(matrices, "rows", Self::rows)?;
        let cols = total(matrices, "columns", Self::cols)?;
        let entries = total(matrices, "entries", Self::nnz)?;
        let mut indptr = Vec::with_capacity(first.rows() + 1);
        indptr.push(0);
        let mut indices = Vec::with_capacity(entries);
        let mut places = Vec::with_capacity(entries);
        for row in 0..first.rows() {
            let (mut columns_before, mut entries_before) = (0, 0);
            for matrix in matrices {
                let pattern = matrix.pattern();
                indices.extend(pattern.row(row).iter().map(|column| columns_before + column));
                let [start, end] = [row, row + 1].map(|row| pattern.indptr()[row]);
                places.extend(entries_before + start..entries_before + end);
                columns_before += matrix.cols() as u32;
                entries_before += matrix.nnz() as u32;
            }
            indptr.push(indices.len() as u32);
        }
        let pattern = Pattern::new(first.rows(), cols, indptr, indices)?;
        Ok(Self::assemble(pattern.into(), gather(values(matrices), &places)))
    }

    /// Entries may repeat; columns must ascend.
    fn with_entries(
        &self,
        [rows, cols]: [usize; 2],
        indptr: Vec<u32>,
        indices: Vec<u32>,
        entries: &[u32],
    ) -> Self {
        let pattern = Pattern::new(rows, cols, indptr, indices).expect("parts of a pattern");
        Self::assemble(pattern.into(), repeat(self.values().clone(), entries))
    }
}

fn check<'a>(
    matrices: &[&'a Csr],
    what: &'static str,
    size: fn(&Csr) -> usize,
) -> Result<&'a Csr, CsrError> {
    let (&first, others) = matrices.split_first().ok_or(CsrError::Nothing)?;
    for other in others {
        if size(other) != size(first) {
            return Err(CsrError::Size { what, found: size(other), expected: size(first) });
        }
        if other.dtype() != first.dtype() {
            return Err(CsrError::Dtypes { first: first.dtype(), other: other.dtype() });
        }
        let (one, two) = (first.device(), other.device());
        if one != two {
            let (first, other) = (format!("{one:?}"), format!("{two:?}"));
            return Err(CsrError::Devices { first, other });
        }
    }
    Ok(first)
}

fn total(
    matrices: &[&Csr],
    what: &'static str,
    size: fn(&Csr) -> usize,
) -> Result<usize, CsrError> {
    let sizes = matrices.iter().map(|matrix| size(matrix));
    let total = sizes.fold(0, usize::saturating_add);
    check_size(what, total)?;
    Ok(total)
}

fn values(matrices: &[&Csr]) -> Tensor<1> {
    let some = matrices.iter().filter(|matrix| matrix.nnz() > 0);
    let mut some: Vec<Tensor<1>> = some.map(|matrix| matrix.values().clone()).collect();
    match some.len() {
        0 => matrices[0].values().clone(),
        1 => some.remove(0),
        _ => Tensor::cat(some, 0),
    }
}
