//! Top-k of ragged rows.

use burn::{
    backend::Dispatch,
    tensor::{DType, Int, IntDType, Tensor, kind::Ordered},
};

use super::{
    options::TopkOptions,
    rows::{dimension, masked, pairs, positions},
};
use crate::ops::Lengths;

/// [`topk`](super::topk) of the first `lengths` elements of each row; the others have no influence,
/// even if NaN.
///
/// `lengths` has the shape of `x` without `options.dim`, `[1]` for rank 1; i32, u32 or i64, clamped
/// to 0..=M. Rows of length L select min(k, L) elements. Unused slots come last, with value 0,
/// index -1 (`u32::MAX` for u32) and no gradient. Costs one more pass over the lengths. Panics as
/// [`topk`](super::topk), even if only `k > M`; also for other shapes or dtypes of `lengths`.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_ragged};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0], [4.0, f32::NAN, 8.0, 2.0]], &device);
/// let lengths = Tensor::<1, Int>::from_data([3, 1], &device);
/// let (values, indices) = topk_ragged(x, lengths, &TopkOptions::new(2));
/// values.into_data().assert_eq(&TensorData::from([[9.0, 3.0], [4.0, 0.0]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[1, 2], [0, -1]]), false);
/// ```
pub fn topk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    lengths: Tensor<L, Int>,
    options: &TopkOptions,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    let lengths = each("topk_ragged", &x, lengths, options);
    pairs("topk_ragged", x, lengths, options)
}

/// Indices of [`topk_ragged`]. No gradient.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, argtopk_ragged};
///
/// let device = Device::flex();
/// let x = Tensor::<1>::from_data([0.5, -2.0, 3.0], &device);
/// let lengths = Tensor::<1, Int>::from_data([2], &device);
/// let greatest = argtopk_ragged(x, lengths, &TopkOptions::new(1));
/// greatest.into_data().assert_eq(&TensorData::from([0]), false);
/// ```
pub fn argtopk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    lengths: Tensor<L, Int>,
    options: &TopkOptions,
) -> Tensor<D, Int> {
    let lengths = each("argtopk_ragged", &x, lengths, options);
    positions("argtopk_ragged", x, lengths, options)
}

/// Sets all but the selected elements of [`topk_ragged`] to `+0`, as
/// [`topk_mask`](super::topk_mask).
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_mask_ragged};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0]], &device);
/// let lengths = Tensor::<1, Int>::from_data([3], &device);
/// let kept = topk_mask_ragged(x, lengths, &TopkOptions::new(2));
/// kept.into_data().assert_eq(&TensorData::from([[0.0, 9.0, 3.0, 0.0]]), false);
/// ```
pub fn topk_mask_ragged<const D: usize, const L: usize>(
    x: Tensor<D>,
    lengths: Tensor<L, Int>,
    options: &TopkOptions,
) -> Tensor<D> {
    let lengths = each("topk_mask_ragged", &x, lengths, options);
    masked("topk_mask_ragged", x, lengths, options)
}

/// Checks and clamps lengths; orders them as rows with `dim` last.
fn each<const D: usize, const L: usize, K: Ordered>(
    operation: &str,
    x: &Tensor<D, K>,
    lengths: Tensor<L, Int>,
    options: &TopkOptions,
) -> Lengths<Dispatch> {
    let dim = dimension::<D>(operation, options);
    let mut shape = x.dims();
    let cols = shape[dim];
    shape[dim] = 1;
    let mut expected = shape.to_vec();
    if D > 1 {
        expected.remove(dim);
    }
    assert!(
        lengths.dims()[..] == expected,
        "{operation}: the lengths have shape {:?} instead of {expected:?}, for dimension {dim} of \
         shape {:?}",
        lengths.dims(),
        x.dims(),
    );
    let dtype = lengths.dtype();
    assert!(
        matches!(dtype, DType::I32 | DType::U32 | DType::I64),
        "{operation}: dtype {dtype:?} is not supported for lengths (supported: i32, u32, i64)",
    );
    if lengths.shape().num_elements() == 0 {
        return Lengths::Whole;
    }
    let clamped = lengths.clamp(0, cols as i64).cast(IntDType::U32);
    Lengths::Each(clamped.reshape(shape).swap_dims(dim, D - 1).into_dispatch())
}
