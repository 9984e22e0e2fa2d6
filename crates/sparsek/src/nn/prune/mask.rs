use burn::tensor::{Bool, Tensor};

use crate::topk::{TopkOptions, topk_bool_mask};

/// Elements to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kept {
    /// Number.
    Count(usize),
    /// Share in `[0, 1]`, rounded to nearest.
    Share(f64),
}

impl Kept {
    fn of(self, operation: &str, length: usize) -> usize {
        match self {
            Self::Count(count) => {
                assert!(count <= length, "{operation}: keeps {count} of {length} elements");
                count
            }
            Self::Share(share) => {
                assert!(
                    (0.0..=1.0).contains(&share),
                    "{operation}: keeps a share of {share}, outside [0, 1]"
                );
                (share * length as f64).round() as usize
            }
        }
    }
}

/// True at the tensor's greatest magnitudes; same shape. Han et al., 2015.
///
/// Panics if more is kept than exists, or a share is outside `[0, 1]`.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::nn::{Kept, magnitude_mask};
///
/// let weight = Tensor::<2>::from_floats([[0.1, -4.0], [2.0, -0.5]], &Device::flex());
/// let mask = magnitude_mask(weight, Kept::Share(0.5));
/// mask.into_data().assert_eq(&TensorData::from([[false, true], [true, false]]), false);
/// # }
/// ```
pub fn magnitude_mask<const D: usize>(weight: Tensor<D>, kept: Kept) -> Tensor<D, Bool> {
    let shape = weight.dims();
    let length = shape.iter().product();
    let k = kept.of("magnitude_mask", length);
    if length == 0 {
        return Tensor::empty(shape, &weight.device());
    }
    let rows: Tensor<2> = weight.detach().abs().reshape([1, length]);
    topk_bool_mask(rows, &TopkOptions::new(k), 1).reshape(shape)
}

/// True at each row's greatest magnitudes along `dim`; same shape.
///
/// Negative `dim` counts from the end; 0 takes the inputs of each output of Burn's `Linear`. Panics
/// as [`magnitude_mask`], if `dim` is out of range, or several rows exceed
/// [`MAX_COLS`](crate::topk::MAX_COLS).
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::nn::{Kept, magnitude_mask_rows};
///
/// let weight = Tensor::<2>::from_floats([[0.1, -4.0], [2.0, -5.0]], &Device::flex());
/// let mask = magnitude_mask_rows(weight, Kept::Count(1), 0);
/// mask.into_data().assert_eq(&TensorData::from([[false, false], [true, true]]), false);
/// # }
/// ```
pub fn magnitude_mask_rows<const D: usize>(
    weight: Tensor<D>,
    kept: Kept,
    dim: isize,
) -> Tensor<D, Bool> {
    let length = weight.dims()[dimension::<D>("magnitude_mask_rows", dim)];
    let k = kept.of("magnitude_mask_rows", length);
    blocks("magnitude_mask_rows", weight, length, k, dim)
}

/// True at the n greatest magnitudes of each m neighbors along `dim`; same shape.
///
/// Sparse tensor cores take 2:4 along a product's inner dimension, 0 in Burn's `Linear`. Panics if
/// m is 0, `n > m`, m does not divide the length, or `dim` is out of range. Mishra et al., 2021;
/// Zhou et al., 2021.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::nn::n_of_m_mask;
///
/// let weight = [1.0, -3.0, 2.0, 0.5, 9.0, 8.0, 7.0, 6.0];
/// let weight = Tensor::<1>::from_floats(weight, &Device::flex());
/// let mask = n_of_m_mask(weight, 2, 4, 0).int();
/// mask.into_data().assert_eq(&TensorData::from([0, 1, 1, 0, 1, 1, 0, 0]), false);
/// # }
/// ```
pub fn n_of_m_mask<const D: usize>(
    weight: Tensor<D>,
    n: usize,
    m: usize,
    dim: isize,
) -> Tensor<D, Bool> {
    let length = weight.dims()[dimension::<D>("n_of_m_mask", dim)];
    assert!(n <= m && m > 0, "n_of_m_mask: keeps {n} of {m} elements");
    assert!(length.is_multiple_of(m), "n_of_m_mask: {m} does not divide {length} elements");
    blocks("n_of_m_mask", weight, m, n, dim)
}

fn blocks<const D: usize>(
    operation: &str,
    weight: Tensor<D>,
    block: usize,
    k: usize,
    dim: isize,
) -> Tensor<D, Bool> {
    let dim = dimension::<D>(operation, dim);
    let last = weight.detach().abs().swap_dims(dim, D - 1);
    let shape = last.dims();
    if shape.contains(&0) {
        return Tensor::empty(shape, &last.device()).swap_dims(dim, D - 1);
    }
    let count = shape.iter().product::<usize>() / block;
    let rows: Tensor<2> = last.reshape([count, block]);
    topk_bool_mask(rows, &TopkOptions::new(k), 1).reshape(shape).swap_dims(dim, D - 1)
}

