use burn::tensor::{AsIndex, Int, Tensor, kind::Ordered};
use sparsek_kernels::topk::TopkOptions;

use super::{
    ordered::{argsort, sort},
    rows::{argtopk, topk},
};

/// Burn's selections and sorts with [`topk`]'s contract; [`crate::prelude`] maps other libraries'
/// names.
///
/// Exact; selections are sorted best first, then by index. `dim` may be negative.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::prelude::*;
///
/// let x = Tensor::<2>::from_data([[12.0, -2.0, 3.0], [5.0, 3.0, 6.0]], &Device::flex());
/// let greatest = x.clone().topk_exact(2, 0);
/// greatest.into_data().assert_eq(&TensorData::from([[12.0, 3.0, 6.0], [5.0, -2.0, 3.0]]), false);
/// let (least, indices) = x.bottomk_with_indices_exact(1, -1);
/// least.into_data().assert_eq(&TensorData::from([[-2.0], [3.0]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[1], [1]]), false);
/// ```
pub trait TopkExt<const D: usize>: Sized {
    /// `k` greatest, descending: `[.., M, ..]` → `[.., k, ..]`.
    fn topk_exact(self, k: usize, dim: impl AsIndex) -> Self;

    /// [`topk_exact`](Self::topk_exact) with indices.
    fn topk_with_indices_exact(self, k: usize, dim: impl AsIndex) -> (Self, Tensor<D, Int>);

    /// Indices of [`topk_exact`](Self::topk_exact).
    fn argtopk_exact(self, k: usize, dim: impl AsIndex) -> Tensor<D, Int>;

    /// `k` least, ascending.
    fn bottomk_exact(self, k: usize, dim: impl AsIndex) -> Self;

    /// [`bottomk_exact`](Self::bottomk_exact) with indices.
    fn bottomk_with_indices_exact(self, k: usize, dim: impl AsIndex) -> (Self, Tensor<D, Int>);

    /// Indices of [`bottomk_exact`](Self::bottomk_exact).
    fn argbottomk_exact(self, k: usize, dim: impl AsIndex) -> Tensor<D, Int>;

    /// Stable ascending [`sort`].
    fn sort_exact(self, dim: impl AsIndex) -> Self;

    /// Stable descending [`sort`].
    fn sort_descending_exact(self, dim: impl AsIndex) -> Self;

    /// [`sort_exact`](Self::sort_exact) with indices.
    fn sort_with_indices_exact(self, dim: impl AsIndex) -> (Self, Tensor<D, Int>);

    /// [`sort_descending_exact`](Self::sort_descending_exact) with indices.
    fn sort_descending_with_indices_exact(self, dim: impl AsIndex) -> (Self, Tensor<D, Int>);

    /// Indices of [`sort_exact`](Self::sort_exact).
    fn argsort_exact(self, dim: impl AsIndex) -> Tensor<D, Int>;

    /// Indices of [`sort_descending_exact`](Self::sort_descending_exact).
    fn argsort_descending_exact(self, dim: impl AsIndex) -> Tensor<D, Int>;
}

fn greatest(k: usize) -> TopkOptions {
    TopkOptions::new(k).with_sorted(true)
}

fn least(k: usize) -> TopkOptions {
    greatest(k).with_largest(false)
}

impl<const D: usize, K: Ordered> TopkExt<D> for Tensor<D, K> {
    #[track_caller]
    fn topk_exact(self, k: usize, dim: impl AsIndex) -> Self {
        topk(self, &greatest(k), dim).0
    }

    #[track_caller]
    fn topk_with_indices_exact(self, k: usize, dim: impl AsIndex) -> (Self, Tensor<D, Int>) {
        topk(self, &greatest(k), dim)
    }

    #[track_caller]
    fn argtopk_exact(self, k: usize, dim: impl AsIndex) -> Tensor<D, Int> {
        argtopk(self, &greatest(k), dim)
    }

    #[track_caller]
    fn bottomk_exact(self, k: usize, dim: impl AsIndex) -> Self {
        topk(self, &least(k), dim).0
    }

    #[track_caller]
    fn bottomk_with_indices_exact(self, k: usize, dim: impl AsIndex) -> (Self, Tensor<D, Int>) {
        topk(self, &least(k), dim)
    }

    #[track_caller]
    fn argbottomk_exact(self, k: usize, dim: impl AsIndex) -> Tensor<D, Int> {
        argtopk(self, &least(k), dim)
    }

    #[track_caller]
    fn sort_exact(self, dim: impl AsIndex) -> Self {
        sort(self, dim, false).0
    }

    #[track_caller]
    fn sort_descending_exact(self, dim: impl AsIndex) -> Self {
        sort(self, dim, true).0
    }

