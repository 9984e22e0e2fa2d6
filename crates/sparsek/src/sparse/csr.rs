//! A sparse matrix in CSR with its values on a device.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, IndexingUpdateOp, Int, Tensor, TensorData},
};

use super::{Pattern, PatternError, adjacency::upload, pattern::check_size, sorted::Sorted};
use crate::ops::DistanceOps;

/// Why a CSR matrix was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CsrError {
    /// The arrays are not a pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A row's columns do not ascend.
    #[error("row {row} is not sorted: column {column} comes after column {before}")]
    Unsorted {
        /// The row.
        row: usize,
        /// The column that comes too late.
        column: u32,
        /// The column before it.
        before: u32,
    },
    /// A row has two entries in one column.
    #[error("row {row} has column {column} twice")]
    Duplicate {
        /// The row.
        row: usize,
        /// The column.
        column: u32,
    },
    /// A row id is not below the number of rows.
    #[error("row {row} of entry {entry} is out of range: the matrix has {rows} rows")]
    Row {
        /// Position of the entry.
        entry: usize,
        /// Its row.
        row: u32,
        /// Rows of the matrix.
        rows: usize,
    },
    /// Row ids and column ids are not as many.
    #[error("{rows} row ids, but {cols} column ids")]
    Ids {
        /// Row ids.
        rows: usize,
        /// Column ids.
        cols: usize,
    },
    /// The values are not as many as the entries.
    #[error("{found} values for {entries} entries")]
    Values {
        /// Entries of the pattern.
        entries: usize,
        /// Values found.
        found: usize,
    },
    /// Values of this dtype are not supported, or the device lacks it.
    #[error(
        "values of {dtype:?} are not supported on {device} (supported: F32, F16, BF16, F64 where the device has it)"
    )]
    Dtype {
        /// The dtype.
        dtype: DType,
        /// The device.
        device: String,
    },
}

/// A sparse matrix in CSR: a checked [`Pattern`] on the host, the same on a device, and the values there, apart from it.
///
/// The columns of each row ascend strictly. Entries may have the value 0: an explicit zero is an entry like any other,
/// and is kept. Values may be tracked by autodiff; the pattern is constant.
///
/// Cloning shares everything. Takes `4 (rows + 1 + nnz)` bytes of the device beside the values, and as much of the host.
///
/// # Shapes and dtypes
///
/// `indptr`: `[rows + 1]` and `indices`: `[nnz]`, i32; `values`: `[nnz]`, f32, f64, f16 or bf16 where the device has it.
/// At most [`MAX_ENTRIES`](super::MAX_ENTRIES) rows, columns and entries.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::sparse::{Csr, Pattern};
///
/// // [. 5 .]
/// // [6 . 7]
/// let device = Device::flex();
/// let pattern = Pattern::new(2, 3, vec![0, 1, 3], vec![1, 0, 2]).unwrap();
/// let values = Tensor::<1>::from_data([5.0, 6.0, 7.0], &device);
/// let a = Csr::new(pattern, values).unwrap();
/// assert_eq!((a.rows(), a.cols(), a.nnz()), (2, 3, 3));
/// let dense = TensorData::from([[0.0, 6.0], [5.0, 0.0], [0.0, 7.0]]);
/// a.transpose().to_dense().into_data().assert_eq(&dense, false);
/// ```
#[derive(Clone, Debug)]
pub struct Csr {
    pattern: Arc<Pattern>,
    indptr: Tensor<1, Int>,
    indices: Tensor<1, Int>,
    values: Tensor<1>,
    /// What [`Csr::greatest`] found.
    greatest: Arc<OnceLock<f32>>,
}

impl Csr {
    /// Takes a pattern whose columns ascend strictly, and its values, `[nnz]`, in the order of its entries. The matrix is
    /// on the device of the values. Columns in another order: [`Csr::from_unsorted`].
    ///
    /// # Errors
    ///
    /// [`CsrError::Unsorted`] and [`CsrError::Duplicate`] name the first row and column out of order,
    /// [`CsrError::Values`] another number of values than entries, [`CsrError::Dtype`] a dtype that the device lacks.
    pub fn new(pattern: impl Into<Arc<Pattern>>, values: Tensor<1>) -> Result<Self, CsrError> {
        let pattern = pattern.into();
        check_values(&values, pattern.nnz())?;
        check_order(&pattern)?;
        Ok(Self::assemble(pattern, values))
    }

    /// Takes a pattern whose columns come in any order and may repeat, and puts it in order. Values of one place are added
    /// up in the order of the pattern, f16 and bf16 in f32, on the device; a sum of 0 stays an entry.
    ///
    /// Differentiable in the values.
    ///
    /// # Errors
    ///
    /// [`CsrError::Values`] and [`CsrError::Dtype`], as [`Csr::new`].
    pub fn from_unsorted(pattern: &Pattern, values: Tensor<1>) -> Result<Self, CsrError> {
        check_values(&values, pattern.nnz())?;
        Ok(Self::from_sorted(Sorted::from_pattern(pattern), values))
    }

