//! Top-k of ragged rows.

use burn::{
    backend::Dispatch,
    tensor::{AsIndex, DType, Int, IntDType, Tensor, kind::Ordered},
};
use sparsek_kernels::topk::TopkOptions;

use super::{
    error::{TopkError, or_panic},
    masks::masked,
    request::{LongRows, check},
    rows::{pairs, positions},
};
use crate::ops::{Lengths, TopkSpec};

/// [`topk`](super::topk) of the first `lengths` elements of each row; the others have no influence,
/// even if NaN.
///
/// `lengths` has the shape of `x` without `dim`, `[1]` for rank 1; i32, u32 or i64, clamped to
/// 0..=M. M is at most [`MAX_COLS`](super::MAX_COLS). Rows of length L select min(k, L) elements.
/// Unused slots come last, with value 0, index -1 (`u32::MAX` for u32) and no gradient. Costs one
/// more pass over the lengths.
///
/// # Panics
///
/// As [`topk`](super::topk), even if only k > M; also for other shapes or dtypes of `lengths`.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_ragged};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0], [4.0, f32::NAN, 8.0, 2.0]], &device);
/// let lengths = Tensor::<1, Int>::from_data([3, 1], &device);
/// let (values, indices) = topk_ragged(x, lengths, &TopkOptions::new(2), -1);
/// values.into_data().assert_eq(&TensorData::from([[9.0, 3.0], [4.0, 0.0]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[1, 2], [0, -1]]), false);
/// ```
#[track_caller]
pub fn topk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    lengths: Tensor<L, Int>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    or_panic("topk_ragged", try_topk_ragged(x, lengths, options, dim))
}

/// As [`topk_ragged`], with an error instead of a panic.
///
/// # Errors
///
/// [`TopkError`], before any launch.
pub fn try_topk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    lengths: Tensor<L, Int>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<(Tensor<D, K>, Tensor<D, Int>), TopkError> {
    let (lengths, dim, spec) = prepare(&x, lengths, options, dim)?;
    Ok(pairs(x, lengths, dim, spec))
}

/// Indices of [`topk_ragged`]. No gradient.
///
/// # Panics
///
/// As [`topk_ragged`].
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, argtopk_ragged};
///
/// let device = Device::flex();
/// let x = Tensor::<1>::from_data([0.5, -2.0, 3.0], &device);
/// let lengths = Tensor::<1, Int>::from_data([2], &device);
/// let greatest = argtopk_ragged(x, lengths, &TopkOptions::new(1), 0);
/// greatest.into_data().assert_eq(&TensorData::from([0]), false);
/// ```
#[track_caller]
pub fn argtopk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    lengths: Tensor<L, Int>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Tensor<D, Int> {
    or_panic("argtopk_ragged", try_argtopk_ragged(x, lengths, options, dim))
}

/// As [`argtopk_ragged`], with an error instead of a panic.
///
/// # Errors
///
/// [`TopkError`], before any launch.
pub fn try_argtopk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    lengths: Tensor<L, Int>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<Tensor<D, Int>, TopkError> {
    let (lengths, dim, spec) = prepare(&x, lengths, options, dim)?;
    Ok(positions(x, lengths, dim, spec))
}

/// Sets all but the selected elements of [`topk_ragged`] to `+0`, as
/// [`topk_mask`](super::topk_mask).
///
/// # Panics
///
/// As [`topk_ragged`].
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_mask_ragged};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0]], &device);
/// let lengths = Tensor::<1, Int>::from_data([3], &device);
/// let kept = topk_mask_ragged(x, lengths, &TopkOptions::new(2), -1);
/// kept.into_data().assert_eq(&TensorData::from([[0.0, 9.0, 3.0, 0.0]]), false);
/// ```
#[track_caller]
pub fn topk_mask_ragged<const D: usize, const L: usize>(
    x: Tensor<D>,
    lengths: Tensor<L, Int>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Tensor<D> {
    or_panic("topk_mask_ragged", try_topk_mask_ragged(x, lengths, options, dim))
}

/// As [`topk_mask_ragged`], with an error instead of a panic.
///
/// # Errors
///
/// [`TopkError`], before any launch.
pub fn try_topk_mask_ragged<const D: usize, const L: usize>(
    x: Tensor<D>,
    lengths: Tensor<L, Int>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<Tensor<D>, TopkError> {
    let (lengths, dim, spec) = prepare(&x, lengths, options, dim)?;
    Ok(masked(x, lengths, dim, spec))
}

/// Checks a request; clamps the lengths and orders them as rows with `dim` last.
fn prepare<const D: usize, const L: usize, K: Ordered>(
    x: &Tensor<D, K>,
    lengths: Tensor<L, Int>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<(Lengths<Dispatch>, usize, TopkSpec), TopkError> {
    let (dim, spec) = check(x, options, dim, LongRows::Refused)?;
    let mut shape = x.dims();
    let cols = shape[dim];
    shape[dim] = 1;
    let mut expected = shape.to_vec();
    if D > 1 {
        expected.remove(dim);
    }
    let found = lengths.dims().to_vec();
    if found != expected {
        return Err(TopkError::Lengths { found, expected, dim, shape: x.dims().to_vec() });
    }
    let dtype = lengths.dtype();
    if !matches!(dtype, DType::I32 | DType::U32 | DType::I64) {
        return Err(TopkError::LengthsDtype { dtype });
    }
    if lengths.shape().num_elements() == 0 {
        return Ok((Lengths::Whole, dim, spec));
    }
    let clamped = lengths.clamp(0, cols as i64).cast(IntDType::U32);
    let each = clamped.reshape(shape).swap_dims(dim, D - 1).into_dispatch();
    Ok((Lengths::Each(each), dim, spec))
}
