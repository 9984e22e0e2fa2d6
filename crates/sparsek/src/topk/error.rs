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
        /// Requested dimension.
        dim: isize,
        /// Tensor rank.
        rank: usize,
    },
    /// k exceeds row length.
    #[error("k = {k} is greater than the {cols} elements along dimension {dim} of shape {shape:?}")]
    KTooLarge {
        /// Requested k.
        k: usize,
        /// Row length.
        cols: usize,
        /// Row dimension.
        dim: usize,
        /// Tensor shape.
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
        /// Longest row.
        limit: usize,
        /// Row dimension.
        dim: usize,
    },
    /// Too many rows.
    #[error("{rows} rows are more than the limit of {limit}")]
    TooManyRows {
        /// Row count.
        rows: usize,
        /// Most rows.
        limit: usize,
    },
    /// Negative or non-finite [`Method::Precision`](super::Method::Precision).
    #[error("precision eps = {eps} is not a finite number at or above 0")]
    Precision {
        /// Given eps.
        eps: f32,
    },
    /// Unsupported dtype.
    #[error("dtype {dtype:?} is not supported (supported: {SUPPORTED_DTYPES}, i8, i16, u8, u16)")]
    Dtype {
        /// Tensor dtype.
        dtype: DType,
    },
    /// Device lacks the dtype.
    #[error("the device {device} has no {dtype:?}")]
    DtypeOnDevice {
        /// Tensor dtype.
        dtype: DType,
        /// Tensor device.
        device: String,
    },
    /// Default integer dtype cannot index.
    #[error("dtype {dtype:?} is not supported for indices (supported: i32, i64, u32, u16, u8)")]
    IndexDtype {
        /// That dtype.
        dtype: IntDType,
    },
    /// Wrong bounds shape.
    #[error(
        "the {name} have shape {found:?} instead of {expected:?}, for dimension {dim} of shape \
         {shape:?}"
    )]
    Bounds {
        /// Tensor name.
        name: &'static str,
        /// Bounds shape.
        found: Vec<usize>,
        /// Required shape.
        expected: Vec<usize>,
        /// Row dimension.
        dim: usize,
        /// Tensor shape.
        shape: Vec<usize>,
    },
    /// Unsupported bounds dtype.
    #[error("dtype {dtype:?} is not supported for {name} (supported: i32, u32, i64)")]
    BoundsDtype {
        /// Tensor name.
        name: &'static str,
        /// Bounds dtype.
        dtype: DType,
    },
    /// Pages do not match rows.
    #[error(
        "pages of shape {found:?}, {size} columns each, do not hold {rows} rows of {cols} columns"
    )]
    Pages {
        /// Page table shape.
        found: [usize; 2],
        /// Columns per page.
        size: usize,
        /// Row count.
        rows: usize,
        /// Columns per row.
        cols: usize,
    },
    /// k is 0.
    #[error("k = 0 names no element")]
    NoKth,
    /// Wrong scores shape.
    #[error("the scores have shape {found:?} instead of {expected:?}")]
    Scores {
        /// Scores shape.
        found: Vec<usize>,
        /// Tensor shape.
        expected: Vec<usize>,
    },
    /// Scores on another device.
    #[error("the scores are on {found} instead of {expected}")]
    ScoresDevice {
        /// Scores device.
        found: String,
        /// Tensor device.
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
