use burn::tensor::{AsIndex, Int, Tensor, kind::Ordered};
use sparsek_kernels::topk::TopkOptions;

use super::{
    error::{TopkError, or_panic},
    request::{LongRows, check, dimension},
    rows::{pairs, positions},
};
use crate::ops::Bounds;

/// `k`-th greatest (or least) element per row and its index: `[.., M, ..]` → `[.., 1, ..]`.
///
/// Last element of a sorted [`topk`](super::topk), with its ties and cost. Ignores
/// [`sorted`](TopkOptions::sorted). `torch.kthvalue` takes the k-th least, with unspecified ties.
///
/// Panics also for k = 0.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, kthvalue};
///
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 9.0]], &Device::flex());
/// let (value, index) = kthvalue(x, &TopkOptions::new(2), -1);
/// value.into_data().assert_eq(&TensorData::from([[9.0]]), false);
/// index.into_data().assert_eq(&TensorData::from([[3]]), false);
/// ```
#[track_caller]
pub fn kthvalue<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    or_panic("kthvalue", try_kthvalue(x, options, dim))
}

/// Fallible [`kthvalue`].
pub fn try_kthvalue<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<(Tensor<D, K>, Tensor<D, Int>), TopkError> {
    let k = options.k;
    let (dim, spec) = check(&x, &options.with_sorted(true), dim, LongRows::One)?;
    let last = k.checked_sub(1).ok_or(TopkError::NoKth)?;
    let (values, indices) = pairs(x, Bounds::Whole, dim, spec);
    Ok((values.narrow(dim, last, 1), indices.narrow(dim, last, 1)))
}

/// Sorts each row stably: values and indices, `[.., M, ..]` each.
///
/// Dtypes and limits as [`topk`](super::topk); NaN is greatest. Burn's `sort_with_indices` is
/// unstable.
///
/// Rows over 512 use radix sort: one launch to 4096 elements (2048 of 64 bits), else three per 8
/// bits, with 16 bytes of scratch per element (24 of 64 bits). Without planes, log² M launches.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::sort;
///
/// let x = Tensor::<1>::from_data([3.0, 1.0, 3.0, 2.0], &Device::flex());
/// let (values, indices) = sort(x, 0, true);
/// values.into_data().assert_eq(&TensorData::from([3.0, 3.0, 2.0, 1.0]), false);
/// indices.into_data().assert_eq(&TensorData::from([0, 2, 3, 1]), false);
/// ```
#[track_caller]
pub fn sort<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    dim: impl AsIndex,
    descending: bool,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    or_panic("sort", try_sort(x, dim, descending))
}

/// Fallible [`sort`].
pub fn try_sort<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    dim: impl AsIndex,
    descending: bool,
) -> Result<(Tensor<D, K>, Tensor<D, Int>), TopkError> {
    let (dim, spec) = check(&x, &all(&x, dim, descending)?, dim, LongRows::One)?;
    Ok(pairs(x, Bounds::Whole, dim, spec))
}

/// Indices of [`sort`].
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::argsort;
///
/// let x = Tensor::<1>::from_data([3.0, 1.0, 3.0, 2.0], &Device::flex());
/// argsort(x, 0, false).into_data().assert_eq(&TensorData::from([1, 3, 0, 2]), false);
/// ```
#[track_caller]
pub fn argsort<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    dim: impl AsIndex,
    descending: bool,
) -> Tensor<D, Int> {
    or_panic("argsort", try_argsort(x, dim, descending))
}

/// Fallible [`argsort`].
pub fn try_argsort<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    dim: impl AsIndex,
    descending: bool,
) -> Result<Tensor<D, Int>, TopkError> {
    let (dim, spec) = check(&x, &all(&x, dim, descending)?, dim, LongRows::One)?;
    Ok(positions(x, Bounds::Whole, dim, spec))
}

