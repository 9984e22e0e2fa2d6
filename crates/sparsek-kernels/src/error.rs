//! Why a request was refused before anything was launched.

use cubecl::ir::ElemType;

/// A refused kernel request: each variant carries the limit and what was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// More members asked than a row has elements.
    #[error("k = {k} is greater than the row length {cols}")]
    KTooLarge {
        /// Members asked.
        k: usize,
        /// Elements of a row.
        cols: usize,
    },
    /// Rows longer than any routine supports.
    #[error("rows of {cols} elements are longer than the limit of {limit}")]
    RowTooLong {
        /// Elements of a row.
        cols: usize,
        /// The longest row supported.
        limit: usize,
    },
    /// More rows than any routine supports.
    #[error("{rows} rows are more than the limit of {limit}")]
    TooManyRows {
        /// Rows asked.
        rows: usize,
        /// The most rows supported.
        limit: usize,
    },
    /// The operation does not exist for this dtype.
    #[error("dtype {dtype} is not supported by this operation (supported: {supported})")]
    Dtype {
        /// Dtype asked.
        dtype: ElemType,
        /// What is supported.
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
    /// CubeCL's CPU runtime cannot round to bf16: that takes AVX512-BF16, or a C runtime that has `__truncsfbf2`.
    #[error("the host cannot round f32 to {dtype} for {runtime}")]
    Rounding {
        /// The dtype.
        dtype: ElemType,
        /// Name of the runtime.
        runtime: &'static str,
    },
    /// A routine was forced that cannot run this request on this device.
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
        /// Which buffer.
        name: &'static str,
        /// Elements needed.
        needed: usize,
        /// Elements it holds.
        found: usize,
    },
    /// A buffer is larger than the device can bind or allocate.
    #[error("the {name} buffer of {bytes} bytes is larger than the device's limit of {limit}")]
    BufferTooLarge {
        /// Which buffer.
        name: &'static str,
        /// Bytes needed.
        bytes: u64,
        /// The device's limit in bytes.
        limit: u64,
    },
    /// More entries of a sparse matrix than are supported.
    #[error("{entries} entries are more than the limit of {limit}")]
    TooManyEntries {
        /// Entries of the matrix.
        entries: usize,
        /// The most entries supported.
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
    /// A launch grid larger than the device allows.
    #[error("a grid of {cubes} cubes exceeds the device's limit of {limit}")]
    GridTooLarge {
        /// Cubes needed.
        cubes: usize,
        /// Cubes allowed over the three dimensions.
        limit: usize,
    },
    /// Two matrices of different widths.
    #[error("a matrix of {found} columns where the other has {expected}")]
    Columns {
        /// Columns of the one.
        found: usize,
        /// Columns of the other.
        expected: usize,
    },
    /// Rows that a matrix does not have.
    #[error("rows {first} to {end} of a matrix of {rows}")]
    Rows {
        /// The first asked for.
        first: usize,
        /// The one after the last.
        end: usize,
        /// How many there are.
        rows: usize,
    },
    /// Two matrices of different dtypes.
    #[error("a matrix of {found} where the other has {expected}")]
    DtypesDiffer {
        /// Dtype of the one.
        found: ElemType,
        /// Dtype of the other.
        expected: ElemType,
    },
    /// Functions that a runtime gets wrong or lacks for a dtype.
    #[error("the device ({runtime}) has no {functions} of {dtype}")]
    Functions {
        /// Which.
        functions: &'static str,
        /// Of what.
        dtype: ElemType,
        /// Name of the runtime.
        runtime: &'static str,
    },
    /// A part of a stream that ends within an element.
    #[error("a part of {bytes} bytes is no whole number of elements of {size} bytes")]
    Part {
        /// Bytes of the part.
        bytes: usize,
        /// Bytes of an element.
        size: usize,
    },
    /// The device failed while it ran what was launched before: the one error that does not come before a launch.
    #[error("{device} failed: {reason}")]
    Device {
        /// Name of the device.
        device: String,
        /// What the runtime reports.
        reason: String,
    },
    /// An early stop or precision parameter out of range.
    #[error("precision eps = {eps} is not a finite number at or above 0")]
    Precision {
        /// The eps asked.
        eps: f32,
    },
}
