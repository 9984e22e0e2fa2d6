//! Row-wise top-k.

mod key;
mod options;
mod plan;
mod row;
mod scatter;
mod threshold;
mod tuning;
mod types;
mod vector;

use cubecl::{ir::ElemType, prelude::*, server::Handle};

pub use key::SUPPORTED_DTYPES;
pub use options::{Method, TopkOptions};
pub use scatter::{Scatter, scatter};
pub use types::{MAX_COLS, MAX_ROWS, Masked, ROUTINES, Routine, Rows, Selected};
pub use vector::{
    Best, Construction, Filter, Finish, Selection, Subrange, TopkStream, Tuning, VectorOptions,
    WorkloadStats, topk_vector, topk_vector_stats,
};

use self::{
    plan::plan_rows,
    row::{
        argtopk_rows,
        job::{Job, Target},
        topk_rows,
    },
};
use crate::{device::column_dtype, error::KernelError, launch::allocate};

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
    let routine = plan_rows(client, input, options, dtype, routine)?;
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
