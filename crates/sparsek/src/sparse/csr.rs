use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, IndexingUpdateOp, Int, Tensor, TensorData, read_sync},
};

use super::{
    error::CsrError,
    pattern::{Pattern, check_size},
    sorted::Sorted,
    tensor::{empty, gather, upload},
};
use crate::ops::{CsrTensors, DistanceOps};

/// CSR matrix: a [`Pattern`] on host and device, values on the device.
///
/// Columns ascend strictly; explicit zeros stay. Values may be tracked by autodiff. Clones share
/// everything. Patterns take `4 (rows + 1 + nnz)` bytes on each side. Pattern changes take linear
/// host time, plus sorts.
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
    greatest: Arc<OnceLock<f32>>,
}

/// Host copy of a [`Csr`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CsrData {
    /// Pattern.
    pub pattern: Pattern,
    /// Values, `[nnz]`.
    pub values: TensorData,
}

impl Csr {
    /// Reads the values back.
    ///
    /// ```
    /// # #[cfg(feature = "serde")]
    /// # {
    /// use burn::tensor::{Device, Tensor};
    /// use sparsek::sparse::{Csr, CsrData};
    ///
    /// let device = Device::flex();
    /// let a = Csr::from_dense(Tensor::from_data([[0.0, 5.0], [6.0, 0.0]], &device)).unwrap();
    /// let text = serde_json::to_string(&a.to_data()).unwrap();
    /// let read: CsrData = serde_json::from_str(&text).unwrap();
    /// let b = Csr::from_data(read, &device).unwrap();
    /// assert_eq!(a.pattern(), b.pattern());
    /// a.values().to_data().assert_eq(&b.values().to_data(), true);
    /// # }
    /// ```
    pub fn to_data(&self) -> CsrData {
        CsrData { pattern: self.pattern.as_ref().clone(), values: self.values.to_data() }
    }

    /// Uploads a matrix. Errors as [`Csr::new`].
    pub fn from_data(data: CsrData, device: &Device) -> Result<Self, CsrError> {
        let dtype = data.values.dtype();
        check_dtype(dtype, device)?;
        Self::new(data.pattern, Tensor::from_data(data.values, (device, dtype)))
    }

    /// Takes strictly ascending columns, and values, `[nnz]`, in f32, f64, f16 or bf16.
    ///
    /// Errors: [`CsrError::Unsorted`], [`CsrError::Duplicate`], [`CsrError::Values`],
    /// [`CsrError::Dtype`].
    pub fn new(pattern: impl Into<Arc<Pattern>>, values: Tensor<1>) -> Result<Self, CsrError> {
        let pattern = pattern.into();
        check_values(&values, pattern.nnz())?;
        check_order(&pattern)?;
        Ok(Self::assemble(pattern, values))
    }

    /// Takes columns in any order. Sums repeats in pattern order, 16-bit floats in f32; sums of 0
    /// stay. Differentiable.
    ///
    /// Errors: [`CsrError::Values`], [`CsrError::Dtype`].
    pub fn from_unsorted(pattern: &Pattern, values: Tensor<1>) -> Result<Self, CsrError> {
        check_values(&values, pattern.nnz())?;
        Ok(Self::from_sorted(Sorted::from_pattern(pattern), values))
    }

