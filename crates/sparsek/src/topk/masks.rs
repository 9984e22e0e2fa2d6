use burn::{
    backend::Dispatch,
    tensor::{AsIndex, Bool, ElementConversion, Int, Tensor, kind::Ordered, ops::IndexingUpdateOp},
};
use sparsek_kernels::topk::MAX_COLS;

use super::{
    error::{TopkError, or_panic},
    rows::positions,
    ties::{RowOptions, Ties, check_rows},
};
use crate::ops::{Bounds, TopkOps, TopkSpec};

/// Sets all but the `k` greatest (or least) elements per row to `+0`, as in MaxK-GNN (Peng et al.,
/// 2024).
///
/// Selects as [`topk`](super::topk), ignoring [`sorted`](super::TopkOptions::sorted). A row over
/// [`MAX_COLS`] costs a [`topk_bool_mask`] and a pass.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_mask};
///
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0]], &Device::flex());
/// let kept = topk_mask(x, &TopkOptions::new(2), -1);
/// kept.into_data().assert_eq(&TensorData::from([[0.0, 9.0, 0.0, 7.0]]), false);
/// ```
#[track_caller]
pub fn topk_mask<const D: usize>(
    x: Tensor<D>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
) -> Tensor<D> {
    or_panic("topk_mask", try_topk_mask(x, options, dim))
}

/// Fallible [`topk_mask`].
pub fn try_topk_mask<const D: usize>(
    x: Tensor<D>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
) -> Result<Tensor<D>, TopkError> {
    let (ties, spec) = check_rows(&x, options, dim)?;
    if x.dims()[ties.dim] > MAX_COLS {
        let kept = marked(&x, &ties, spec);
        return Ok(filled(x, kept, 0.0));
    }
    Ok(ties.rows(masked(ties.rows(x), Bounds::Whole, ties.dim, spec)))
}

pub(super) fn masked<const D: usize>(
    x: Tensor<D>,
    bounds: Bounds<Dispatch>,
    dim: usize,
    spec: TopkSpec,
) -> Tensor<D> {
    let x = x.swap_dims(dim, D - 1).into_dispatch();
    let masked = <Dispatch as TopkOps>::topk_mask(x, bounds, spec);
    Tensor::<D>::from_dispatch(masked).swap_dims(dim, D - 1)
}

/// True at selected elements: `[.., M, ..]` → same shape.
///
/// Selects as [`argtopk`](super::argtopk), ignoring [`sorted`](super::TopkOptions::sorted). Costs a
/// selection, k-index scatter and M-integer comparison per row.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_bool_mask};
///
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0]], &Device::flex());
/// let kept = topk_bool_mask(x, &TopkOptions::new(2), -1);
/// kept.into_data().assert_eq(&TensorData::from([[false, true, false, true]]), false);
/// ```
#[track_caller]
pub fn topk_bool_mask<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
) -> Tensor<D, Bool> {
    or_panic("topk_bool_mask", try_topk_bool_mask(x, options, dim))
}

/// Fallible [`topk_bool_mask`].
pub fn try_topk_bool_mask<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
) -> Result<Tensor<D, Bool>, TopkError> {
    let (ties, spec) = check_rows(&x, options, dim)?;
    Ok(marked(&x, &ties, spec))
}

fn marked<const D: usize, K: Ordered>(
    x: &Tensor<D, K>,
    ties: &Ties,
    spec: TopkSpec,
) -> Tensor<D, Bool> {
    let shape = x.dims();
    if shape.contains(&0) {
        return Tensor::empty(shape, &x.device());
    }
    let by_index = TopkSpec { options: spec.options.with_sorted(false), ..spec };
    let indices = positions(ties.rows(x.clone()), Bounds::Whole, ties.dim, by_index);
    mask_at(ties.indices(indices), shape, ties.dim)
}

/// Requires distinct `indices` per row.
pub(crate) fn mask_at<const D: usize>(
    indices: Tensor<D, Int>,
    shape: [usize; D],
    dim: usize,
) -> Tensor<D, Bool> {
    let zeros = Tensor::zeros(shape, (&indices.device(), indices.dtype()));
    // Devices reject empty scatters.
    let counts = match indices.dims()[dim] {
        0 => zeros,
        _ => {
            let ones = indices.ones_like();
            zeros.scatter(dim, indices, ones, IndexingUpdateOp::Add)
        }
    };
    counts.greater_elem(0)
}

