use burn::tensor::{AsIndex, DType, IntDType, Tensor, kind::Ordered};
use sparsek_kernels::{
    KernelError,
    topk::{MAX_COLS, Method, TopkOptions, VectorOptions},
};

use super::{error::TopkError, small_int::is_small};
use crate::ops::{TopkSpec, VectorSpec};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongRows {
    Refused,
    /// Allows one exact row.
    One,
}

/// Returns the non-negative dimension and the selection.
pub(crate) fn check<const D: usize, K: Ordered>(
    x: &Tensor<D, K>,
    options: &TopkOptions,
    dim: impl AsIndex,
    long: LongRows,
) -> Result<(usize, TopkSpec), TopkError> {
    let index = x.device().settings().int_dtype;
    let dim = check_indexed(x, options, dim, long, index)?;
    Ok((dim, TopkSpec { options: *options, index }))
}

pub(crate) fn check_indexed<const D: usize, K: Ordered>(
    x: &Tensor<D, K>,
    options: &TopkOptions,
    dim: impl AsIndex,
    long: LongRows,
    index: IntDType,
) -> Result<usize, TopkError> {
    let dim = dimension::<D>(dim)?;
    let shape = x.dims();
    let cols = shape[dim];
    let rows = (0..D).filter(|&other| other != dim).map(|other| shape[other]).product();
    let alone = long == LongRows::One && rows == 1 && options.method == Method::Exact;
    let longest = if alone { usize::MAX } else { MAX_COLS };
    let longest = longest.min(most_indices(index)?);
    options.validate(rows, cols, longest).map_err(|error| refusal(error, dim, &shape))?;
    check_dtype(x)?;
    Ok(dim)
}

pub(super) fn check_vector<K: Ordered>(
    x: &Tensor<1, K>,
    options: &VectorOptions,
) -> Result<VectorSpec, TopkError> {
    let index = x.device().settings().int_dtype;
    let shape = x.dims();
    options.validate(shape[0], most_indices(index)?).map_err(|error| refusal(error, 0, &shape))?;
    check_dtype(x)?;
    Ok(VectorSpec { options: *options, index })
}

pub(crate) fn dimension<const D: usize>(dim: impl AsIndex) -> Result<usize, TopkError> {
    let (dim, rank) = (dim.as_index(), D as isize);
    if !(-rank..rank).contains(&dim) {
        return Err(TopkError::Dimension { dim, rank: D });
    }
    Ok(dim.rem_euclid(rank) as usize)
}

pub(super) fn is_supported(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::F32 | DType::F16 | DType::BF16 | DType::F64 | DType::I32 | DType::U32 | DType::I64
    )
}

fn check_dtype<const D: usize, K: Ordered>(x: &Tensor<D, K>) -> Result<(), TopkError> {
    let (dtype, device) = (x.dtype(), x.device());
    if !is_supported(dtype) && !is_small(dtype) {
        return Err(TopkError::Dtype { dtype });
    }
    if !device.supports_dtype(dtype) {
        return Err(TopkError::DtypeOnDevice { dtype, device: format!("{device:?}") });
    }
    Ok(())
}

fn most_indices(dtype: IntDType) -> Result<usize, TopkError> {
    match dtype {
        IntDType::I64 => Ok(usize::MAX),
        IntDType::I32 => Ok(i32::MAX as usize + 1),
        IntDType::U32 => Ok(u32::MAX as usize),
        IntDType::U16 => Ok(1 << 16),
        IntDType::U8 => Ok(1 << 8),
        dtype => Err(TopkError::IndexDtype { dtype }),
    }
}

fn refusal(error: KernelError, dim: usize, shape: &[usize]) -> TopkError {
    match error {
        KernelError::KTooLarge { k, cols } => {
            TopkError::KTooLarge { k, cols, dim, shape: shape.to_vec() }
        }
        KernelError::RowTooLong { cols, limit } => TopkError::RowTooLong { cols, limit, dim },
        KernelError::TooManyRows { rows, limit } => TopkError::TooManyRows { rows, limit },
        KernelError::Precision { eps } => TopkError::Precision { eps },
        other => TopkError::Kernel(other),
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests;
