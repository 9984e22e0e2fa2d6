//! Reasons to refuse a request before anything is launched.

use cubecl::ir::ElemType;

/// A refused request. Each variant carries the limit and what was asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// More elements are to be selected than a row has.
    #[error("k = {k} is greater than the row length {cols}")]
    KTooLarge {
        /// Elements to select.
        k: usize,
        /// Elements of a row.
        cols: usize,
    },
    /// Rows longer than any routine supports.
    #[error("rows of {cols} elements are longer than the limit of {limit}")]
    RowTooLong {
        /// Elements of a row.
        cols: usize,
        /// Longest row supported.
        limit: usize,
    },
    /// More rows than any routine supports.
    #[error("{rows} rows are more than the limit of {limit}")]
    TooManyRows {
        /// Rows of the input.
        rows: usize,
        /// Most rows supported.
        limit: usize,
    },
    /// The operation does not support this dtype.
    #[error("dtype {dtype} is not supported by this operation (supported: {supported})")]
    Dtype {
        /// The dtype.
        dtype: ElemType,
        /// The dtypes supported.
        supported: &'static str,
    },
    /// The device lacks a dtype that the operation needs.
    #[error("the device ({runtime}) has no {dtype}")]
    DtypeOnDevice {
        /// The missing dtype.
        dtype: ElemType,
        /// Name of the runtime.
        runtime: &'static str,
    },
    /// CubeCL's CPU runtime cannot round to bf16: that takes AVX512-BF16 or a C runtime with
    /// `__truncsfbf2`.
    #[error("the host cannot round f32 to {dtype} for {runtime}")]
    Rounding {
        /// The dtype.
        dtype: ElemType,
        /// Name of the runtime.
        runtime: &'static str,
    },
    /// A forced routine cannot run this request on this device.
    #[error("routine {routine} cannot run here: {reason}")]
    Routine {
        /// Name of the routine.
        routine: &'static str,
        /// What it lacks, with limit and request.
        reason: String,
    },
    /// A buffer is shorter than its shape and strides need.
    #[error("the {name} buffer holds {found} elements, its shape and strides need {needed}")]
    BufferTooShort {
        /// Name of the buffer.
        name: &'static str,
        /// Elements needed.
        needed: usize,
        /// Elements it holds.
        found: usize,
    },
    /// A buffer is larger than the device can bind or allocate.
    #[error("the {name} buffer of {bytes} bytes is larger than the device's limit of {limit}")]
    BufferTooLarge {
        /// Name of the buffer.
        name: &'static str,
        /// Bytes needed.
        bytes: u64,
        /// Limit of the device in bytes.
        limit: u64,
    },
    /// A sparse matrix has more entries than supported.
    #[error("{entries} entries are more than the limit of {limit}")]
    TooManyEntries {
        /// Entries of the matrix.
        entries: usize,
        /// Most entries supported.
        limit: usize,
    },
    /// More than 2^32 elements on a device without 64-bit addresses.
    #[error("{elements} elements need 64-bit addresses, which the device ({runtime}) lacks")]
    AddressWidth {
        /// Elements of the largest buffer.
        elements: usize,
        /// Name of the runtime.
        runtime: &'static str,
    },
    /// The launch grid is larger than the device allows.
    #[error("a grid of {cubes} cubes exceeds the device's limit of {limit}")]
    GridTooLarge {
        /// Cubes needed.
        cubes: usize,
        /// Cubes allowed over the three dimensions.
        limit: usize,
    },
    /// Two matrices differ in their number of columns.
    #[error("a matrix of {found} columns where the other has {expected}")]
    Columns {
        /// Columns of one matrix.
        found: usize,
        /// Columns of the other.
        expected: usize,
    },
    /// A range of rows exceeds the matrix.
    #[error("rows {first} to {end} of a matrix of {rows}")]
    Rows {
        /// First row of the range.
        first: usize,
        /// End of the range, exclusive.
        end: usize,
        /// Rows of the matrix.
        rows: usize,
    },
    /// Two matrices differ in dtype.
    #[error("a matrix of {found} where the other has {expected}")]
    DtypesDiffer {
        /// Dtype of one matrix.
        found: ElemType,
        /// Dtype of the other.
        expected: ElemType,
    },
    /// The runtime lacks functions for a dtype, or gets them wrong.
    #[error("the device ({runtime}) has no {functions} of {dtype}")]
    Functions {
        /// The functions.
        functions: &'static str,
        /// The dtype.
        dtype: ElemType,
        /// Name of the runtime.
        runtime: &'static str,
    },
    /// A part of a stream ends within an element.
    #[error("a part of {bytes} bytes is no whole number of elements of {size} bytes")]
    Part {
        /// Bytes of the part.
        bytes: usize,
        /// Bytes of an element.
        size: usize,
    },
    /// The device failed while it ran earlier launches. The only error that may come after a
    /// launch.
    #[error("{device} failed: {reason}")]
    Device {
        /// Name of the device.
        device: String,
        /// Reason that the runtime reports.
        reason: String,
    },
    /// The precision parameter is out of range.
    #[error("precision eps = {eps} is not a finite number at or above 0")]
    Precision {
        /// The `eps` asked for.
        eps: f32,
    },
}
