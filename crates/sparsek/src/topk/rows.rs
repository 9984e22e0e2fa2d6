use burn::{
    backend::Dispatch,
    tensor::{AsIndex, Int, Tensor, kind::Ordered},
};

use super::{
    error::{TopkError, or_panic},
    small_int::{from_i32, to_i32},
    ties::{RowOptions, check_rows},
};
use crate::ops::{Bounds, TopkOps, TopkSpec};

/// `k` greatest (or least) elements per row and their indices, exact or by RTop-K (Xie et al.,
/// 2025; deviations in `docs/papers.md`).
///
/// # Shapes
///
/// - `x`: `[.., M, ..]`, M along `dim`, ≤ [`MAX_COLS`](super::MAX_COLS) except a single row by the
///   exact method; f32, f16, bf16, f64, i32, u32, i64, i8, i16, u8 or u16.
/// - `dim`: negative values count from the end.
/// - values, indices: `[.., k, ..]`, in `x`'s dtype and the default integer dtype.
///
/// # Guarantees
///
/// Exactly k distinct elements, by index, or by value then index. `-0 = +0`; NaN is greatest. Ties
/// go to the lowest index, or the highest by [`RowOptions`]. Deterministic; see
/// `docs/guarantees.md`. Gradients reach selected elements.
///
/// # Cost
///
/// With planes, one read of rows up to 32 elements per unit (1024 on CUDA), else one per search
/// step. On GPUs, one row over 2^15 elements, or a few over 2^20: one read and about sqrt(k M)
/// elements.
///
/// Panics with a [`TopkError`], such as k > M.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0], [4.0, 4.0, 8.0, 2.0]], &device);
/// let (values, indices) = topk(x, &TopkOptions::new(2), -1);
/// values.into_data().assert_eq(&TensorData::from([[9.0, 7.0], [4.0, 8.0]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[1, 3], [0, 2]]), false);
/// ```
#[track_caller]
pub fn topk<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    or_panic("topk", try_topk(x, options, dim))
}

/// Fallible [`topk`].
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use sparsek::topk::{TopkError, TopkOptions, try_topk};
///
/// let x = Tensor::<1>::from_data([0.5, -2.0, 3.0], &Device::flex());
/// let error = try_topk(x, &TopkOptions::new(4), 0).unwrap_err();
/// assert!(matches!(error, TopkError::KTooLarge { k: 4, cols: 3, .. }));
/// ```
pub fn try_topk<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
) -> Result<(Tensor<D, K>, Tensor<D, Int>), TopkError> {
    let (ties, spec) = check_rows(&x, options, dim)?;
    let (values, indices) = pairs(ties.rows(x), Bounds::Whole, ties.dim, spec);
    Ok((ties.selected(values), ties.indices(indices)))
}

pub(super) fn pairs<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    bounds: Bounds<Dispatch>,
    dim: usize,
    spec: TopkSpec,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    let (values, indices) = select(x.swap_dims(dim, D - 1), bounds, spec);
    (values.swap_dims(dim, D - 1), indices.swap_dims(dim, D - 1))
}

pub(super) fn select<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    bounds: Bounds<Dispatch>,
    spec: TopkSpec,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    let dtype = x.dtype();
    let (values, indices) = if dtype.is_float() {
        <Dispatch as TopkOps>::topk_float(x.into_dispatch(), bounds, spec)
    } else {
        let (values, indices) = <Dispatch as TopkOps>::topk_int(to_i32(x), bounds, spec);
        (from_i32(values, dtype), indices)
    };
    (Tensor::<D, K>::from_dispatch(values), Tensor::<D, Int>::from_dispatch(indices))
}

/// Indices of [`topk`].
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, argtopk};
///
/// let x = Tensor::<1>::from_data([0.5, -2.0, 3.0], &Device::flex());
/// let least = argtopk(x, &TopkOptions::new(1).with_largest(false), 0);
/// least.into_data().assert_eq(&TensorData::from([1]), false);
/// ```
#[track_caller]
pub fn argtopk<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
) -> Tensor<D, Int> {
    or_panic("argtopk", try_argtopk(x, options, dim))
}

/// Fallible [`argtopk`].
pub fn try_argtopk<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
) -> Result<Tensor<D, Int>, TopkError> {
    let (ties, spec) = check_rows(&x, options, dim)?;
    Ok(ties.indices(positions(ties.rows(x), Bounds::Whole, ties.dim, spec)))
}

pub(super) fn positions<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    bounds: Bounds<Dispatch>,
    dim: usize,
    spec: TopkSpec,
) -> Tensor<D, Int> {
    let x = x.swap_dims(dim, D - 1);
    let indices = if x.dtype().is_float() {
        <Dispatch as TopkOps>::argtopk_float(x.into_dispatch(), bounds, spec)
    } else {
        <Dispatch as TopkOps>::argtopk_int(to_i32(x), bounds, spec)
    };
    Tensor::<D, Int>::from_dispatch(indices).swap_dims(dim, D - 1)
}
