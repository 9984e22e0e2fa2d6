//! Types.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use crate::{error::KernelError, launch::argument};

/// Longest rows any routine takes: column numbers and counts stay exact in 32-bit integers and f32. One row alone may
/// be longer, for the exact method: see [`crate::topk::topk_vector`].
pub const MAX_COLS: usize = 1 << 24;

/// Most rows in one call.
pub const MAX_ROWS: usize = 1 << 31;

/// A matrix to select from: a strided view of a buffer, in elements.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The buffer; its offset is the first element of the first row.
    pub handle: Handle,
    /// Its dtype, one of [`SUPPORTED_DTYPES`].
    pub dtype: ElemType,
    /// Number of rows, up to [`MAX_ROWS`].
    pub rows: usize,
    /// Elements of a row, up to [`MAX_COLS`]; more for the exact method where there is one row without gaps.
    pub cols: usize,
    /// Distance between the same element of neighbouring rows.
    pub row_stride: usize,
    /// Distance between neighbouring elements of a row.
    pub col_stride: usize,
    /// How many elements of each row exist, when not all do: see [`with_lengths`](Self::with_lengths).
    pub lengths: Option<Handle>,
}

impl Rows {
    /// A row-major matrix without gaps.
    pub fn contiguous(handle: Handle, dtype: ElemType, rows: usize, cols: usize) -> Self {
        Self {
            handle,
            dtype,
            rows,
            cols,
            row_stride: cols,
            col_stride: 1,
            lengths: None,
        }
    }

    /// Ragged rows: of row r only the first `lengths[r]` elements exist; what lies behind them has no
    /// influence. One u32 for each row; lengths above `cols` count as `cols`.
    ///
    /// A row shorter than k has as many members as elements. The slots of the output that are left come
    /// last, sorted or not: their index has all bits set (-1, or `u32::MAX`), their value is zero.
    pub fn with_lengths(self, lengths: Handle) -> Self {
        Self {
            lengths: Some(lengths),
            ..self
        }
    }

    /// The lengths as a kernel takes them.
    pub(crate) fn lengths_argument(
        &self,
    ) -> Result<ComptimeOptionArgs<&'static [u32]>, KernelError> {
        let dtype = u32::elem_type_native();
        let lengths = self.lengths.as_ref();
        let lengths = lengths.map(|lengths| argument(lengths, "lengths", dtype, self.rows));
        Ok(lengths.transpose()?.into())
    }

    /// Elements of the buffer from the first to the last of the view.
    pub(crate) fn extent(&self) -> usize {
        if self.rows == 0 || self.cols == 0 {
            return 0;
        }
        (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1
    }
}

/// The members of each row, two contiguous `[rows, k]` buffers.
#[derive(Clone, Debug)]
pub struct Selected {
    /// Their values, in the dtype of the input.
    pub values: Handle,
    /// Their columns, in the index dtype asked. Slots without a member: [`Rows::with_lengths`].
    pub indices: Handle,
}

/// The dense form of a selection.
#[derive(Clone, Debug)]
pub struct Masked {
    /// Contiguous `[rows, cols]`: members keep their value, all else is `+0`.
    pub values: Handle,
    /// Contiguous `[rows, k]` columns of the members in index order, when asked for; those of slots
    /// without a member as in [`Selected`].
    pub indices: Option<Handle>,
}

/// How rows are mapped to units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Routine {
    /// One row or several per plane, the rows in registers.
    Plane,
    /// One row per cube, in the registers of all its planes.
    Block,
    /// One plane per row, the row read twice: what reaches the kth of the greatest of subranges is listed.
    Delegate,
    /// One cube per row, the row read once: what reaches a threshold from a sample is listed.
    Sampled,
    /// One cube per row, the row read from memory in each pass.
    Cube,
    /// One unit per row, the row read from memory in each pass.
    Unit,
}

/// All routines, in the order in which [`crate::topk::select`] prefers them.
pub const ROUTINES: &[Routine] = &[
    Routine::Plane,
    Routine::Block,
    Routine::Delegate,
    Routine::Sampled,
    Routine::Cube,
    Routine::Unit,
];

impl Routine {
    /// Its name on command lines and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plane => "plane",
            Self::Block => "block",
            Self::Delegate => "delegate",
            Self::Sampled => "sampled",
            Self::Cube => "cube",
            Self::Unit => "unit",
        }
    }
}
