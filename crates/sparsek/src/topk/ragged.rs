//! Top-k of ragged rows, of each of which only the first elements exist.

use burn::{
    backend::Dispatch,
    tensor::{DType, Int, IntDType, Tensor, kind::Ordered},
};

use super::{TopkOptions, dimension, masked, pairs, positions};
use crate::ops::Lengths;

/// [`topk`](super::topk) of ragged rows: of each row only as many of its first elements exist as `lengths`
/// tells. What lies behind them, NaN and infinities included, has no influence.
///
/// # Shapes
///
/// - `x`: as in [`topk`](super::topk), `[.., M, ..]`.
/// - `lengths`: the shape of `x` without `options.dim`, or `[1]` where `x` has rank 1; i32, u32 or i64. A
///   negative length counts as 0, one above M as M.
/// - values and indices: `[.., k, ..]`, as in [`topk`](super::topk).
///
/// # Guarantees
///
/// A row of length L has min(k, L) members, by every method those of a row of just its L elements. The
/// k - min(k, L) slots that are left come last, sorted or not; their index is -1 (all bits set, `u32::MAX`
/// where indices are u32), their value 0. All else is as in [`topk`](super::topk), ties and repetition
/// included.
///
/// # Gradient
///
/// As of [`topk`](super::topk). Slots without a member give nothing, elements that do not exist get zero.
/// The lengths have no gradient.
///
/// # Cost
///
/// As of [`topk`](super::topk), with a pass over the lengths; rows too long for registers are read once
/// per search step.
///
/// # Panics
///
/// As [`topk`](super::topk), also if `k > M` and every row is shorter; if the shape or the dtype of `lengths`
/// is another.
///
/// # Example
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

/// The positions of the members of ragged rows: [`topk_ragged`] without the values.
///
/// Shapes, guarantees, cost and panics are those of [`topk_ragged`]; integers have no gradient.
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

/// [`topk_mask`](super::topk_mask) of ragged rows: everything but their members set to `+0`, also what does
/// not exist.
///
/// Members, `lengths` and panics are those of [`topk_ragged`], all else is as in
/// [`topk_mask`](super::topk_mask). The gradient of the members passes unchanged, that of all else is zero.
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

/// Checks the lengths, clamps them, and puts them in the order of the rows once the dimension is the last.
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
        "{operation}: the lengths have shape {:?} instead of {expected:?}, for dimension {dim} of shape {:?}",
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
