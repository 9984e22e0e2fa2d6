//! A pattern on a device, and its products with dense tensors.

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, Int, Tensor, TensorData},
};

use super::Pattern;
use crate::ops::SparsekOps;

/// A pattern and its transpose on a device, as the products and their gradients need them.
///
/// Cloning shares the buffers. Takes `4 (rows + cols + 2) + 12 nnz` bytes of device memory.
#[derive(Clone, Debug)]
pub struct Adjacency {
    rows: usize,
    cols: usize,
    pub(super) indptr: Tensor<1, Int>,
    pub(super) indices: Tensor<1, Int>,
    pub(super) transposed_indptr: Tensor<1, Int>,
    pub(super) transposed_indices: Tensor<1, Int>,
    pub(super) transposed_entries: Tensor<1, Int>,
}

impl Adjacency {
    /// Transposes the pattern and uploads both.
    pub fn new(pattern: &Pattern, device: &Device) -> Self {
        let (transposed, entries) = pattern.transpose();
        let upload = |values: &[u32]| upload(values, device);
        Self {
            rows: pattern.rows(),
            cols: pattern.cols(),
            indptr: upload(pattern.indptr()),
            indices: upload(pattern.indices()),
            transposed_indptr: upload(transposed.indptr()),
            transposed_indices: upload(transposed.indices()),
            transposed_entries: upload(&entries),
        }
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
        self.indices.dims()[0]
    }
}

/// Integers below 2^31 as i32 on a device.
pub(crate) fn upload(values: &[u32], device: &Device) -> Tensor<1, Int> {
    // Pattern keeps every value below 2^31.
    let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), (device, DType::I32))
}

/// Product of a 0/1 sparse matrix and a dense one: `y[i] = Σ x[j]` over the entries `(i, j)` of row
/// `i`, the sum aggregation of a graph network.
///
/// # Shapes
///
/// - `x`: `[cols, d]` of f32, f64, f16 or bf16 (the last two are summed in f32).
/// - result: `[rows, d]` in the dtype of `x`. Rows without entries are 0.
///
/// # Guarantees
///
/// Deterministic: each element is summed in the order of the entries of its row.
///
/// # Gradient
///
/// `dx = Aᵀ dy`, by the transposed pattern, as deterministic as the product.
///
/// # Panics
///
/// If `x` has another number of rows than the pattern has columns, or the device lacks the dtype.
///
/// # Cost
///
/// One row of `x` is read for each entry; no scratch memory.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::sparse::{Adjacency, Pattern, spmm};
///
/// let device = Device::flex();
/// let pattern = Pattern::new(2, 3, vec![0, 1, 3], vec![1, 0, 2]).unwrap();
/// let adjacency = Adjacency::new(&pattern, &device);
/// let x = Tensor::<2>::from_data([[1.0], [2.0], [4.0]], &device);
/// let y = spmm(&adjacency, x);
/// y.into_data().assert_eq(&TensorData::from([[2.0], [5.0]]), false);
/// ```
pub fn spmm(adjacency: &Adjacency, x: Tensor<2>) -> Tensor<2> {
    check("spmm", adjacency, &x);
    let adjacency = adjacency.clone();
    Tensor::from_dispatch(<Dispatch as SparsekOps>::spmm(
        x.into_dispatch(),
        adjacency.indptr.into_dispatch(),
        adjacency.indices.into_dispatch(),
        adjacency.transposed_indptr.into_dispatch(),
        adjacency.transposed_indices.into_dispatch(),
    ))
}

/// Product of a sparse matrix with values and a dense one: `y[i] = Σ weights[e] x[j]` over the
/// entries `e = (i, j)` of row `i`.
///
/// As [`spmm`], with `weights` of shape `[nnz]` in the dtype of `x`, in the order of the pattern's
/// entries. Differentiable in both: `dx = Aᵀ dy`, `dweights[e] = dy[i] · x[j]`.
///
/// # Panics
///
/// As [`spmm`], and if `weights` does not have one element for each entry or has another dtype.
pub fn spmm_weighted(adjacency: &Adjacency, weights: Tensor<1>, x: Tensor<2>) -> Tensor<2> {
    check("spmm_weighted", adjacency, &x);
    assert!(
        weights.dims()[0] == adjacency.nnz(),
        "spmm_weighted: {} weights for {} entries",
        weights.dims()[0],
        adjacency.nnz(),
    );
    assert!(
        weights.dtype() == x.dtype(),
        "spmm_weighted: the weights are {:?}, but x is {:?}",
        weights.dtype(),
        x.dtype(),
    );
    let adjacency = adjacency.clone();
    Tensor::from_dispatch(<Dispatch as SparsekOps>::spmm_weighted(
        x.into_dispatch(),
        weights.into_dispatch(),
        adjacency.indptr.into_dispatch(),
        adjacency.indices.into_dispatch(),
        adjacency.transposed_indptr.into_dispatch(),
        adjacency.transposed_indices.into_dispatch(),
        adjacency.transposed_entries.into_dispatch(),
    ))
}

pub(super) fn check(operation: &str, adjacency: &Adjacency, x: &Tensor<2>) {
    let [rows, _] = x.dims();
    assert!(
        rows == adjacency.cols,
        "{operation}: x has {rows} rows, but the sparse matrix has {} columns",
        adjacency.cols,
    );
    let dtype = x.dtype();
    assert!(
        matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16)
            && x.device().supports_dtype(dtype),
        "{operation}: dtype {dtype:?} is not supported here (supported: f32, f16, bf16, f64 where the device has it)",
    );
}