fn filled<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    kept: Tensor<D, Bool>,
    fill: impl ElementConversion,
) -> Tensor<D, K> {
    if x.dims().contains(&0) {
        return x;
    }
    x.mask_fill(kept.bool_not(), fill)
}

/// Sets all but the `k` greatest (or least) elements per row to `fill`.
///
/// Like [`topk_mask`](super::topk_mask), also for integers. Costs a [`topk_bool_mask`] and a pass;
/// for 0, prefer `topk_mask`.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData, activation::softmax};
/// use sparsek::topk::{TopkOptions, topk_mask_fill};
///
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 9.0]], &Device::flex());
/// let kept = topk_mask_fill(x, &TopkOptions::new(2), -1, f32::NEG_INFINITY);
/// softmax(kept, -1).into_data().assert_eq(&TensorData::from([[0.0, 0.5, 0.0, 0.5]]), false);
/// ```
#[track_caller]
pub fn topk_mask_fill<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
    fill: impl ElementConversion,
) -> Tensor<D, K> {
    or_panic("topk_mask_fill", try_topk_mask_fill(x, options, dim, fill))
}

/// Fallible [`topk_mask_fill`].
pub fn try_topk_mask_fill<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
    fill: impl ElementConversion,
) -> Result<Tensor<D, K>, TopkError> {
    let kept = try_topk_bool_mask(x.clone(), options, dim)?;
    Ok(filled(x, kept, fill))
}

/// Sets elements of `x` to `fill` unless their `scores` are the `k` greatest (or least) per row.
///
/// `scores`: shape and device of `x`, any [`topk`](super::topk) dtype, no gradient. Costs as
/// [`topk_mask_fill`].
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_mask_by};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0]], &device);
/// let ages = Tensor::<2, Int>::from_data([[8, 2, 5, 2]], &device);
/// let oldest = topk_mask_by(x, ages, &TopkOptions::new(2), -1, 0.0);
/// oldest.into_data().assert_eq(&TensorData::from([[1.0, 0.0, 3.0, 0.0]]), false);
/// ```
#[track_caller]
pub fn topk_mask_by<const D: usize, K: Ordered, S: Ordered>(
    x: Tensor<D, K>,
    scores: Tensor<D, S>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
    fill: impl ElementConversion,
) -> Tensor<D, K> {
    or_panic("topk_mask_by", try_topk_mask_by(x, scores, options, dim, fill))
}

/// Fallible [`topk_mask_by`].
pub fn try_topk_mask_by<const D: usize, K: Ordered, S: Ordered>(
    x: Tensor<D, K>,
    scores: Tensor<D, S>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
    fill: impl ElementConversion,
) -> Result<Tensor<D, K>, TopkError> {
    let (found, expected) = (scores.dims(), x.dims());
    if found != expected {
        return Err(TopkError::Scores { found: found.to_vec(), expected: expected.to_vec() });
    }
    let (found, expected) = (scores.device(), x.device());
    if found != expected {
        let [found, expected] = [found, expected].map(|device| format!("{device:?}"));
        return Err(TopkError::ScoresDevice { found, expected });
    }
    let kept = try_topk_bool_mask(scores, options, dim)?;
    Ok(filled(x, kept, fill))
}

/// Sets all but the `k` greatest (or least) magnitudes per row to `fill`.
///
/// [`topk_mask_by`] with |x|: equal magnitudes tie. Devices may flush subnormals. Flatten for
/// global pruning.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_mask_magnitude};
///
/// let weight = Tensor::<2>::from_data([[0.1, -4.0], [2.0, -0.5]], &Device::flex());
/// let all: Tensor<1> = weight.reshape([4]);
/// let pruned = topk_mask_magnitude(all, &TopkOptions::new(2), 0, 0.0).reshape([2, 2]);
/// pruned.into_data().assert_eq(&TensorData::from([[0.0, -4.0], [2.0, 0.0]]), false);
/// ```
#[track_caller]
pub fn topk_mask_magnitude<const D: usize>(
    x: Tensor<D>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
    fill: impl ElementConversion,
) -> Tensor<D> {
    or_panic("topk_mask_magnitude", try_topk_mask_magnitude(x, options, dim, fill))
}