    #[track_caller]
    fn sort_with_indices_exact(self, dim: impl AsIndex) -> (Self, Tensor<D, Int>) {
        sort(self, dim, false)
    }

    #[track_caller]
    fn sort_descending_with_indices_exact(self, dim: impl AsIndex) -> (Self, Tensor<D, Int>) {
        sort(self, dim, true)
    }

    #[track_caller]
    fn argsort_exact(self, dim: impl AsIndex) -> Tensor<D, Int> {
        argsort(self, dim, false)
    }

    #[track_caller]
    fn argsort_descending_exact(self, dim: impl AsIndex) -> Tensor<D, Int> {
        argsort(self, dim, true)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{Device, Float, TensorData};
    use rstest::rstest;

    use super::*;

    fn distinct<const D: usize, K: Ordered>(shape: [usize; D], device: &Device) -> Tensor<D, K> {
        let count: usize = shape.iter().product();
        let number = |i: usize| (i * 7919 % count) as i64 - (count / 2) as i64;
        let numbers: Vec<i64> = (0..count).map(number).collect();
        Tensor::from_data(TensorData::new(numbers, shape), device)
    }

    fn equal<const D: usize, K: Ordered>(found: Tensor<D, K>, expected: Tensor<D, K>) {
        found.into_data().assert_eq(&expected.into_data(), false);
    }

    fn as_burn<const D: usize, K: Ordered>(shape: [usize; D]) {
        let x = distinct::<D, K>(shape, &Device::flex());
        for (at, length) in shape.into_iter().enumerate() {
            for dim in [at as isize, at as isize - D as isize] {
                for k in [1, 2, length] {
                    let (values, indices) = x.clone().topk_with_indices(k, dim);
                    equal(x.clone().topk_exact(k, dim), x.clone().topk(k, dim));
                    equal(x.clone().argtopk_exact(k, dim), indices.clone());
                    let found = x.clone().topk_with_indices_exact(k, dim);
                    equal(found.0, values);
                    equal(found.1, indices);

                    let (values, indices) = x.clone().sort_with_indices(dim);
                    let values = values.narrow(dim, 0, k);
                    let indices = indices.narrow(dim, 0, k);
                    equal(x.clone().bottomk_exact(k, dim), values.clone());
                    equal(x.clone().argbottomk_exact(k, dim), indices.clone());
                    let found = x.clone().bottomk_with_indices_exact(k, dim);
                    equal(found.0, values);
                    equal(found.1, indices);
                }
                let (values, indices) = x.clone().sort_with_indices(dim);
                equal(x.clone().sort_exact(dim), x.clone().sort(dim));
                equal(x.clone().argsort_exact(dim), x.clone().argsort(dim));
                let found = x.clone().sort_with_indices_exact(dim);
                equal(found.0, values);
                equal(found.1, indices);
                let (values, indices) = x.clone().sort_descending_with_indices(dim);
                equal(x.clone().sort_descending_exact(dim), x.clone().sort_descending(dim));
                let found = x.clone().argsort_descending_exact(dim);
                equal(found, x.clone().argsort_descending(dim));
                let found = x.clone().sort_descending_with_indices_exact(dim);
                equal(found.0, values);
                equal(found.1, indices);
                if length > 1 {
                    // Burn's argtopk refuses k = M.
                    equal(x.clone().argtopk_exact(1, dim), x.clone().argtopk(1, dim));
                }
            }
        }
    }

    #[rstest]
    fn distinct_values_give_what_burn_gives() {
        as_burn::<1, Float>([33]);
        as_burn::<2, Float>([8, 13]);
        as_burn::<3, Float>([4, 7, 9]);
        as_burn::<4, Float>([3, 5, 2, 6]);
        as_burn::<1, Int>([40]);
        as_burn::<2, Int>([17, 6]);
        as_burn::<3, Int>([5, 4, 10]);
    }

    #[rstest]
    fn gradients_are_those_of_burn(#[values(-1, 0, 1)] dim: isize, #[values(1, 4, 6)] k: usize) {
        let device = Device::flex().autodiff();
        let x = || distinct::<2, Float>([6, 7], &device).require_grad();
        let gradient = |x: &Tensor<2>, values: Tensor<2>| {
            let cubes = values.clone() * values.clone() * values;
            x.grad(&cubes.sum().backward()).expect("a gradient")
        };
        let (ours, burns) = (x(), x());
        let found = gradient(&ours, ours.clone().topk_exact(k, dim));
        equal(found, gradient(&burns, burns.clone().topk(k, dim)));
        let (ours, burns) = (x(), x());
        let found = gradient(&ours, ours.clone().bottomk_exact(k, dim));
        let least = burns.clone().neg().topk(k, dim).neg();
        equal(found, gradient(&burns, least));
    }
}
