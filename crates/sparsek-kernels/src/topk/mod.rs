//! Row-wise top-k: the k greatest or least elements of each row of a matrix.
//!
//! Contract, for every routine and runtime: exactly k distinct members per row; IEEE order with
//! `-0 = +0`; NaN greatest when the largest are asked and last when the smallest are; ties to the
//! lowest index; output in index order, or sorted by value, then index; the same bits on every run. Of
//! ragged rows the elements that exist are the row.
//!
//! The path of a call: [`topk`] checks the request, `select` chooses a [`Routine`], `routines` holds
//! the kernels, which share one threshold `search`.

mod element;
pub(crate) mod launch;
mod options;
mod resident;
mod routines;
mod sampled;
mod scatter;
mod search;
pub(crate) mod select;
mod sort;
mod subranges;
mod vector;

use crate::device::column_dtype;
use crate::device::require_dtype;
use cubecl::{ir::ElemType, prelude::*, server::Handle};

pub use launch::SUPPORTED_DTYPES;
pub use options::{Method, TopkOptions};
pub use routines::{ROUTINES, Routine};
pub use scatter::{Scatter, scatter};
pub use select::{MAX_COLS, MAX_ROWS};
pub use vector::{
    Best, Construction, Filter, Finish, Selection, Subrange, TopkStream, Tuning, VectorOptions,
    WorkloadStats, topk_vector, topk_vector_stats,
};

use crate::error::KernelError;
use crate::launch::allocate;
use crate::launch::argument;
use launch::{Job, Target};

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

/// What routine selection looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Problem {
    pub k: usize,
    pub cols: usize,
    pub exact: bool,
    /// Most elements of a load.
    pub width: usize,
    /// Whether rows have lengths of their own.
    pub ragged: bool,
    /// Most passes that the search may take over a row.
    pub passes: usize,
}

/// Values and columns of the members of each row. `index` is the dtype of the columns (i32, u32 or i64, or u16 and u8 for rows
/// of at most 2^16 and 2^8 elements without lengths of their own); `routine` forces one of [`ROUTINES`].
///
/// Cost: the plane, block and stream routines read the input once, and the members once more from a cache,
/// and write k values and indices per row (the stream routine reads a row again where its sample misled
/// it); the delegate routine reads it twice, the second time from a cache where rows in work fit there; the others read
/// each row once per search step (4 to 8 for the exact method on smooth data, at most 138, or 266 for 64-bit dtypes) and
/// twice more. With `sorted`, plane and
/// block put members in order before they write them, where keys have at most 32 bits, shared memory can be used and
/// no unit that shares the row gets more than 16 (k up to 128 for rows of 256 elements, to 512 above 512); elsewhere
/// a second kernel rewrites the members once, or log²k times above 512 of them. Scratch: none, or as much as the
/// result for that kernel. One long row, or a few, are selected from as by [`topk_vector`], one after the other.
///
/// # Errors
///
/// [`KernelError`] when k exceeds `input.cols`, the device lacks a dtype, a buffer is too short,
/// too large or needs wider addresses, or the forced routine cannot run. Nothing is launched then.
pub fn topk(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    routine: Option<Routine>,
) -> Result<Selected, KernelError> {
    if index.size() >= 4 && vector::takes(client, input, options, routine) {
        return vector::topk_few(client, input, options, index);
    }
    topk_rows(client, input, options, index, routine)
}

/// [`topk`] by a routine for rows.
fn topk_rows(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    routine: Option<Routine>,
) -> Result<Selected, KernelError> {
    let routine = validate(client, input, options, index, routine)?;
    let count = input.rows * options.k;
    let values = allocate(client, "values", count, input.dtype)?;
    let indices = allocate(client, "indices", count, index)?;
    if count == 0 {
        return Ok(Selected { values, indices });
    }
    let job = Job {
        client,
        input,
        options,
        index,
    };
    job.select(routine, Target::Pairs(&values, &indices))?;
    if job.orders(routine) {
        Ok(Selected { values, indices })
    } else {
        job.order(values, indices)
    }
}

