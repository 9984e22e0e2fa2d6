//! Row-wise top-k: each row's k greatest or least elements.
//!
//! Contract of every routine and runtime:
//!
//! - k distinct elements per row; of short ragged rows, all;
//! - IEEE order with `-0 = +0`; NaN first if `largest`, else last;
//! - ties go to the lower index;
//! - index order, or sorted by value, then index;
//! - the same bits in every run.

#[cfg(feature = "kernels")]
mod draw;
#[cfg(feature = "kernels")]
mod key;
mod options;
#[cfg(feature = "kernels")]
mod plan;
#[cfg(feature = "kernels")]
mod remap;
#[cfg(feature = "kernels")]
mod row;
#[cfg(feature = "kernels")]
mod scatter;
#[cfg(feature = "kernels")]
mod threshold;
#[cfg(feature = "kernels")]
mod tuning;
mod types;
mod vector;

#[cfg(feature = "kernels")]
use cubecl::{ir::ElemType, prelude::*, server::Handle};

#[cfg(feature = "kernels")]
pub use draw::{Draw, draw, draws_unsorted};
pub use options::{Method, TopkOptions, UnknownMethod};
#[cfg(feature = "kernels")]
pub use remap::{Pages, Remap, remap};
#[cfg(feature = "kernels")]
pub use scatter::{Scatter, scatter};
pub use types::{
    DrawSettings, MAX_COLS, MAX_ROWS, ROUTINES, Routine, SUPPORTED_DTYPES, draw_uniform,
};
#[cfg(feature = "kernels")]
pub use types::{Masked, Rows, Selected};
#[cfg(feature = "kernels")]
pub use vector::{Best, TopkStream, topk_vector};
pub use vector::{
    Construction, Filter, Finish, Selection, Subrange, Tuning, VectorOptions, VectorStrategy,
};
#[cfg(feature = "statistics")]
pub use vector::{WorkloadStats, topk_vector_stats};

#[cfg(feature = "kernels")]
use self::{
    plan::plan_rows,
    row::{
        argtopk_rows,
        job::{Job, Target},
        sort_whole_rows, topk_rows,
    },
};
#[cfg(feature = "kernels")]
use crate::{device::column_dtype, error::KernelError, launch::allocate};

/// Selects values and columns of the k best elements per row.
///
/// `index` is i32, u32 or i64; without lengths also u16 up to 2^16 columns, u8 up to 2^8. `routine`
/// forces one of [`ROUTINES`].
///
/// - `plane` and `block` read the input once, `delegate` twice; `filter` and `sampled` once, and
///   again after a bad sample or for ties.
/// - `cube` and `unit` read it twice and per search step: if exact, 4 to 8 on smooth data, ≤ 138
///   (266 for 64-bit dtypes).
/// - `filter` scratch: values and u32 columns of 4096 to 16,384 elements per row.
/// - Few long rows go through [`topk_vector`] one by one.
/// - Sorted: `plane` and `block` sort keys up to 32 bits, 16 elements per unit (k ≤ 128 for rows
///   of 256, 512 above 512). Otherwise another kernel rewrites the result.
/// - Above k = 512, radix sort: one launch up to 4096 elements (2048 of 64 bits), beyond three per
///   8 bits, with 16 bytes of scratch per element (24 of 64 bits). Without planes, log²k launches.
/// - Whole rows (k = `cols`) are only sorted.
///
/// Errors, before any launch: k exceeds `input.cols`, or the forced routine cannot run.
#[cfg(feature = "kernels")]
pub fn topk(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    routine: Option<Routine>,
) -> Result<Selected, KernelError> {
    if routine.is_none()
        && let Some(sorted) = sort_whole_rows(client, input, options, index, true)?
    {
        return Ok(sorted);
    }
    if index.size() >= 4 && vector::takes_rows(client, input, options, routine) {
        return vector::topk_long_rows(client, input, options, index);
    }
    topk_rows(client, input, options, index, routine)
}

/// Like [`topk`], for columns only; computes values if a second kernel sorts.
///
/// Errors as [`topk`].
#[cfg(feature = "kernels")]
pub fn argtopk(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    routine: Option<Routine>,
) -> Result<Handle, KernelError> {
    if routine.is_none()
        && let Some(sorted) = sort_whole_rows(client, input, options, index, false)?
    {
        return Ok(sorted.indices);
    }
    if index.size() >= 4 && vector::takes_rows(client, input, options, routine) {
        return Ok(vector::topk_long_rows(client, input, options, index)?.indices);
    }
    argtopk_rows(client, input, options, index, routine)
}

/// Zeroes all but the selected elements. With `index`, also returns their columns in index order.
/// Ignores `options.sorted`.
///
/// Errors as [`topk`].
#[cfg(feature = "kernels")]
pub fn topk_mask(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: Option<ElemType>,
    routine: Option<Routine>,
) -> Result<Masked, KernelError> {
    let dtype = index.unwrap_or(u32::elem_type_native());
    let spread = routine.is_none();
    let routine = plan_rows(client, input, options, dtype, routine)?;
    let values = allocate(client, "values", input.rows * input.cols, input.dtype)?;
    let indices = index
        .map(|dtype| allocate(client, "indices", input.rows * options.k, dtype))
        .transpose()?;
    let job = Job { client, input, options, index: dtype, spread };
    if options.k == 0 {
        job.zero(&values)?;
    } else if input.rows > 0 {
        job.select(routine, Target::Dense(&values, indices.as_ref()))?;
    }
    Ok(Masked { values, indices })
}

/// Returns [`topk`] in index order, with columns of [`column_dtype`].
///
/// Errors as [`topk`].
#[cfg(feature = "kernels")]
pub fn compress(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
) -> Result<(Selected, ElemType), KernelError> {
    let index = column_dtype(client, input.cols);
    let options = TopkOptions { sorted: false, ..*options };
    let selected = topk(client, input, &options, index, None)?;
    Ok((selected, index))
}
