//! Row-wise top-k: the k greatest or least elements along one dimension of a tensor.

mod ragged;
mod sharded;

use burn::{
    backend::Dispatch,
    tensor::{DType, Int, Tensor, kind::Ordered},
};
pub use sparsek_kernels::topk::{MAX_COLS, Method};

use crate::ops::{Lengths, SparsekOps, TopkSpec};
pub use ragged::{argtopk_ragged, topk_mask_ragged, topk_ragged};
pub use sharded::{ShardedError, topk_sharded};

/// What the row-wise top-k operations select.
///
/// A "row" is a line of the tensor along [`dim`](Self::dim).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopkOptions {
    /// Elements kept of each row, from 0 to its length.
    pub k: usize,
    /// Dimension to select along; negative values count from the end. Default: the last.
    pub dim: isize,
    /// The greatest elements (default), or the least.
    pub largest: bool,
    /// Output ordered by value, best first, then by index; or (default) by index.
    pub sorted: bool,
    /// How the members are found. Default: [`Method::Exact`].
    pub method: Method,
}

impl TopkOptions {
    /// The `k` greatest elements along the last dimension, exact, in index order.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            dim: -1,
            largest: true,
            sorted: false,
            method: Method::Exact,
        }
    }

    /// Sets the dimension to select along; negative values count from the end.
    pub fn with_dim(self, dim: isize) -> Self {
        Self { dim, ..self }
    }

    /// Selects the greatest (true) or the least elements.
    pub fn with_largest(self, largest: bool) -> Self {
        Self { largest, ..self }
    }

    /// Orders the output by value (true) or by index.
    pub fn with_sorted(self, sorted: bool) -> Self {
        Self { sorted, ..self }
    }

    /// Sets how the members are found.
    pub fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }
}

/// The `k` greatest (or least) elements of each row, and their positions.
///
/// Algorithm 1 and 2 of RTop-K (Xie et al., 2025) or an exact search of the same kind; the deviations
/// are listed in `docs/papers.md`.
///
/// # Shapes
///
/// - `x`: `[.., M, ..]`, M along `options.dim`, at most [`MAX_COLS`], or any that the indices can number where the
///   method is exact and there is but one row; f32, f16, bf16, f64, i32, u32 or i64 where the device has it.
/// - values and indices: `[.., k, ..]`; values in the dtype of `x`, indices in the device's default
///   integer dtype.
///
/// # Guarantees
///
/// Exactly k distinct members. Order: IEEE with `-0 = +0`; NaN is greatest when the largest are asked
/// and last when the smallest are; ties go to the lowest index. Output in index order, or sorted by
/// value, then index. The same input gives the same bits on every run. See `docs/guarantees.md`.
///
/// # Gradient
///
/// The gradient of the values is scattered to the positions they came from; all else gets zero. It
/// stays on the device.
///
/// # Cost
///
/// On devices with planes and rows of at most 32 elements per unit of a plane (1024 on CUDA): one
/// read of `x` and one write of the result. Longer rows are read once per search step; on
/// GPUs one row of more than 2^15 elements, and a few of more than 2^20 each, once, then about as many elements more as
/// the square root of k M (Dr. Top-k: Gaihre et al., 2021).
///
/// # Panics
///
/// If `k > M`, `dim` is out of range, M is greater than [`MAX_COLS`] and there are several rows or the method is not
/// exact, the device lacks the dtype, or the eps of [`Method::Precision`] is negative or not finite.
///
/// # Example
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

fn pairs<const D: usize, K: Ordered>(
    operation: &str,
    x: Tensor<D, K>,
    lengths: Lengths<Dispatch>,
    options: &TopkOptions,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    let (x, dim, spec) = prepare(operation, x, options);
    let (values, indices) = select(x, lengths, spec);
    (values.swap_dims(dim, D - 1), indices.swap_dims(dim, D - 1))
}

/// Values and indices along the last dimension, as checked.
fn select<const D: usize, K: Ordered>(
    x: Tensor<D, K>,
    lengths: Lengths<Dispatch>,
    spec: TopkSpec,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    let float = x.dtype().is_float();
    let x = x.into_dispatch();
    let (values, indices) = if float {
        <Dispatch as SparsekOps>::topk_float(x, lengths, spec)
    } else {
        <Dispatch as SparsekOps>::topk_int(x, lengths, spec)
    };
    (
        Tensor::<D, K>::from_dispatch(values),
        Tensor::<D, Int>::from_dispatch(indices),
    )
}

/// The positions of the `k` greatest (or least) elements of each row: [`topk`] without the values.
///
/// Shapes, guarantees, cost and panics are those of [`topk`]; integers have no gradient.
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

fn positions<const D: usize, K: Ordered>(
    operation: &str,
    x: Tensor<D, K>,
    lengths: Lengths<Dispatch>,
    options: &TopkOptions,
) -> Tensor<D, Int> {
    let (x, dim, spec) = prepare(operation, x, options);
    let float = x.dtype().is_float();
    let x = x.into_dispatch();
    let indices = if float {
        <Dispatch as SparsekOps>::argtopk_float(x, lengths, spec)
    } else {
        <Dispatch as SparsekOps>::argtopk_int(x, lengths, spec)
    };
    Tensor::<D, Int>::from_dispatch(indices).swap_dims(dim, D - 1)
}

/// The tensor with everything but the `k` greatest (or least) elements of each row set to `+0`: the
/// nonlinearity of MaxK-GNN (Peng et al., 2024). [`sorted`](TopkOptions::sorted) has no effect.
///
/// The result has the shape of `x`. Members, panics and ties are those of [`topk`]. The gradient of
/// the members passes unchanged (also where their value is 0), that of all else is zero. Saves the
/// scatter after [`topk`]: one read of `x` and one write of the result.
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

fn masked<const D: usize>(
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
    let masked = <Dispatch as SparsekOps>::topk_mask(x.into_dispatch(), lengths, spec);
    Tensor::<D>::from_dispatch(masked).swap_dims(dim, D - 1)
}

/// The dimension selected along, counted from the start.
fn dimension<const D: usize>(operation: &str, options: &TopkOptions) -> usize {
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

fn is_supported(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::F32 | DType::F16 | DType::BF16 | DType::F64 | DType::I32 | DType::U32 | DType::I64
    )
}

/// Checks the request and moves the dimension to the end.
fn prepare<const D: usize, K: Ordered>(
    operation: &str,
    x: Tensor<D, K>,
    options: &TopkOptions,
) -> (Tensor<D, K>, usize, TopkSpec) {
    let dim = dimension::<D>(operation, options);
    let cols = x.dims()[dim];
    assert!(
        options.k <= cols,
        "{operation}: k = {} is greater than the {cols} elements along dimension {dim} of shape {:?}",
        options.k,
        x.dims(),
    );
    let alone = x.dims().iter().product::<usize>() == cols;
    assert!(
        cols <= MAX_COLS || (alone && options.method == Method::Exact),
        "{operation}: {cols} elements along dimension {dim} are more than the limit of {MAX_COLS}, which one row alone may \
         exceed, for the exact method",
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
        sparsek_kernels::topk::SUPPORTED_DTYPES,
    );
    let device = x.device();
    assert!(
        device.supports_dtype(dtype),
        "{operation}: the device {device:?} has no {dtype:?}",
    );
    let spec = TopkSpec {
        k: options.k,
        largest: options.largest,
        sorted: options.sorted,
        method: options.method,
        index: device.settings().int_dtype,
    };
    (x.swap_dims(dim, D - 1), dim, spec)
}
