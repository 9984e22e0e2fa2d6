//! Top-k of whole rows.

use burn::{
    backend::Dispatch,
    tensor::{DType, Int, Tensor, kind::Ordered},
};
use sparsek_kernels::topk::{MAX_COLS, Method, SUPPORTED_DTYPES};

use super::options::TopkOptions;
use crate::ops::{Lengths, TopkOps, TopkSpec};

/// The `k` greatest (or least) elements of each row and their indices, exact or by Algorithm 1 or 2
/// of RTop-K (Xie et al., 2025; deviations in `docs/papers.md`).
///
/// # Shapes
///
/// - `x`: `[.., M, ..]` with M along `options.dim`; f32, f16, bf16, f64, i32, u32 or i64. M is at
///   most [`MAX_COLS`], except for one row with the exact method.
/// - values, indices: `[.., k, ..]` in the dtype of `x` and the device's default integer dtype.
///
/// # Guarantees
///
/// Exactly k distinct elements in index order, or by value, then index. IEEE order with `-0 = +0`;
/// NaN is greatest for the largest and last for the smallest; ties go to the lowest index.
/// Deterministic to the bit; see `docs/guarantees.md`. The gradient is scattered to the selected
/// elements.
///
/// # Cost
///
/// With planes, one read of rows up to 32 elements per unit (1024 on CUDA), else one per search
/// step. On GPUs, one row above 2^15 elements, or a few above 2^20: one read and about sqrt(k M)
/// elements (Dr. Top-k: Gaihre et al., 2021).
///
/// # Panics
///
/// If `k > M`, `dim` is out of range, M is too long, the device lacks the dtype, or the eps of
/// [`Method::Precision`] is negative or not finite.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0], [4.0, 4.0, 8.0, 2.0]], &device);
/// let (values, indices) = topk(x, &TopkOptions::new(2));
/// values.into_data().assert_eq(&TensorData::from([[9.0, 7.0], [4.0, 8.0]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[1, 3], [0, 2]]), false);
/// ```
pub fn topk<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: &TopkOptions,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    pairs("topk", x, Lengths::Whole, options)
}

pub(super) fn pairs<const D: usize, K: Ordered>(
    operation: &str,
    x: Tensor<D, K>,
    lengths: Lengths<Dispatch>,
    options: &TopkOptions,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    let (x, dim, spec) = prepare(operation, x, options);
    let (values, indices) = select(x, lengths, spec);
    (values.swap_dims(dim, D - 1), indices.swap_dims(dim, D - 1))
}

pub(super) fn select<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    lengths: Lengths<Dispatch>,
    spec: TopkSpec,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    let float = x.dtype().is_float();
    let x = x.into_dispatch();
    let (values, indices) = if float {
        <Dispatch as TopkOps>::topk_float(x, lengths, spec)
    } else {
        <Dispatch as TopkOps>::topk_int(x, lengths, spec)
    };
    (Tensor::<D, K>::from_dispatch(values), Tensor::<D, Int>::from_dispatch(indices))
}

/// Indices of [`topk`]. No gradient.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, argtopk};
///
/// let x = Tensor::<1>::from_data([0.5, -2.0, 3.0], &Device::flex());
/// let least = argtopk(x, &TopkOptions::new(1).with_largest(false));
/// least.into_data().assert_eq(&TensorData::from([1]), false);
/// ```
pub fn argtopk<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    options: &TopkOptions,
) -> Tensor<D, Int> {
    positions("argtopk", x, Lengths::Whole, options)
}

pub(super) fn positions<const D: usize, K: Ordered>(
    operation: &str,
    x: Tensor<D, K>,
    lengths: Lengths<Dispatch>,
    options: &TopkOptions,
) -> Tensor<D, Int> {
    let (x, dim, spec) = prepare(operation, x, options);
    let float = x.dtype().is_float();
    let x = x.into_dispatch();
    let indices = if float {
        <Dispatch as TopkOps>::argtopk_float(x, lengths, spec)
    } else {
        <Dispatch as TopkOps>::argtopk_int(x, lengths, spec)
    };
    Tensor::<D, Int>::from_dispatch(indices).swap_dims(dim, D - 1)
}

