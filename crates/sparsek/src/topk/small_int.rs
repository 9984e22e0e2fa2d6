//! Selects small integers as i32, which keeps order.

use burn::{
    backend::{Dispatch, ops::IntTensorOps, tensor::IntTensor},
    tensor::{DType, IntDType, Tensor, kind::Ordered},
};

pub(super) fn is_small(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::U8 | DType::U16)
}

pub(super) fn to_i32<const D: usize, K: Ordered>(x: Tensor<D, K>) -> IntTensor<Dispatch> {
    let small = is_small(x.dtype());
    let x = x.into_dispatch();
    if small { Dispatch::int_cast(x, IntDType::I32) } else { x }
}

pub(super) fn from_i32(values: IntTensor<Dispatch>, dtype: DType) -> IntTensor<Dispatch> {
    if is_small(dtype) { Dispatch::int_cast(values, dtype.into()) } else { values }
}

#[cfg(all(test, feature = "flex"))]
mod tests;