/// Fallible [`topk_mask_magnitude`].
pub fn try_topk_mask_magnitude<const D: usize>(
    x: Tensor<D>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
    fill: impl ElementConversion,
) -> Result<Tensor<D>, TopkError> {
    let magnitudes = x.clone().without_autodiff().abs();
    try_topk_mask_by(x, magnitudes, options, dim, fill)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{DType, Device, Int, TensorCreationOptions, TensorData};
    use rstest::{fixture, rstest};
    use sparsek_kernels::topk::{Method, TopkOptions};

    use super::{super::rows::argtopk, *};

    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;

    #[fixture]
    fn device() -> Device {
        Device::flex()
    }

    fn rows<const N: usize>(rows: [[f32; N]; 3], device: &Device) -> Tensor<2> {
        Tensor::from_data(rows, device)
    }

    fn bits(x: Tensor<2>) -> Vec<u32> {
        x.into_data().iter::<f32>().map(f32::to_bits).collect()
    }

    fn truths<const D: usize>(mask: Tensor<D, Bool>) -> Vec<bool> {
        mask.into_data().iter::<bool>().collect()
    }

    fn selected(x: &Tensor<2>, options: &TopkOptions, dim: isize) -> Vec<bool> {
        let [height, width] = x.dims();
        let indices = argtopk(x.clone(), options, dim);
        let [_, across] = indices.dims();
        let mut marked = vec![false; height * width];
        for (i, index) in indices.into_data().iter::<i64>().enumerate() {
            let (row, column) = (i / across, i % across);
            let index = index as usize;
            let at = if dim == 0 { index * width + column } else { row * width + index };
            marked[at] = true;
        }
        marked
    }

    #[rstest]
    fn bool_masks_are_true_at_the_selected(
        device: Device,
        #[values(0, 1, 2, 3)] k: usize,
        #[values(0, -1)] dim: isize,
        #[values(true, false)] largest: bool,
        #[values(Method::Exact, Method::EarlyStop(2))] method: Method,
    ) {
        let x = [[1.0, NAN, 1.0, -0.0], [0.0, -INF, 1.0, INF], [NAN, NAN, 1.0, 0.0]];
        let x = rows(x, &device);
        let options = TopkOptions::new(k).with_largest(largest).with_method(method);
        let expected = selected(&x, &options, dim);
        let found = topk_bool_mask(x.clone(), &options, dim);
        assert_eq!(truths(found), expected);
        let found = topk_bool_mask(x.clone(), &options.with_sorted(true), dim);
        assert_eq!(truths(found), expected);

        let kept = |fill: f32| {
            let each = x.to_data();
            let each = each.iter::<f32>().zip(&expected);
            each.map(|(x, &kept)| if kept { x } else { fill }.to_bits()).collect::<Vec<_>>()
        };
        for fill in [0.0, -0.0, -1.5, -INF, INF] {
            assert_eq!(bits(topk_mask_fill(x.clone(), &options, dim, fill)), kept(fill));
        }
        assert_eq!(bits(topk_mask(x.clone(), &options, dim)), kept(0.0));
    }

    #[rstest]
    fn magnitudes_and_scores_select(device: Device) {
        let x = [[1.0, -3.0, 3.0, -0.5], [-0.0, 0.0, -2.0, -INF], [NAN, 5.0, -7.0, 6.0]];
        let x = rows(x, &device);
        let two = TopkOptions::new(2);
        let expected = [[9.0, -3.0, 3.0, 9.0], [9.0, 9.0, -2.0, -INF], [NAN, 9.0, -7.0, 9.0]];
        let expected = bits(rows(expected, &device));
        assert_eq!(bits(topk_mask_magnitude(x.clone(), &two, 1, 9.0)), expected);
        let least = two.with_largest(false);
        let expected = [[1.0, 9.0, 9.0, -0.5], [-0.0, 0.0, 9.0, 9.0], [9.0, 5.0, 9.0, 6.0]];
        let expected = bits(rows(expected, &device));
        assert_eq!(bits(topk_mask_magnitude(x.clone(), &least, 1, 9.0)), expected);

        let scores = [[0, 5, 5, 5], [-1, -2, -3, -4], [7, 8, 7, 7]];
        let scores = Tensor::<2, Int>::from_data(scores, &device);
        let expected = [[9.0, -3.0, 3.0, 9.0], [-0.0, 0.0, 9.0, 9.0], [NAN, 5.0, 9.0, 9.0]];
        let expected = bits(rows(expected, &device));
        assert_eq!(bits(topk_mask_by(x, scores, &two, -1, 9.0)), expected);
    }

    #[rstest]
    fn integers_are_filled(device: Device) {
        let x = Tensor::<1, Int>::from_data([3, 1, 4, 1, 5], &device);
        let kept = topk_mask_fill(x, &TopkOptions::new(2), 0, -1);
        kept.into_data().assert_eq(&TensorData::from([-1, -1, 4, -1, 5]), false);
    }

    #[rstest]
    fn gradients_pass_to_the_selected_only(device: Device) {
        let device = device.autodiff();
        let x = || rows([[1.0, -3.0, 0.0], [2.0, -5.0, 4.0], [0.0, 0.0, 0.0]], &device);
        let weights = || rows([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]], &device);
        let two = TopkOptions::new(2);
        let gradient = |mask: &dyn Fn(Tensor<2>) -> Tensor<2>| {
            let x = x().require_grad();
            let loss = (mask(x.clone()) * weights()).sum();
            bits(x.grad(&loss.backward()).expect("a gradient"))
        };
        let expected = |values| bits(rows(values, &device.clone().inner()));
        let by_value = expected([[1.0, 0.0, 3.0], [4.0, 0.0, 6.0], [7.0, 8.0, 0.0]]);
        assert_eq!(gradient(&|x| topk_mask_fill(x, &two, 1, -2.0)), by_value);
        let by_magnitude = expected([[1.0, 2.0, 0.0], [0.0, 5.0, 6.0], [7.0, 8.0, 0.0]]);
        assert_eq!(gradient(&|x| topk_mask_magnitude(x, &two, 1, 7.0)), by_magnitude);
        let by_weight = expected([[0.0, 2.0, 3.0], [0.0, 5.0, 6.0], [0.0, 8.0, 9.0]]);
        assert_eq!(gradient(&|x| topk_mask_by(x, weights(), &two, 1, 7.0)), by_weight);
        let plain = weights().inner();
        assert_eq!(gradient(&|x| topk_mask_by(x, plain.clone(), &two, 1, 7.0)), by_weight);
    }

    #[rstest]
    fn empty_tensors_work(device: Device, #[values([0, 3], [3, 0])] shape: [usize; 2]) {
        let x = Tensor::<2>::zeros(shape, &device);
        let mask = topk_bool_mask(x.clone(), &TopkOptions::new(0), -1);
        assert_eq!(mask.dims(), shape);
        assert_eq!(topk_mask_fill(x, &TopkOptions::new(0), -1, 1.0).dims(), shape);
    }

    #[rstest]
    fn one_long_row_is_masked(device: Device) {
        let length = MAX_COLS + 3;
        let short = Tensor::<1>::zeros([length - 3], &device);
        let last = Tensor::<1>::from_data([2.0, -0.0, 1.0], &device);
        let x = Tensor::cat(vec![short, last], 0).autodiff().require_grad();
        let y = topk_mask(x.clone(), &TopkOptions::new(2), 0);
        let gradient = x.grad(&(y.clone() * 3.0).sum().backward()).expect("a gradient");
        let tail = |x: Tensor<1>| x.slice(length - 4..length).into_data();
        tail(y.clone()).assert_eq(&TensorData::from([0.0, 2.0, 0.0, 1.0]), false);
        tail(gradient.clone()).assert_eq(&TensorData::from([0.0, 3.0, 0.0, 3.0]), false);
        let sum = |x: Tensor<1>| x.sum().into_scalar::<f32>();
        assert_eq!((sum(y), sum(gradient)), (3.0, 6.0));
    }

    #[rstest]
    fn scores_that_do_not_fit_are_refused(device: Device) {
        let x = Tensor::<1>::zeros([3], &device);
        let one = TopkOptions::new(1);
        let short = Tensor::<1>::zeros([2], &device);
        let found = try_topk_mask_by(x.clone(), short, &one, 0, 0.0).unwrap_err();
        assert_eq!(found, TopkError::Scores { found: vec![2], expected: vec![3] });
        let words = TensorCreationOptions::new(device).with_dtype(DType::U64);
        let words = Tensor::<1, Int>::zeros([3], words);
        let found = try_topk_mask_by(x, words, &one, 0, 0.0).unwrap_err();
        assert_eq!(found, TopkError::Dtype { dtype: DType::U64 });
    }
}
