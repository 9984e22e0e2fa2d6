//! Errors of selections.

use std::fmt::Display;

use burn::tensor::{DType, IntDType};
use sparsek_kernels::{KernelError, topk::SUPPORTED_DTYPES};

/// Why a selection was refused.
///
/// The text does not name the operation: functions that panic put it in front.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TopkError {
    /// The tensor has no such dimension.
    #[error(
        "dimension {dim} is out of range for a tensor of rank {rank} (expected -{rank} to {})",
        *.rank as isize - 1
    )]
    Dimension {
        /// Requested dimension.
        dim: isize,
        /// Rank of the tensor.
        rank: usize,
    },
    /// k exceeds the rows.
    #[error("k = {k} is greater than the {cols} elements along dimension {dim} of shape {shape:?}")]
    KTooLarge {
        /// Requested elements.
        k: usize,
        /// Row length.
        cols: usize,
        /// Dimension of the rows.
        dim: usize,
        /// Shape of the tensor.
        shape: Vec<usize>,
    },
    /// Rows are too long.
    #[error(
        "rows of {cols} elements along dimension {dim} are longer than the limit of {limit} for \
         this operation, method and index dtype"
    )]
    RowTooLong {
        /// Row length.
        cols: usize,
        /// Longest row.
        limit: usize,
        /// Dimension of the rows.
        dim: usize,
    },
    /// Too many rows.
    #[error("{rows} rows are more than the limit of {limit}")]
    TooManyRows {
        /// Rows.
        rows: usize,
        /// Most rows.
        limit: usize,
    },
    /// The eps of [`Method::Precision`](super::Method::Precision) is negative or not finite.
    #[error("precision eps = {eps} is not a finite number at or above 0")]
    Precision {
        /// The eps.
        eps: f32,
    },
    /// The operation does not support the dtype.
    #[error("dtype {dtype:?} is not supported (supported: {SUPPORTED_DTYPES}, i8, i16, u8, u16)")]
    Dtype {
        /// Dtype of the tensor.
        dtype: DType,
    },
    /// The device lacks the dtype.
    #[error("the device {device} has no {dtype:?}")]
    DtypeOnDevice {
        /// Dtype of the tensor.
        dtype: DType,
        /// Device of the tensor.
        device: String,
    },
    /// The device's default integer dtype cannot hold indices.
    #[error("dtype {dtype:?} is not supported for indices (supported: i32, i64, u32, u16, u8)")]
    IndexDtype {
        /// Default integer dtype.
        dtype: IntDType,
    },
    /// Bounds do not match the rows.
    #[error(
        "the {name} have shape {found:?} instead of {expected:?}, for dimension {dim} of shape \
         {shape:?}"
    )]
    Bounds {
        /// The tensor: lengths, starts, ends or offsets.
        name: &'static str,
        /// Its shape.
        found: Vec<usize>,
        /// Shape of one bound per row.
        expected: Vec<usize>,
        /// Dimension of the rows.
        dim: usize,
        /// Shape of the tensor.
        shape: Vec<usize>,
    },
    /// The dtype does not suit bounds of rows.
    #[error("dtype {dtype:?} is not supported for {name} (supported: i32, u32, i64)")]
    BoundsDtype {
        /// The tensor: lengths, starts, ends, offsets or pages.
        name: &'static str,
        /// Its dtype.
        dtype: DType,
    },
    /// Pages do not match the rows.
    #[error(
        "pages of shape {found:?}, {size} columns each, do not hold {rows} rows of {cols} columns"
    )]
    Pages {
        /// Shape of the page table.
        found: [usize; 2],
        /// Columns of a page.
        size: usize,
        /// Number of rows.
        rows: usize,
        /// Columns of a row.
        cols: usize,
    },
    /// No element is the 0th.
    #[error("k = 0 names no element")]
    NoKth,
    /// The scores have another shape.
    #[error("the scores have shape {found:?} instead of {expected:?}")]
    Scores {
        /// Shape of the scores.
        found: Vec<usize>,
        /// Shape of the tensor.
        expected: Vec<usize>,
    },
    /// The scores are on another device.
    #[error("the scores are on {found} instead of {expected}")]
    ScoresDevice {
        /// Device of the scores.
        found: String,
        /// Device of the tensor.
        expected: String,
    },
    /// Another reason of the kernels.
    #[error(transparent)]
    Kernel(KernelError),
}

/// Panics with the operation and the error, as Burn's operations do.
#[track_caller]
pub(crate) fn or_panic<T, E: Display>(operation: &str, result: Result<T, E>) -> T {
    match result {
        Ok(result) => result,
        Err(error) => panic!("{operation}: {error}"),
    }
}