fn dimension<const D: usize>(operation: &str, dim: isize) -> usize {
    let rank = D as isize;
    assert!(
        (-rank..rank).contains(&dim),
        "{operation}: dimension {dim} is out of range for a tensor of rank {D}"
    );
    dim.rem_euclid(rank) as usize
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::Device;
    use rstest::rstest;

    use super::*;
    use crate::nn::fixtures::{device, random, tensor};

    const SHAPE: [usize; 3] = [2, 12, 4];

    /// Few distinct magnitudes, so ties occur.
    fn weights() -> Vec<f64> {
        let all = random(SHAPE.iter().product(), 7);
        all.into_iter().map(|x| (3.0 * x).round()).collect()
    }

    fn mark(mask: &mut [bool], x: &[f64], places: &[usize], k: usize) {
        let mut order = places.to_vec();
        order.sort_by(|&a, &b| x[b].abs().total_cmp(&x[a].abs()).then(a.cmp(&b)));
        for &place in &order[..k] {
            mask[place] = true;
        }
    }

    fn rows(dim: usize) -> Vec<Vec<usize>> {
        let stride: usize = SHAPE[dim + 1..].iter().product();
        let first = |&place: &usize| (place / stride).is_multiple_of(SHAPE[dim]);
        let starts = (0..SHAPE.iter().product()).filter(first);
        starts.map(|start| (0..SHAPE[dim]).map(|i| start + i * stride).collect()).collect()
    }

    fn truths(mask: Tensor<3, Bool>) -> Vec<bool> {
        mask.try_into_vec_as::<bool>().unwrap()
    }

    #[rstest]
    fn the_greatest_magnitudes_of_a_tensor_stay(
        device: Device,
        #[values(Kept::Count(0), Kept::Count(13), Kept::Share(0.3), Kept::Share(1.0))] kept: Kept,
    ) {
        let x = weights();
        let k = match kept {
            Kept::Count(k) => k,
            Kept::Share(share) => (share * x.len() as f64).round() as usize,
        };
        let mut expected = vec![false; x.len()];
        mark(&mut expected, &x, &(0..x.len()).collect::<Vec<_>>(), k);
        let found = magnitude_mask(tensor(&x, SHAPE, &device).require_grad(), kept);
        assert_eq!(truths(found), expected);
    }

    #[rstest]
    fn the_greatest_magnitudes_of_rows_and_blocks_stay(
        device: Device,
        #[values(0, 1, 2)] dim: usize,
        #[values(true, false)] negative: bool,
    ) {
        let x = weights();
        let axis = if negative { dim as isize - 3 } else { dim as isize };
        for k in 0..=SHAPE[dim] {
            let mut expected = vec![false; x.len()];
            rows(dim).iter().for_each(|row| mark(&mut expected, &x, row, k));
            let found = magnitude_mask_rows(tensor(&x, SHAPE, &device), Kept::Count(k), axis);
            assert_eq!(truths(found), expected, "{k}");
        }
        for (n, m) in [(1, 2), (2, 4), (0, 4), (4, 4), (1, 3), (5, 6)] {
            if !SHAPE[dim].is_multiple_of(m) {
                continue;
            }
            let mut expected = vec![false; x.len()];
            for row in rows(dim) {
                row.chunks(m).for_each(|block| mark(&mut expected, &x, block, n));
            }
            let found = n_of_m_mask(tensor(&x, SHAPE, &device), n, m, axis);
            assert_eq!(truths(found), expected, "{n}:{m}");
        }
    }

    #[rstest]
    fn nothing_is_pruned_of_nothing(device: Device) {
        let empty = Tensor::<2>::zeros([0, 4], &device);
        assert_eq!(magnitude_mask(empty.clone(), Kept::Share(0.5)).dims(), [0, 4]);
        assert_eq!(magnitude_mask_rows(empty.clone(), Kept::Count(2), 1).dims(), [0, 4]);
        assert_eq!(n_of_m_mask(empty, 2, 4, 0).dims(), [0, 4]);
    }

    #[rstest]
    #[case::count(|x| magnitude_mask(x, Kept::Count(13)))]
    #[case::share(|x| magnitude_mask(x, Kept::Share(1.5)))]
    #[case::row(|x| magnitude_mask_rows(x, Kept::Count(4), 0))]
    #[case::dim(|x| magnitude_mask_rows(x, Kept::Count(1), 2))]
    #[case::n(|x| n_of_m_mask(x, 3, 2, 1))]
    #[case::zero(|x| n_of_m_mask(x, 0, 0, 1))]
    #[case::indivisible(|x| n_of_m_mask(x, 1, 2, 0))]
    #[should_panic(expected = "_mask")]
    fn impossible_requests_panic(
        device: Device,
        #[case] request: fn(Tensor<2>) -> Tensor<2, Bool>,
    ) {
        request(Tensor::zeros([3, 4], &device));
    }
}