    /// Takes the row, the column and the value of each entry, in any order. Values of one place are added up in the order
    /// given, f16 and bf16 in f32, on the device; a sum of 0 stays an entry.
    ///
    /// Differentiable in the values. O(rows + entries), and a sort of every row, on the host.
    ///
    /// # Errors
    ///
    /// [`CsrError`] when the three do not have one length, an id is out of range, there are more rows, columns or entries
    /// than [`MAX_ENTRIES`](super::MAX_ENTRIES), or the device lacks the dtype.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let values = Tensor::<1>::from_data([1.0, 2.0, 4.0], &Device::flex());
    /// let a = Csr::from_coo([2, 2], &[1, 0, 1], &[0, 1, 0], values).unwrap();
    /// assert_eq!(a.pattern().indices(), [1, 0]);
    /// a.values().to_data().assert_eq(&TensorData::from([2.0, 5.0]), false);
    /// ```
    pub fn from_coo(
        shape: [usize; 2],
        rows: &[u32],
        cols: &[u32],
        values: Tensor<1>,
    ) -> Result<Self, CsrError> {
        if rows.len() != cols.len() {
            let (rows, cols) = (rows.len(), cols.len());
            return Err(CsrError::Ids { rows, cols });
        }
        check_values(&values, rows.len())?;
        Ok(Self::from_sorted(
            Sorted::from_coo(shape, rows, cols)?,
            values,
        ))
    }

    /// The elements of a matrix that are not 0, NaN included.
    ///
    /// The elements are read by the host, once, to find the pattern; the values are picked from `x` on the device, so that
    /// their gradient goes back to where they came from.
    ///
    /// # Errors
    ///
    /// [`CsrError`] when there are more rows, columns or such elements than [`MAX_ENTRIES`](super::MAX_ENTRIES), or the device lacks the dtype.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use sparsek::sparse::Csr;
    ///
    /// let x = Tensor::<2>::from_data([[0.0, 3.0], [-0.0, f32::NAN]], &Device::flex());
    /// let a = Csr::from_dense(x).unwrap();
    /// assert_eq!(a.pattern().indptr(), [0, 1, 2]);
    /// assert_eq!(a.pattern().indices(), [1, 1]);
    /// ```
    pub fn from_dense(x: Tensor<2>) -> Result<Self, CsrError> {
        let [rows, cols] = x.dims();
        check_size("rows", rows)?;
        check_size("columns", cols)?;
        check_dtype(x.dtype(), &x.device())?;
        let elements = x.to_data();
        let (mut indptr, mut indices, mut places) = (vec![0], Vec::new(), Vec::new());
        for row in 0..rows {
            for col in (0..cols).filter(|col| is_entry(&elements, row * cols + col)) {
                check_size("entries", indices.len() + 1)?;
                indices.push(col as u32);
                places.extend([row as u32, col as u32]);
            }
            indptr.push(indices.len() as u32);
        }
        let pattern = Pattern::new(rows, cols, indptr, indices)?;
        Ok(Self::assemble(pattern.into(), pick(x, &places)))
    }

    fn from_sorted(sorted: Sorted, values: Tensor<1>) -> Self {
        let values = sorted.collect(values);
        Self::assemble(sorted.pattern.into(), values)
    }

    /// Uploads a checked pattern to where its values are.
    fn assemble(pattern: Arc<Pattern>, values: Tensor<1>) -> Self {
        let device = values.device();
        Self {
            indptr: upload(pattern.indptr(), &device),
            indices: upload(pattern.indices(), &device),
            pattern,
            values,
            greatest: Arc::default(),
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.pattern.rows()
    }

    /// Columns of the matrix.
    pub fn cols(&self) -> usize {
        self.pattern.cols()
    }

    /// Stored entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.pattern.nnz()
    }

    /// The pattern, on the host.
    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// Offsets of the rows on the device: `[rows + 1]`, i32.
    pub fn indptr(&self) -> &Tensor<1, Int> {
        &self.indptr
    }

    /// Column of each entry on the device, row after row: `[nnz]`, i32, ascending in each row.
    pub fn indices(&self) -> &Tensor<1, Int> {
        &self.indices
    }

    /// Value of each entry: `[nnz]`.
    pub fn values(&self) -> &Tensor<1> {
        &self.values
    }

    /// Dtype of the values.
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// Where the matrix is.
    pub fn device(&self) -> Device {
        self.values.device()
    }

    /// The same pattern with other values, such as those of another dtype; it moves to their device.
    ///
    /// # Errors
    ///
    /// [`CsrError::Values`] and [`CsrError::Dtype`], as [`Csr::new`].
    pub fn with_values(&self, values: Tensor<1>) -> Result<Self, CsrError> {
        check_values(&values, self.nnz())?;
        if values.device() != self.device() {
            return Ok(Self::assemble(self.pattern.clone(), values));
        }
        Ok(Self {
            values,
            greatest: Arc::default(),
            ..self.clone()
        })
    }

