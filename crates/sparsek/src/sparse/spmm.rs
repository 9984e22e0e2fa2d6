use burn::{
    backend::Dispatch,
    tensor::{DType, Tensor},
};

use super::{adjacency::Adjacency, compressed::Compressed};
use crate::ops::{CompressedSpec, Factor, Factors, SpmmOps};

/// `a(i, j) = rows[i] weights[e] cols[j]` for entry `e = (i, j)`. Default: 1.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::sparse::{Adjacency, Pattern, Scaling, spmm_with};
///
/// let device = Device::flex();
/// let pattern = Pattern::new(2, 3, vec![0, 1, 3], vec![1, 0, 2]).unwrap();
/// let adjacency = Adjacency::new(&pattern, &device);
/// let x = Tensor::<2>::from_data([[1.0], [2.0], [4.0]], &device);
/// let mean = Scaling::default().with_rows(Tensor::from_data([1.0, 0.5], &device));
/// let y = spmm_with(&adjacency, x, &mean);
/// y.into_data().assert_eq(&TensorData::from([[2.0], [2.5]]), false);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scaling {
    weights: Option<Tensor<1>>,
    rows: Option<Tensor<1>>,
    cols: Option<Tensor<1>>,
}

impl Scaling {
    /// Entry weights, `[nnz]`, in the other operand's dtype. Differentiable.
    pub fn with_weights(self, weights: Tensor<1>) -> Self {
        Self { weights: Some(weights), ..self }
    }

    /// Constant row factors, `[rows]`.
    pub fn with_rows(self, rows: Tensor<1>) -> Self {
        Self { rows: Some(rows), ..self }
    }

    /// Constant column factors, `[cols]`.
    pub fn with_cols(self, cols: Tensor<1>) -> Self {
        Self { cols: Some(cols), ..self }
    }

    fn factors(&self, operation: &str, adjacency: &Adjacency, dtype: DType) -> Factors<Dispatch> {
        if let Some(weights) = &self.weights {
            let (found, nnz) = (weights.dims()[0], adjacency.nnz());
            assert!(found == nnz, "{operation}: {found} weights for {nnz} entries");
            assert!(
                weights.dtype() == dtype,
                "{operation}: the weights are {:?}, but x is {dtype:?}",
                weights.dtype(),
            );
        }
        let sum = match dtype {
            DType::F64 => DType::F64,
            _ => DType::F32,
        };
        let constant = |factors: &Option<Tensor<1>>, what: &str, count: usize| match factors {
            None => Factor::One,
            Some(factors) => {
                let found = factors.dims()[0];
                assert!(found == count, "{operation}: {found} factors for {count} {what}");
                Factor::Each(factors.clone().detach().cast(sum).into_dispatch())
            }
        };
        Factors {
            weights: match &self.weights {
                None => Factor::One,
                Some(weights) => Factor::Each(weights.clone().into_dispatch()),
            },
            rows: constant(&self.rows, "rows", adjacency.rows()),
            cols: constant(&self.cols, "columns", adjacency.cols()),
        }
    }
}

/// `y[i] = Σ x[j]` over entries `(i, j)`.
///
/// `x`: `[cols, d]`; `y`: `[rows, d]`, 0 in empty rows. Gradient: `dx = Aᵀ dy`. Deterministic:
/// sums in entry order, on devices in parts of 128 to 1024 entries.
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
    product("spmm", adjacency, x, &Scaling::default())
}

/// [`spmm`] with weights, `[nnz]`, in `x`'s dtype: `y[i] = Σ weights[e] x[j]`.
///
/// Gradients: `dx = Aᵀ dy`, `dweights[e] = dy[i] · x[j]`.
pub fn spmm_weighted(adjacency: &Adjacency, weights: Tensor<1>, x: Tensor<2>) -> Tensor<2> {
    let scaling = Scaling::default().with_weights(weights);
    product("spmm_weighted", adjacency, x, &scaling)
}

/// [`spmm`] with factors: `y[i] = rows[i] Σ weights[e] cols[j] x[j]`.
pub fn spmm_with(adjacency: &Adjacency, x: Tensor<2>, scaling: &Scaling) -> Tensor<2> {
    product("spmm_with", adjacency, x, scaling)
}

pub(super) fn product(
    operation: &str,
    adjacency: &Adjacency,
    x: Tensor<2>,
    scaling: &Scaling,
) -> Tensor<2> {
    check(operation, adjacency, &x);
    let factors = scaling.factors(operation, adjacency, x.dtype());
    let x = x.into_dispatch();
    Tensor::from_dispatch(<Dispatch as SpmmOps>::spmm(x, factors, adjacency.operator()))
}

