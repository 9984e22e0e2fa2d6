use std::fmt::Display;

use burn::tensor::{DType, IntDType};
use sparsek_kernels::{KernelError, topk::SUPPORTED_DTYPES};

/// Refused selection.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TopkError {
    /// No such dimension.
    #[error(
        "dimension {dim} is out of range for a tensor of rank {rank} (expected -{rank} to {})",
        *.rank as isize - 1
    )]
    Dimension {
        /// Dimension.
        dim: isize,
        /// Rank.
        rank: usize,
    },
    /// k exceeds row length.
    #[error("k = {k} is greater than the {cols} elements along dimension {dim} of shape {shape:?}")]
    KTooLarge {
        /// k.
        k: usize,
        /// Row length.
        cols: usize,
        /// Dimension.
        dim: usize,
        /// Shape.
        shape: Vec<usize>,
    },
    /// Row too long.
    #[error(
        "rows of {cols} elements along dimension {dim} are longer than the limit of {limit} for \
         this operation, method and index dtype"
    )]
    RowTooLong {
        /// Row length.
        cols: usize,
        /// Limit.
        limit: usize,
        /// Dimension.
        dim: usize,
    },
    /// Too many rows.
    #[error("{rows} rows are more than the limit of {limit}")]
    TooManyRows {
        /// Rows.
        rows: usize,
        /// Limit.
        limit: usize,
    },
    /// Negative or non-finite [`Method::Precision`](super::Method::Precision).
    #[error("precision eps = {eps} is not a finite number at or above 0")]
    Precision {
        /// eps.
        eps: f32,
    },
    /// Unsupported dtype.
    #[error("dtype {dtype:?} is not supported (supported: {SUPPORTED_DTYPES}, i8, i16, u8, u16)")]
    Dtype {
        /// Dtype.
        dtype: DType,
    },
    /// Device lacks the dtype.
    #[error("the device {device} has no {dtype:?}")]
    DtypeOnDevice {
        /// Dtype.
        dtype: DType,
        /// Device.
        device: String,
    },
    /// Default integer dtype cannot index.
    #[error("dtype {dtype:?} is not supported for indices (supported: i32, i64, u32, u16, u8)")]
    IndexDtype {
        /// Dtype.
        dtype: IntDType,
    },
    /// Wrong bounds shape.
    #[error(
        "the {name} have shape {found:?} instead of {expected:?}, for dimension {dim} of shape \
         {shape:?}"
    )]
    Bounds {
        /// Tensor.
        name: &'static str,
        /// Found.
        found: Vec<usize>,
        /// Needed.
        expected: Vec<usize>,
        /// Dimension.
        dim: usize,
        /// Tensor shape.
        shape: Vec<usize>,
    },
    /// Unsupported bounds dtype.
    #[error("dtype {dtype:?} is not supported for {name} (supported: i32, u32, i64)")]
    BoundsDtype {
        /// Tensor.
        name: &'static str,
        /// Dtype.
        dtype: DType,
    },
    /// Pages do not match rows.
    #[error(
        "pages of shape {found:?}, {size} columns each, do not hold {rows} rows of {cols} columns"
    )]
    Pages {
        /// Table shape.
        found: [usize; 2],
        /// Columns per page.
        size: usize,
        /// Rows.
        rows: usize,
        /// Row length.
        cols: usize,
    },
    /// k is 0.
    #[error("k = 0 names no element")]
    NoKth,
    /// Wrong scores shape.
    #[error("the scores have shape {found:?} instead of {expected:?}")]
    Scores {
        /// Found.
        found: Vec<usize>,
        /// Needed.
        expected: Vec<usize>,
    },
    /// Scores on another device.
    #[error("the scores are on {found} instead of {expected}")]
    ScoresDevice {
        /// Found.
        found: String,
        /// Needed.
        expected: String,
    },
    /// Other error.
    #[error(transparent)]
    Kernel(KernelError),
}

#[track_caller]
pub(crate) fn or_panic<T, E: Display>(operation: &str, result: Result<T, E>) -> T {
    match result {
        Ok(result) => result,
        Err(error) => panic!("{operation}: {error}"),
    }
}
