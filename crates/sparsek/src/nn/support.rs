use burn::tensor::{DType, Int, Tensor, activation::softmax, ops::IndexingUpdateOp};

use crate::dense::column_sums;

/// Takes rows: `[rows, width]`, `[count]` → `[count, width]`.
///
/// `at` must be distinct: gradients add without atomics.
pub fn take_distinct(x: Tensor<2>, at: Tensor<1, Int>) -> Tensor<2> {
    x.gather_nd::<2, 2>(at.unsqueeze_dim(1))
}

/// Places `x[i]` at distinct rows `at[i]`, else 0.
pub fn place_distinct(x: Tensor<2>, at: Tensor<1, Int>, rows: usize) -> Tensor<2> {
    let [_, width] = x.dims();
    let zeros = Tensor::zeros([rows, width], (&x.device(), x.dtype()));
    zeros.scatter_nd(at.unsqueeze_dim::<2>(1), x, IndexingUpdateOp::Add)
}

/// Column means: `[width]`. NaN without rows.
pub fn column_means(x: Tensor<2>) -> Tensor<1> {
    let ([rows, _], dtype) = (x.dims(), x.dtype());
    // Sums may exceed f16.
    let x = if dtype == DType::F64 { x } else { x.cast(DType::F32) };
    (column_sums(x) / rows as f64).cast(dtype)
}

/// Mean: `[1]`. Burn's uses one cube.
pub fn mean(x: Tensor<2>) -> Tensor<1> {
    column_means(x).mean()
}

/// `log Σ exp(x)`: `[rows, width]` → `[rows, 1]`.
pub fn log_sum_exp(x: Tensor<2>) -> Tensor<2> {
    let greatest = x.clone().detach().max_dim(1);
    (x - greatest.clone()).exp().sum_dim(1).log() + greatest
}

/// [`softmax`], 0 for rows of −∞.
pub fn softmax_or_zero<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let none = x.clone().detach().max_dim(D - 1);
    let none = none.equal_elem(f64::NEG_INFINITY).expand(x.shape());
    softmax(x.mask_fill(none.clone(), 0.0), D - 1).mask_fill(none, 0.0)
}

/// Hashes `seed` and `stream`.
pub fn halves(seed: u64, stream: u64) -> [u32; 2] {
    let state = mix(seed ^ mix(stream));
    [state as u32, (state >> 32) as u32]
}

/// Hashes to [0, 1).
#[cfg(all(test, feature = "flex"))]
pub fn uniform(seed: u64, stream: u64, count: usize) -> Vec<f64> {
    let state = mix(seed ^ mix(stream));
    let draw = |n: usize| {
        let bits = mix(state.wrapping_add((n as u64).wrapping_mul(STEP)));
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..count).map(draw).collect()
}

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::Device;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(DType::F16)]
    #[case(DType::BF16)]
    #[case(DType::F32)]
    #[case(DType::F64)]
    fn means_do_not_overflow(#[case] dtype: DType) {
        let device = Device::flex().autodiff();
        let x = Tensor::<2>::full([5000, 2], 32.0, (&device, dtype));
        for mean in [column_means(x.clone()), mean(x)] {
            assert_eq!(mean.dtype(), dtype);
            assert!(mean.into_data().iter::<f64>().all(|mean| mean == 32.0));
        }
    }
}