/// [`spmm`] of `x.to_dense()`, without building it: SpGEMM of MaxK-GNN.
///
/// Deterministic per pattern, k, d and device. The gradient (SSpMM) covers selected columns and
/// passes through [`sparse_topk`](super::sparse_topk).
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::sparse::{Adjacency, Pattern, sparse_topk, spmm_compressed};
/// use sparsek::topk::Method;
///
/// let device = Device::flex();
/// let pattern = Pattern::new(2, 2, vec![0, 2, 3], vec![0, 1, 0]).unwrap();
/// let adjacency = Adjacency::new(&pattern, &device);
/// let x = Tensor::<2>::from_data([[1.0, 5.0, 3.0], [4.0, 2.0, 1.0]], &device);
/// let y = spmm_compressed(&adjacency, &sparse_topk(x, 1, Method::Exact));
/// let expected = TensorData::from([[4.0, 5.0, 0.0], [0.0, 5.0, 0.0]]);
/// y.into_data().assert_eq(&expected, false);
/// ```
pub fn spmm_compressed(adjacency: &Adjacency, x: &Compressed) -> Tensor<2> {
    compressed("spmm_compressed", adjacency, x, &Scaling::default())
}

/// [`spmm_compressed`] with factors, as [`spmm_with`].
pub fn spmm_compressed_with(adjacency: &Adjacency, x: &Compressed, scaling: &Scaling) -> Tensor<2> {
    compressed("spmm_compressed_with", adjacency, x, scaling)
}

fn compressed(
    operation: &str,
    adjacency: &Adjacency,
    x: &Compressed,
    scaling: &Scaling,
) -> Tensor<2> {
    check(operation, adjacency, x.values());
    let factors = scaling.factors(operation, adjacency, x.dtype());
    Tensor::from_dispatch(<Dispatch as SpmmOps>::spmm_compressed(
        x.values().clone().into_dispatch(),
        x.columns().clone().into_dispatch(),
        factors,
        adjacency.operator(),
        CompressedSpec { width: x.width(), block_columns: adjacency.block_columns() },
    ))
}

/// `y[i] = max x[j]` over entries `(i, j)`, per element.
///
/// Shapes as [`spmm`]; 0 in empty rows. Deterministic. The first of equal entries wins and gets the
/// gradient; NaN is unspecified.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::sparse::{Adjacency, Pattern, spmm_max};
///
/// let device = Device::flex();
/// let pattern = Pattern::new(2, 3, vec![0, 1, 3], vec![1, 0, 2]).unwrap();
/// let x = Tensor::<2>::from_data([[1.0], [2.0], [4.0]], &device);
/// let y = spmm_max(&Adjacency::new(&pattern, &device), x);
/// y.into_data().assert_eq(&TensorData::from([[2.0], [4.0]]), false);
/// ```
pub fn spmm_max(adjacency: &Adjacency, x: Tensor<2>) -> Tensor<2> {
    check("spmm_max", adjacency, &x);
    Tensor::from_dispatch(<Dispatch as SpmmOps>::spmm_max(x.into_dispatch(), adjacency.operator()))
}

/// `y[e] = left[i] · right[j]` for entries `e = (i, j)` (SDDMM).
///
/// `left`: `[rows, d]`; `right`: `[cols, d]`; `y`: `[nnz]`. Gradients: `dleft = A(dy) right`,
/// `dright = A(dy)ᵀ left`. Deterministic.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::sparse::{Adjacency, Pattern, sddmm};
///
/// let device = Device::flex();
/// let pattern = Pattern::new(2, 3, vec![0, 1, 3], vec![1, 0, 2]).unwrap();
/// let left = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &device);
/// let right = Tensor::<2>::from_data([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], &device);
/// let y = sddmm(&Adjacency::new(&pattern, &device), left, right);
/// y.into_data().assert_eq(&TensorData::from([3.0, 3.0, 4.0]), false);
/// ```
pub fn sddmm(adjacency: &Adjacency, left: Tensor<2>, right: Tensor<2>) -> Tensor<1> {
    check("sddmm", adjacency, &right);
    let ([rows, width], [_, expected]) = (left.dims(), right.dims());
    assert!(
        rows == adjacency.rows() && width == expected && left.dtype() == right.dtype(),
        "sddmm: left is {rows} × {width}, {:?}, but needs {} × {expected}, {:?}",
        left.dtype(),
        adjacency.rows(),
        right.dtype(),
    );
    let factors = Factors { weights: Factor::One, rows: Factor::One, cols: Factor::One };
    let (left, right) = (left.into_dispatch(), right.into_dispatch());
    let output = <Dispatch as SpmmOps>::sddmm(left, right, factors, adjacency.operator());
    Tensor::from_dispatch(output)
}

fn check(operation: &str, adjacency: &Adjacency, x: &Tensor<2>) {
    let [rows, _] = x.dims();
    assert!(
        rows == adjacency.cols(),
        "{operation}: x has {rows} rows, but the sparse matrix has {} columns",
        adjacency.cols(),
    );
    let dtype = x.dtype();
    assert!(
        matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16)
            && x.device().supports_dtype(dtype),
        "{operation}: dtype {dtype:?} is not supported here (supported: f32, f16, bf16, f64 where \
         the device has it)",
    );
}