    /// The matrix on another device. The pattern is uploaded from the host. Differentiable.
    ///
    /// # Errors
    ///
    /// [`CsrError::Dtype`] when the device lacks the dtype of the values.
    pub fn to_device(&self, device: &Device) -> Result<Self, CsrError> {
        check_dtype(self.dtype(), device)?;
        self.with_values(self.values.clone().to_device(device))
    }

    /// The dense matrix, `[rows, cols]`: 0 where there is no entry. Differentiable: the gradient of an entry is that of its
    /// element. Work: one write of the result and one of each entry.
    pub fn to_dense(&self) -> Tensor<2> {
        let shape = [self.rows(), self.cols()];
        let options = (&self.device(), self.dtype());
        if shape.contains(&0) {
            return Tensor::from_data(TensorData::new(Vec::<f32>::new(), shape), options);
        }
        let zeros = Tensor::zeros(shape, options);
        if self.nnz() == 0 {
            return zeros;
        }
        let places: Vec<u32> = (0..self.rows())
            .flat_map(|i| self.pattern.row(i).iter().flat_map(move |&j| [i as u32, j]))
            .collect();
        let places = upload(&places, &self.device()).reshape([self.nnz(), 2]);
        zeros.scatter_nd(places, self.values.clone(), IndexingUpdateOp::Assign)
    }

    /// The transposed matrix. Differentiable. O(rows + cols + nnz) on the host, and one read of each value.
    pub fn transpose(&self) -> Self {
        let (pattern, entries) = self.pattern.transpose();
        Self::assemble(pattern.into(), pick(self.values.clone(), &entries))
    }

    /// The rows in a range. Differentiable. O(rows and entries of the range).
    ///
    /// # Panics
    ///
    /// If the range ends before it begins or beyond the last row.
    pub fn slice_rows(&self, rows: Range<usize>) -> Self {
        assert!(
            rows.start <= rows.end && rows.end <= self.rows(),
            "slice_rows: rows {rows:?} of a matrix of {} rows",
            self.rows(),
        );
        let offset = |row| self.pattern.indptr()[row] as usize;
        let (first, last) = (offset(rows.start), offset(rows.end));
        let values = match first == last {
            true => empty(&self.values),
            false => self.values.clone().slice(first..last),
        };
        let sliced = Self::assemble(self.pattern.slice_rows(rows).into(), values);
        match self.greatest.get() {
            // What holds for all values holds for some.
            Some(_) => Self {
                greatest: self.greatest.clone(),
                ..sliced
            },
            None => sliced,
        }
    }

    /// The greatest magnitude of the values, or of those of a matrix of which this one has some rows; infinity where they are not whole
    /// numbers, and on devices where that does not matter. They are looked at once, which waits for the device.
    pub(crate) fn greatest(&self) -> f32 {
        // Nothing can wait for a device there.
        if cfg!(target_family = "wasm") {
            return f32::INFINITY;
        }
        *self.greatest.get_or_init(|| {
            let values = self.values.clone().into_dispatch();
            let greatest = <Dispatch as DistanceOps>::greatest(values);
            Tensor::<1>::from_dispatch(greatest).into_scalar::<f32>()
        })
    }
}

/// The elements of `x` at distinct places, D numbers each. Its gradient is put back in parallel, which Burn's `select`
/// does not do.
pub(super) fn pick<const D: usize>(x: Tensor<D>, places: &[u32]) -> Tensor<1> {
    if places.is_empty() {
        return empty(&x);
    }
    let places = upload(places, &x.device()).reshape([places.len() / D, D]);
    x.gather_nd(places)
}

/// No elements, of the dtype and on the device of `x`.
fn empty<const D: usize>(x: &Tensor<D>) -> Tensor<1> {
    let none = TensorData::new(Vec::<f32>::new(), [0]);
    Tensor::from_data(none, (&x.device(), x.dtype()))
}

/// Whether an element has other bits than those of a zero.
fn is_entry(elements: &TensorData, at: usize) -> bool {
    let size = elements.dtype().size();
    let (sign, rest) = elements.as_bytes()[at * size..(at + 1) * size]
        .split_last()
        .expect("floats have bytes");
    sign & 0x7f != 0 || rest.iter().any(|&byte| byte != 0)
}

fn check_values(values: &Tensor<1>, entries: usize) -> Result<(), CsrError> {
    let [found] = values.dims();
    if found != entries {
        return Err(CsrError::Values { entries, found });
    }
    check_dtype(values.dtype(), &values.device())
}

pub(super) fn check_dtype(dtype: DType, device: &Device) -> Result<(), CsrError> {
    let known = matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    match known && device.supports_dtype(dtype) {
        true => Ok(()),
        false => Err(CsrError::Dtype {
            dtype,
            device: format!("{device:?}"),
        }),
    }
}

fn check_order(pattern: &Pattern) -> Result<(), CsrError> {
    for row in 0..pattern.rows() {
        let pairs = pattern.row(row).array_windows();
        for &[before, column] in pairs {
            if before == column {
                return Err(CsrError::Duplicate { row, column });
            }
            if before > column {
                return Err(CsrError::Unsorted {
                    row,
                    column,
                    before,
                });
            }
        }
    }
    Ok(())
}
