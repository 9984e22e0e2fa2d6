//! Reasons to refuse a request.

#[cfg(feature = "kernels")]
use cubecl::ir::ElemType;

/// A refused request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// k exceeds the row.
    #[error("k = {k} is greater than the row length {cols}")]
    KTooLarge {
        /// k.
        k: usize,
        /// Row length.
        cols: usize,
    },
    /// Rows are too long.
    #[error("rows of {cols} elements are longer than the limit of {limit}")]
    RowTooLong {
        /// Row length.
        cols: usize,
        /// Longest row.
        limit: usize,
    },
    /// Too many rows.
    #[error("{rows} rows are more than the limit of {limit}")]
    TooManyRows {
        /// Rows.
        rows: usize,
        /// Most rows.
        limit: usize,
    },
    /// The operation does not support a dtype.
    #[cfg(feature = "kernels")]
    #[error("dtype {dtype} is not supported by this operation (supported: {supported})")]
    Dtype {
        /// Dtype.
        dtype: ElemType,
        /// Supported dtypes.
        supported: &'static str,
    },
    /// The device lacks a dtype.
    #[cfg(feature = "kernels")]
    #[error("the device ({runtime}) has no {dtype}")]
    DtypeOnDevice {
        /// Dtype.
        dtype: ElemType,
        /// Runtime.
        runtime: &'static str,
    },
    /// CubeCL's CPU runtime needs AVX512-BF16 or C's `__truncsfbf2` to round to bf16.
    #[cfg(feature = "kernels")]
    #[error("the host cannot round f32 to {dtype} for {runtime}")]
    Rounding {
        /// Dtype.
        dtype: ElemType,
        /// Runtime.
        runtime: &'static str,
    },
    /// A forced routine cannot run.
    #[error("routine {routine} cannot run here: {reason}")]
    Routine {
        /// Routine.
        routine: &'static str,
        /// What it lacks, with limit and request.
        reason: String,
    },
    /// A buffer is too short for its shape and strides.
    #[error("the {name} buffer holds {found} elements, its shape and strides need {needed}")]
    BufferTooShort {
        /// Buffer.
        name: &'static str,
        /// Elements needed.
        needed: usize,
        /// Elements present.
        found: usize,
    },
    /// A buffer exceeds what the device can bind or allocate.
    #[error("the {name} buffer of {bytes} bytes is larger than the device's limit of {limit}")]
    BufferTooLarge {
        /// Buffer.
        name: &'static str,
        /// Bytes needed.
        bytes: u64,
        /// Limit in bytes.
        limit: u64,
    },
    /// A kernel binds more buffers than the device allows.
    #[error("a kernel of {buffers} buffers; the device ({runtime}) binds at most {limit}")]
    TooManyBuffers {
        /// Buffers of the kernel.
        buffers: usize,
        /// Most buffers.
        limit: usize,
        /// Runtime.
        runtime: &'static str,
    },
    /// A sparse matrix has too many entries.
    #[error("{entries} entries are more than the limit of {limit}")]
    TooManyEntries {
        /// Entries.
        entries: usize,
        /// Most entries.
        limit: usize,
    },
    /// More than 2^32 elements without 64-bit addresses.
    #[error("{elements} elements need 64-bit addresses, which the device ({runtime}) lacks")]
    AddressWidth {
        /// Elements of the largest buffer.
        elements: usize,
        /// Runtime.
        runtime: &'static str,
    },
    /// The launch grid is too large.
    #[error("a grid of {cubes} cubes exceeds the device's limit of {limit}")]
    GridTooLarge {
        /// Cubes needed.
        cubes: usize,
        /// Cubes allowed over three dimensions.
        limit: usize,
    },
    /// Matrices differ in columns.
    #[error("a matrix of {found} columns where the other has {expected}")]
    Columns {
        /// Columns of one.
        found: usize,
        /// Columns of the other.
        expected: usize,
    },
    /// A range exceeds the matrix.
    #[error("rows {first} to {end} of a matrix of {rows}")]
    Rows {
        /// First row.
        first: usize,
        /// End, exclusive.
        end: usize,
        /// Rows of the matrix.
        rows: usize,
    },
    /// Matrices differ in dtype.
    #[cfg(feature = "kernels")]
    #[error("a matrix of {found} where the other has {expected}")]
    DtypesDiffer {
        /// Dtype of one.
        found: ElemType,
        /// Dtype of the other.
        expected: ElemType,
    },
    /// The runtime lacks functions for a dtype, or gets them wrong.
    #[cfg(feature = "kernels")]
    #[error("the device ({runtime}) has no {functions} of {dtype}")]
    Functions {
        /// Functions.
        functions: &'static str,
        /// Dtype.
        dtype: ElemType,
        /// Runtime.
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
    /// The device failed in earlier launches. The only error that may follow a launch.
    #[error("{device} failed: {reason}")]
    Device {
        /// Device.
        device: String,
        /// Reason from the runtime.
        reason: String,
    },
    /// `eps` is negative or not finite.
    #[error("precision eps = {eps} is not a finite number at or above 0")]
    Precision {
        /// `eps`.
        eps: f32,
    },
}
