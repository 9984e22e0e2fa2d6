//! Few long rows, cut into parts for idle multiprocessors.
//!
//! ```text
//! parts   <- the k best of each part of a row, in index order
//! best    <- the k best of a row's parts
//! columns <- those that the parts noted
//! ```
//!
//! Parts lie in the order of columns, so ties and index order are those of the row.

use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
    server::Handle,
};

use super::{argtopk_rows, topk_rows};
use crate::{
    device::{is_gpu, multiprocessors, plane_size},
    error::KernelError,
    launch::{Grid, allocate, argument},
    topk::{
        options::{Method, TopkOptions},
        plan::check_request,
        tuning::{PART_COLS, PART_COLS_PER_K, PARTS_PER_MULTIPROCESSOR},
        types::{MAX_COLS, Rows, Selected},
    },
};

const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// Parts of each row; None where rows are whole.
pub(crate) fn parts(client: &Client, input: &Rows, options: &TopkOptions) -> Option<usize> {
    let Rows { rows, cols, .. } = *input;
    let plain = input.lengths.is_none()
        && input.col_stride == 1
        && input.row_stride == cols
        && options.method == Method::Exact;
    if !plain || rows < 2 || options.k == 0 || !is_gpu(client) || plane_size(client).is_none() {
        return None;
    }
    let least = PART_COLS.max(PART_COLS_PER_K * options.k);
    let most = PARTS_PER_MULTIPROCESSOR * multiprocessors(client) / rows;
    let fits = |parts: &usize| {
        let part = cols / parts;
        // Parts begin with the widest load.
        parts * part == cols && part >= least && part.is_multiple_of(16)
    };
    let powers = (1..=most.max(1).ilog2()).rev().map(|power| 1 << power);
    powers.into_iter().find(fits)
}

/// Candidates of each row: `[rows, parts * k]`.
struct Candidates {
    values: Rows,
    columns: Handle,
}

fn candidates(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    parts: usize,
) -> Result<Candidates, KernelError> {
    check_request(client, input, options, index, MAX_COLS)?;
    let (handle, part) = (input.handle.clone(), input.cols / parts);
    let pieces = Rows::contiguous(handle, input.dtype, input.rows * parts, part);
    let first = topk_rows(client, &pieces, &options.with_sorted(false), U32, None)?;
    let values = Rows::contiguous(first.values, input.dtype, input.rows, parts * options.k);
    Ok(Candidates { values, columns: first.indices })
}

pub(crate) fn topk_by_parts(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    parts: usize,
) -> Result<Selected, KernelError> {
    let candidates = candidates(client, input, options, index, parts)?;
    let best = topk_rows(client, &candidates.values, options, U32, None)?;
    let indices = columns(client, input, options.k, index, parts, &candidates, &best.indices)?;
    Ok(Selected { values: best.values, indices })
}

pub(crate) fn argtopk_by_parts(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    parts: usize,
) -> Result<Handle, KernelError> {
    let candidates = candidates(client, input, options, index, parts)?;
    let best = argtopk_rows(client, &candidates.values, options, U32, None)?;
    columns(client, input, options.k, index, parts, &candidates, &best)
}

/// Columns of places among the candidates.
fn columns(
    client: &Client,
    input: &Rows,
    k: usize,
    index: ElemType,
    parts: usize,
    candidates: &Candidates,
    places: &Handle,
) -> Result<Handle, KernelError> {
    let total = input.rows * k;
    let output = allocate(client, "indices", total, index)?;
    let grid = Grid::elementwise(client, total, total * parts)?;
    // SAFETY: `argument` checks lengths; places are below `parts * k`.
    unsafe {
        columns_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(places, "places", U32, total)?,
            argument(&candidates.columns, "columns", U32, total * parts)?,
            argument(&output, "indices", index, total)?,
            k as u32,
            (input.cols / parts) as u32,
            parts as u32,
            index,
        );
    }
    Ok(output)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn columns_kernel<I: Numeric>(
    places: &[u32],
    columns: &[u32],
    output: &mut [I],
    k: u32,
    part: u32,
    parts: u32,
    #[define(I)] _index: ElemType,
) {
    let at = ABSOLUTE_POS;
    if at < output.len() {
        let place = places[at];
        let row = at / k as usize;
        let own = row * (parts * k) as usize + place as usize;
        output[at] = I::cast_from(place / k * part + columns[own]);
    }
}