/// Columns of the members of each row: [`topk`] without the values, which are then not written
/// (unless members that are to be in order by value are put so by a second kernel).
///
/// # Errors
///
/// As [`topk`].
pub fn argtopk(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    routine: Option<Routine>,
) -> Result<Handle, KernelError> {
    if index.size() >= 4 && vector::takes(client, input, options, routine) {
        return Ok(vector::topk_few(client, input, options, index)?.indices);
    }
    argtopk_rows(client, input, options, index, routine)
}

/// [`argtopk`] by a routine for rows.
fn argtopk_rows(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    routine: Option<Routine>,
) -> Result<Handle, KernelError> {
    let chosen = validate(client, input, options, index, routine)?;
    let count = input.rows * options.k;
    let job = Job {
        client,
        input,
        options,
        index,
    };
    if count > 0 && !job.orders(chosen) {
        return Ok(topk_rows(client, input, options, index, routine)?.indices);
    }
    let indices = allocate(client, "indices", count, index)?;
    if count > 0 {
        job.select(chosen, Target::Indices(&indices))?;
    }
    Ok(indices)
}

/// The matrix with everything but the members of each row set to zero. With `index`, the columns of
/// the members beside it, in index order, as the gradient needs them. `options.sorted` has no effect.
///
/// # Errors
///
/// As [`topk`].
pub fn topk_mask(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: Option<ElemType>,
    routine: Option<Routine>,
) -> Result<Masked, KernelError> {
    let dtype = index.unwrap_or(u32::elem_type_native());
    let routine = validate(client, input, options, dtype, routine)?;
    let values = allocate(client, "values", input.rows * input.cols, input.dtype)?;
    let indices = index
        .map(|dtype| allocate(client, "indices", input.rows * options.k, dtype))
        .transpose()?;
    let job = Job {
        client,
        input,
        options,
        index: dtype,
    };
    if options.k == 0 {
        job.zero(&values)?;
    } else if input.rows > 0 {
        job.select(routine, Target::Dense(&values, indices.as_ref()))?;
    }
    Ok(Masked { values, indices })
}

fn validate(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    routine: Option<Routine>,
) -> Result<Routine, KernelError> {
    if options.k > input.cols {
        return Err(KernelError::KTooLarge {
            k: options.k,
            cols: input.cols,
        });
    }
    if input.cols > MAX_COLS {
        return Err(KernelError::RowTooLong {
            cols: input.cols,
            limit: MAX_COLS,
        });
    }
    if input.rows > MAX_ROWS {
        return Err(KernelError::TooManyRows {
            rows: input.rows,
            limit: MAX_ROWS,
        });
    }
    if let Method::Precision(eps) = options.method
        && !(eps.is_finite() && eps >= 0.0)
    {
        return Err(KernelError::Precision { eps });
    }
    launch::require_element(client, input.dtype)?;
    launch::require_index(index, input.cols)?;
    require_dtype(client, index)?;
    input.lengths_argument()?;
    let problem = Problem {
        k: options.k,
        cols: input.cols,
        exact: options.method == Method::Exact,
        width: launch::load_widths(client, input).max().unwrap_or(1),
        ragged: input.lengths.is_some(),
        passes: select::passes(options.method, input.dtype),
    };
    match routine {
        Some(routine) => {
            select::check(routine, client, &problem)?;
            Ok(routine)
        }
        None => select::select(client, &problem),
    }
}

/// The members of each row as compressed rows, in one launch and without a dense intermediate: [`topk`] in index order
/// with columns of [`column_dtype`].
///
/// # Errors
///
/// As [`topk`].
pub fn compress(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
) -> Result<(Selected, ElemType), KernelError> {
    let index = column_dtype(client, input.cols);
    let options = TopkOptions {
        sorted: false,
        ..*options
    };
    let selected = topk(client, input, &options, index, None)?;
    Ok((selected, index))
}
