//! Top-k of ragged rows.

use burn::{
    backend::{Dispatch, tensor::IntTensor},
    tensor::{AsIndex, DType, Int, IntDType, Tensor, kind::Ordered},
};
use sparsek_kernels::topk::TopkOptions;

use super::{
    error::{TopkError, or_panic},
    masks::masked,
    request::{LongRows, check},
    rows::{pairs, positions},
};
use crate::ops::{Bounds, TopkSpec};

/// Which elements of each row exist: the first `lengths`, or those between `starts` and `ends`.
///
/// A tensor of lengths converts into it. Bounds have the shape of the rows without `dim`, `[1]` for
/// rank 1; i32, u32 or i64, clamped to 0..=M. A row whose start is not below its end is empty.
#[derive(Clone, Debug)]
pub struct RowBounds<const L: usize> {
    starts: Option<Tensor<L, Int>>,
    ends: Tensor<L, Int>,
}

impl<const L: usize> RowBounds<L> {
    /// Elements of the columns `starts..ends`, as windows of attention or packed sequences have.
    /// Indices count from column 0.
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor, TensorData};
    /// use sparsek::topk::{RowBounds, TopkOptions, topk_ragged};
    ///
    /// let device = Device::flex();
    /// let x = Tensor::<2>::from_data([[9.0, 1.0, 3.0, 7.0], [4.0, 8.0, 2.0, 6.0]], &device);
    /// let starts = Tensor::<1, Int>::from_data([1, 2], &device);
    /// let ends = Tensor::<1, Int>::from_data([3, 3], &device);
    /// let bounds = RowBounds::new(starts, ends);
    /// let (values, indices) = topk_ragged(x, bounds, &TopkOptions::new(2), -1);
    /// values.into_data().assert_eq(&TensorData::from([[1.0, 3.0], [2.0, 0.0]]), false);
    /// indices.into_data().assert_eq(&TensorData::from([[1, 2], [2, -1]]), false);
    /// ```
    pub fn new(starts: Tensor<L, Int>, ends: Tensor<L, Int>) -> Self {
        Self { starts: Some(starts), ends }
    }
}

impl<const L: usize> From<Tensor<L, Int>> for RowBounds<L> {
    fn from(lengths: Tensor<L, Int>) -> Self {
        Self { starts: None, ends: lengths }
    }
}

/// [`topk`](super::topk) of the elements of each row that exist: the first `lengths`, or those of
/// a [`RowBounds`]. The others have no influence, even if NaN.
///
/// M is at most [`MAX_COLS`](super::MAX_COLS). A row of L elements selects min(k, L). Unused slots
/// come last, with value 0, index -1 (`u32::MAX` for u32) and no gradient. Costs one more pass over
/// the bounds; with starts, rows are read by elements instead of vectors.
///
/// # Panics
///
/// As [`topk`](super::topk), even if only k > M; also for other shapes or dtypes of the bounds.
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
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    or_panic("topk_ragged", try_topk_ragged(x, bounds, options, dim))
}

/// As [`topk_ragged`], with an error instead of a panic.
///
/// # Errors
///
/// [`TopkError`], before any launch.
pub fn try_topk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<(Tensor<D, K>, Tensor<D, Int>), TopkError> {
    let (bounds, dim, spec) = prepare(&x, bounds.into(), options, dim)?;
    Ok(pairs(x, bounds, dim, spec))
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
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Tensor<D, Int> {
    or_panic("argtopk_ragged", try_argtopk_ragged(x, bounds, options, dim))
}

/// As [`argtopk_ragged`], with an error instead of a panic.
///
/// # Errors
///
/// [`TopkError`], before any launch.
pub fn try_argtopk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<Tensor<D, Int>, TopkError> {
    let (bounds, dim, spec) = prepare(&x, bounds.into(), options, dim)?;
    Ok(positions(x, bounds, dim, spec))
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
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Tensor<D> {
    or_panic("topk_mask_ragged", try_topk_mask_ragged(x, bounds, options, dim))
}

/// As [`topk_mask_ragged`], with an error instead of a panic.
///
/// # Errors
///
/// [`TopkError`], before any launch.
pub fn try_topk_mask_ragged<const D: usize, const L: usize>(
    x: Tensor<D>,
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<Tensor<D>, TopkError> {
    let (bounds, dim, spec) = prepare(&x, bounds.into(), options, dim)?;
    Ok(masked(x, bounds, dim, spec))
}

/// Checks a request; clamps the bounds and orders them as rows with `dim` last.
fn prepare<const D: usize, const L: usize, K: Ordered>(
    x: &Tensor<D, K>,
    bounds: RowBounds<L>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<(Bounds<Dispatch>, usize, TopkSpec), TopkError> {
    let (dim, spec) = check(x, options, dim, LongRows::Refused)?;
    let bounds = match bounds {
        RowBounds { starts: None, ends } => {
            let lengths = by_row(x, ends, "lengths", dim)?;
            lengths.map_or(Bounds::Whole, Bounds::Lengths)
        }
        RowBounds { starts: Some(starts), ends } => {
            let starts = by_row(x, starts, "starts", dim)?;
            let ends = by_row(x, ends, "ends", dim)?;
            let both = starts.zip(ends);
            both.map_or(Bounds::Whole, |(starts, ends)| Bounds::Between { starts, ends })
        }
    };
    Ok((bounds, dim, spec))
}

/// None if there are no rows.
fn by_row<const D: usize, const L: usize, K: Ordered>(
    x: &Tensor<D, K>,
    bounds: Tensor<L, Int>,
    name: &'static str,
    dim: usize,
) -> Result<Option<IntTensor<Dispatch>>, TopkError> {
    let mut shape = x.dims();
    let cols = shape[dim];
    shape[dim] = 1;
    let mut expected = shape.to_vec();
    if D > 1 {
        expected.remove(dim);
    }
    let found = bounds.dims().to_vec();
    if found != expected {
        return Err(TopkError::Bounds { name, found, expected, dim, shape: x.dims().to_vec() });
    }
    let dtype = bounds.dtype();
    if !matches!(dtype, DType::I32 | DType::U32 | DType::I64) {
        return Err(TopkError::BoundsDtype { name, dtype });
    }
    if bounds.shape().num_elements() == 0 {
        return Ok(None);
    }
    let clamped = bounds.clamp(0, cols as i64).cast(IntDType::U32);
    Ok(Some(clamped.reshape(shape).swap_dims(dim, D - 1).into_dispatch()))
}