    /// [`Csr::from_unsorted`] of row and column ids. Errors if lengths differ, ids are out of
    /// range, or the device lacks the dtype.
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
        Ok(Self::from_sorted(Sorted::from_coo(shape, rows, cols)?, values))
    }

    /// Takes the nonzero elements of `x`, NaN included. The host reads `x` if it has zeros.
    /// Differentiable. Errors: [`CsrError::Pattern`], [`CsrError::Dtype`].
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
        read_sync(Self::from_dense_async(x))
    }

    /// Non-blocking [`from_dense`](Csr::from_dense), for browsers.
    pub async fn from_dense_async(x: Tensor<2>) -> Result<Self, CsrError> {
        let [rows, cols] = x.dims();
        check_size("rows", rows)?;
        check_size("columns", cols)?;
        check_dtype(x.dtype(), &x.device())?;
        if rows * cols > 0 && !has_zeros(&x).await {
            return Self::from_all_elements(x);
        }
        let elements = x.to_data_async().await.expect("the device runs");
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
        Ok(Self::assemble(pattern.into(), gather(x, &places)))
    }

    /// Keeps zeros.
    pub(crate) fn from_all_elements(x: Tensor<2>) -> Result<Self, CsrError> {
        let [rows, cols] = x.dims();
        check_dtype(x.dtype(), &x.device())?;
        check_size("entries", rows.saturating_mul(cols))?;
        let indptr = (0..=rows).map(|row| (row * cols) as u32).collect();
        let indices = (0..rows).flat_map(|_| 0..cols as u32).collect();
        let pattern = Pattern::new(rows, cols, indptr, indices)?;
        let values = match rows * cols {
            0 => empty(&x),
            entries => x.reshape([entries]),
        };
        Ok(Self::assemble(pattern.into(), values))
    }

    fn from_sorted(sorted: Sorted, values: Tensor<1>) -> Self {
        let values = sorted.collect(values);
        Self::assemble(sorted.pattern.into(), values)
    }

    pub(super) fn assemble(pattern: Arc<Pattern>, values: Tensor<1>) -> Self {
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

    /// Columns.
    pub fn cols(&self) -> usize {
        self.pattern.cols()
    }

    /// Entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.pattern.nnz()
    }

    /// Host pattern.
    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// Row offsets: `[rows + 1]`, i32.
    pub fn indptr(&self) -> &Tensor<1, Int> {
        &self.indptr
    }

    /// Entry columns: `[nnz]`, i32.
    pub fn indices(&self) -> &Tensor<1, Int> {
        &self.indices
    }

    /// Entry values: `[nnz]`.
    pub fn values(&self) -> &Tensor<1> {
        &self.values
    }

    /// Value dtype.
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// Device.
    pub fn device(&self) -> Device {
        self.values.device()
    }

    /// Replaces the values; dtype and device may change. Errors: [`CsrError::Values`],
    /// [`CsrError::Dtype`].
    pub fn with_values(&self, values: Tensor<1>) -> Result<Self, CsrError> {
        check_values(&values, self.nnz())?;
        if values.device() != self.device() {
            return Ok(Self::assemble(self.pattern.clone(), values));
        }
        Ok(Self { values, greatest: Arc::default(), ..self.clone() })
    }

    /// Copies to another device. Differentiable. Error: [`CsrError::Dtype`].
    pub fn to_device(&self, device: &Device) -> Result<Self, CsrError> {
        check_dtype(self.dtype(), device)?;
        self.with_values(self.values.clone().to_device(device))
    }

    /// The dense matrix, `[rows, cols]`. Differentiable.
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
        let rows = self.pattern.row_ids();
        let places = rows.iter().zip(self.pattern.indices()).flat_map(|(&i, &j)| [i, j]);
        let places: Vec<u32> = places.collect();
        let places = upload(&places, &self.device()).reshape([self.nnz(), 2]);
        zeros.scatter_nd(places, self.values.clone(), IndexingUpdateOp::Assign)
    }

    /// The transpose. Differentiable.
    pub fn transpose(&self) -> Self {
        let (pattern, entries) = self.pattern.transpose();
        Self::assemble(pattern.into(), gather(self.values.clone(), &entries))
    }

    /// Slices rows. Differentiable. Panics out of bounds.
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
            Some(_) => Self { greatest: self.greatest.clone(), ..sliced },
            None => sliced,
        }
    }

    pub(crate) fn tensors(&self) -> CsrTensors<Dispatch> {
        CsrTensors {
            indptr: self.indptr.clone().into_dispatch(),
            indices: self.indices.clone().into_dispatch(),
            values: self.values.clone().into_dispatch(),
        }
    }

    /// Largest magnitude, also of a matrix they were sliced from. Infinity unless all are integers
    /// and the device uses it.
    pub(crate) fn greatest(&self) -> f32 {
        // WebAssembly cannot wait for a device.
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

/// Spares reading rows without zeros.
async fn has_zeros(x: &Tensor<2>) -> bool {
    let zeros = x.clone().detach().equal_elem(0.0).any();
    let found = zeros.into_data_async().await.expect("the device runs");
    found.iter::<bool>().any(|zero| zero)
}

/// Neither `+0` nor `-0`.
fn is_entry(elements: &TensorData, at: usize) -> bool {
    let size = elements.dtype().size();
    let (sign, rest) =
        elements.as_bytes()[at * size..(at + 1) * size].split_last().expect("floats have bytes");
    sign & 0x7f != 0 || rest.iter().any(|&byte| byte != 0)
}

fn check_values(values: &Tensor<1>, entries: usize) -> Result<(), CsrError> {
    let [found] = values.dims();
    if found != entries {
        return Err(CsrError::Values { entries, found });
    }
    check_dtype(values.dtype(), &values.device())
}

pub(crate) fn check_dtype(dtype: DType, device: &Device) -> Result<(), CsrError> {
    let known = matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    match known && device.supports_dtype(dtype) {
        true => Ok(()),
        false => Err(CsrError::Dtype { dtype, device: format!("{device:?}") }),
    }
}

pub(super) fn check_order(pattern: &Pattern) -> Result<(), CsrError> {
    for row in 0..pattern.rows() {
        let pairs = pattern.row(row).array_windows();
        for &[before, column] in pairs {
            if before == column {
                return Err(CsrError::Duplicate { row, column });
            }
            if before > column {
                return Err(CsrError::Unsorted { row, column, before });
            }
        }
    }
    Ok(())
}