/// Sets all but the `k` greatest (or least) elements of each row to `+0`: the nonlinearity of
/// MaxK-GNN (Peng et al., 2024).
///
/// As [`topk`], with M at most [`MAX_COLS`]; ignores [`sorted`](TopkOptions::sorted). The gradient
/// passes to selected elements, even of value 0.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_mask};
///
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0]], &Device::flex());
/// let kept = topk_mask(x, &TopkOptions::new(2));
/// kept.into_data().assert_eq(&TensorData::from([[0.0, 9.0, 0.0, 7.0]]), false);
/// ```
pub fn topk_mask<const D: usize>(x: Tensor<D>, options: &TopkOptions) -> Tensor<D> {
    masked("topk_mask", x, Lengths::Whole, options)
}

pub(super) fn masked<const D: usize>(
    operation: &str,
    x: Tensor<D>,
    lengths: Lengths<Dispatch>,
    options: &TopkOptions,
) -> Tensor<D> {
    let (x, dim, spec) = prepare(operation, x, options);
    let cols = x.dims()[D - 1];
    assert!(
        cols <= MAX_COLS,
        "{operation}: rows of {cols} elements are longer than the limit of {MAX_COLS}",
    );
    let masked = <Dispatch as TopkOps>::topk_mask(x.into_dispatch(), lengths, spec);
    Tensor::<D>::from_dispatch(masked).swap_dims(dim, D - 1)
}

pub(super) fn dimension<const D: usize>(operation: &str, options: &TopkOptions) -> usize {
    let rank = D as isize;
    assert!(
        (-rank..rank).contains(&options.dim),
        "{operation}: dimension {} is out of range for a tensor of rank {D} (expected {} to {})",
        options.dim,
        -rank,
        rank - 1,
    );
    options.dim.rem_euclid(rank) as usize
}

pub(super) fn is_supported(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::F32 | DType::F16 | DType::BF16 | DType::F64 | DType::I32 | DType::U32 | DType::I64
    )
}

/// Checks the arguments; moves the dimension to the end.
fn prepare<const D: usize, K: Ordered>(
    operation: &str,
    x: Tensor<D, K>,
    options: &TopkOptions,
) -> (Tensor<D, K>, usize, TopkSpec) {
    let dim = dimension::<D>(operation, options);
    let cols = x.dims()[dim];
    assert!(
        options.k <= cols,
        "{operation}: k = {} is greater than the {cols} elements along dimension {dim} of shape \
         {:?}",
        options.k,
        x.dims(),
    );
    let alone = x.dims().iter().product::<usize>() == cols;
    assert!(
        cols <= MAX_COLS || (alone && options.method == Method::Exact),
        "{operation}: {cols} elements along dimension {dim} are more than the limit of {MAX_COLS}, \
         which one row alone may exceed, for the exact method",
    );
    if let Method::Precision(eps) = options.method {
        assert!(
            eps.is_finite() && eps >= 0.0,
            "{operation}: precision eps = {eps} is not a finite number at or above 0",
        );
    }
    let dtype = x.dtype();
    assert!(
        is_supported(dtype),
        "{operation}: dtype {dtype:?} is not supported (supported: {})",
        SUPPORTED_DTYPES,
    );
    let device = x.device();
    assert!(device.supports_dtype(dtype), "{operation}: the device {device:?} has no {dtype:?}",);
    let spec = TopkSpec {
        k: options.k,
        largest: options.largest,
        sorted: options.sorted,
        method: options.method,
        index: device.settings().int_dtype,
    };
    (x.swap_dims(dim, D - 1), dim, spec)
}
