#[cfg(feature = "kernels")]
use cubecl::ir::ElemType;

/// Refused request.
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
    /// Row too long.
    #[error("rows of {cols} elements are longer than the limit of {limit}")]
    RowTooLong {
        /// Row length.
        cols: usize,
        /// Limit.
        limit: usize,
    },
    /// Too many rows.
    #[error("{rows} rows are more than the limit of {limit}")]
    TooManyRows {
        /// Rows.
        rows: usize,
        /// Limit.
        limit: usize,
    },
    /// Unsupported dtype.
    #[cfg(feature = "kernels")]
    #[error("dtype {dtype} is not supported by this operation (supported: {supported})")]
    Dtype {
        /// Dtype.
        dtype: ElemType,
        /// Supported.
        supported: &'static str,
    },
    /// Device lacks the dtype.
    #[cfg(feature = "kernels")]
    #[error("the device ({runtime}) has no {dtype}")]
    DtypeOnDevice {
        /// Dtype.
        dtype: ElemType,
        /// Runtime.
        runtime: &'static str,
    },
    /// CubeCL's CPU runtime needs AVX512-BF16 or `__truncsfbf2` for bf16.
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
        /// Reason.
        reason: String,
    },
    /// Buffer too short.
    #[error("the {name} buffer holds {found} elements, its shape and strides need {needed}")]
    BufferTooShort {
        /// Buffer.
        name: &'static str,
        /// Needed.
        needed: usize,
        /// Found.
        found: usize,
    },
    /// Buffer too large.
    #[error("the {name} buffer of {bytes} bytes is larger than the device's limit of {limit}")]
    BufferTooLarge {
        /// Buffer.
        name: &'static str,
        /// Bytes.
        bytes: u64,
        /// Limit.
        limit: u64,
    },
    /// Too many buffers.
    #[error("a kernel of {buffers} buffers; the device ({runtime}) binds at most {limit}")]
    TooManyBuffers {
        /// Buffers.
        buffers: usize,
        /// Limit.
        limit: usize,
        /// Runtime.
        runtime: &'static str,
    },
    /// Too many entries.
    #[error("{entries} entries are more than the limit of {limit}")]
    TooManyEntries {
        /// Entries.
        entries: usize,
        /// Limit.
        limit: usize,
    },
    /// Addresses need 64 bits.
    #[error("{elements} elements need 64-bit addresses, which the device ({runtime}) lacks")]
    AddressWidth {
        /// Elements.
        elements: usize,
        /// Runtime.
        runtime: &'static str,
    },
    /// Too many cubes.
    #[error("a grid of {cubes} cubes exceeds the device's limit of {limit}")]
    GridTooLarge {
        /// Cubes.
        cubes: usize,
        /// Limit.
        limit: usize,
    },
    /// Matrices differ in columns.
    #[error("a matrix of {found} columns where the other has {expected}")]
    Columns {
        /// Found.
        found: usize,
        /// Expected.
        expected: usize,
    },
    /// Rows beyond the matrix.
    #[error("rows {first} to {end} of a matrix of {rows}")]
    Rows {
        /// First.
        first: usize,
        /// End, exclusive.
        end: usize,
        /// Rows.
        rows: usize,
    },
    /// Matrices differ in dtype.
    #[cfg(feature = "kernels")]
    #[error("a matrix of {found} where the other has {expected}")]
    DtypesDiffer {
        /// Found.
        found: ElemType,
        /// Expected.
        expected: ElemType,
    },
    /// Missing functions.
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
    /// Stream part with a partial element.
    #[error("a part of {bytes} bytes is no whole number of elements of {size} bytes")]
    Part {
        /// Bytes.
        bytes: usize,
        /// Element size.
        size: usize,
    },
    /// An earlier launch failed: the only error after a launch.
    #[error("{device} failed: {reason}")]
    Device {
        /// Device.
        device: String,
        /// Reason.
        reason: String,
    },
    /// `eps` negative or not finite.
    #[error("precision eps = {eps} is not a finite number at or above 0")]
    Precision {
        /// `eps`.
        eps: f32,
    },
}