fn all<const D: usize, K: Ordered>(
    x: &Tensor<D, K>,
    dim: impl AsIndex,
    descending: bool,
) -> Result<TopkOptions, TopkError> {
    let length = x.dims()[dimension::<D>(dim)?];
    Ok(TopkOptions::new(length).with_largest(descending).with_sorted(true))
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{Device, TensorData};
    use rstest::{fixture, rstest};
    use sparsek_kernels::topk::Method;

    use super::*;

    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    const ROWS: [[f32; 7]; 3] =
        [[1.0, NAN, 1.0, -0.0, 0.0, -INF, 2.0], [5.0; 7], [INF, NAN, -2.0, NAN, 4.0, -2.0, 4.0]];

    #[fixture]
    fn device() -> Device {
        Device::flex()
    }

    fn order(row: &[f32], descending: bool) -> Vec<usize> {
        let mut order: Vec<usize> = (0..row.len()).collect();
        let greater = |a: f32, b: f32| match (a.is_nan(), b.is_nan()) {
            (false, false) => a.partial_cmp(&b).expect("ordered"),
            (a, b) => a.cmp(&b),
        };
        match descending {
            true => order.sort_by(|&i, &j| greater(row[j], row[i])),
            false => order.sort_by(|&i, &j| greater(row[i], row[j])),
        }
        order
    }

    fn places<const D: usize>(indices: Tensor<D, Int>) -> Vec<usize> {
        indices.into_data().iter::<i64>().map(|at| at as usize).collect()
    }

    fn bits<const D: usize>(x: Tensor<D>) -> Vec<u32> {
        x.into_data().iter::<f32>().map(f32::to_bits).collect()
    }

    #[rstest]
    fn rows_are_sorted_stably(device: Device, #[values(true, false)] descending: bool) {
        let x = Tensor::<2>::from_data(ROWS, &device);
        let orders = ROWS.map(|row| order(&row, descending));
        let expected: Vec<usize> = orders.iter().flatten().copied().collect();
        let sorted = ROWS.iter().zip(&orders);
        let sorted: Vec<u32> =
            sorted.flat_map(|(row, order)| order.iter().map(|&at| row[at].to_bits())).collect();
        let (values, indices) = sort(x.clone(), -1, descending);
        assert_eq!(places(indices), expected);
        assert_eq!(bits(values), sorted);
        assert_eq!(places(argsort(x.clone(), 1, descending)), expected);

        let (values, indices) = sort(x.clone().transpose(), 0, descending);
        assert_eq!(places(indices.transpose()), expected);
        assert_eq!(bits(values.transpose()), sorted);
        assert_eq!(places(argsort(x.transpose(), -2, descending).transpose()), expected);
    }

    #[rstest]
    fn kth_values_are_those_of_the_sorted_row(
        device: Device,
        #[values(1, 3, 7)] k: usize,
        #[values(true, false)] largest: bool,
        #[values(true, false)] sorted: bool,
    ) {
        let x = Tensor::<2>::from_data(ROWS, &device);
        let options = TopkOptions::new(k).with_largest(largest).with_sorted(sorted);
        let (values, indices) = kthvalue(x, &options, 1);
        assert_eq!((values.dims(), indices.dims()), ([3, 1], [3, 1]));
        let expected = ROWS.map(|row| order(&row, largest)[k - 1]);
        assert_eq!(places(indices), expected);
        let expected = [0, 1, 2].map(|row| ROWS[row][expected[row]].to_bits());
        assert_eq!(bits(values), expected);
    }

    #[rstest]
    fn integers_are_sorted(device: Device) {
        let x = Tensor::<1, Int>::from_data([3, -1, 3, i32::MIN, i32::MAX], &device);
        let (values, indices) = sort(x.clone(), 0, false);
        let expected = TensorData::from([i32::MIN, -1, 3, 3, i32::MAX]);
        values.into_data().assert_eq(&expected, false);
        assert_eq!(places(indices), [3, 1, 0, 2, 4]);
        let (value, index) = kthvalue(x, &TopkOptions::new(2), 0);
        value.into_data().assert_eq(&TensorData::from([3]), false);
        assert_eq!(places(index), [0]);
    }

    #[rstest]
    fn gradients_return_to_their_elements(device: Device) {
        let device = device.autodiff();
        let x = || Tensor::<1>::from_data([2.0, 7.0, 2.0, -1.0], &device).require_grad();
        let weights = Tensor::<1>::from_data([10.0, 20.0, 30.0, 40.0], &device);
        let sorted = x();
        let (values, _) = sort(sorted.clone(), 0, false);
        let gradient = sorted.grad(&(values * weights).sum().backward()).expect("a gradient");
        gradient.into_data().assert_eq(&TensorData::from([20.0, 40.0, 30.0, 10.0]), false);
        let kth = x();
        let (value, _) = kthvalue(kth.clone(), &TopkOptions::new(3), 0);
        let gradient = kth.grad(&(value * 5.0).sum().backward()).expect("a gradient");
        gradient.into_data().assert_eq(&TensorData::from([0.0, 0.0, 5.0, 0.0]), false);
    }

    #[rstest]
    fn requests_that_do_not_fit_are_refused(device: Device) {
        let x = Tensor::<1>::from_data([2.0, 7.0], &device);
        let kth = |options: TopkOptions| try_kthvalue(x.clone(), &options, 0).unwrap_err();
        assert_eq!(kth(TopkOptions::new(0)), TopkError::NoKth);
        assert!(matches!(kth(TopkOptions::new(3)), TopkError::KTooLarge { k: 3, cols: 2, .. }));
        let eps = TopkOptions::new(1).with_method(Method::Precision(-1.0));
        assert_eq!(kth(eps), TopkError::Precision { eps: -1.0 });
        let dimension = TopkError::Dimension { dim: 1, rank: 1 };
        assert_eq!(try_sort(x.clone(), 1, false).unwrap_err(), dimension);
        assert_eq!(try_argsort(x.clone(), 1, false).unwrap_err(), dimension);
        let empty = Tensor::<2>::zeros([2, 0], &device);
        assert_eq!(sort(empty, 1, false).0.dims(), [2, 0]);
    }
}
