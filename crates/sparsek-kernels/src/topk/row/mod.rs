//! Selection from rows: routines `plane` and `block` in [`register`] and [`packed_f16`], others in
//! files of their names.

pub(super) mod bounds;
mod candidates;
mod config;
mod cube;
mod delegate;
mod filter;
mod filter_launch;
mod filter_list;
pub(crate) mod job;
mod launch;
mod layout;
mod loaded;
mod output;
mod packed_f16;
mod radix_launch;
mod radix_select;
mod radix_sort;
mod register;
mod sampled;
mod sort_in_memory;
mod sort_in_registers;
mod unit;

use cubecl::{ir::ElemType, prelude::*, server::Handle};

pub(super) use layout::missing_index;

use self::job::{Job, Target};
use crate::{
    error::KernelError,
    launch::allocate,
    topk::{
        options::TopkOptions,
        plan::{check_request, plan_rows},
        tuning::MAX_RANKED,
        types::{MAX_COLS, Routine, Rows, Selected},
    },
};

pub(crate) fn topk_rows(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    routine: Option<Routine>,
) -> Result<Selected, KernelError> {
    let spread = routine.is_none();
    let routine = plan_rows(client, input, options, index, routine)?;
    let count = input.rows * options.k;
    let values = allocate(client, "values", count, input.dtype)?;
    let indices = allocate(client, "indices", count, index)?;
    if count == 0 {
        return Ok(Selected { values, indices });
    }
    let job = Job { client, input, options, index, spread };
    job.select(routine, Target::Both(&values, &indices))?;
    if job.orders(routine) { Ok(Selected { values, indices }) } else { job.order(values, indices) }
}

/// None where another path sorts.
pub(crate) fn sort_whole_rows(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    values: bool,
) -> Result<Option<Selected>, KernelError> {
    let whole = options.sorted && options.k == input.cols && input.lengths.is_none();
    if !whole || options.k <= MAX_RANKED || input.rows == 0 {
        return Ok(None);
    }
    let longest = if input.rows == 1 { u32::MAX as usize } else { MAX_COLS };
    check_request(client, input, options, index, longest)?;
    Job { client, input, options, index, spread: true }.sort_input(values)
}

pub(crate) fn argtopk_rows(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    routine: Option<Routine>,
) -> Result<Handle, KernelError> {
    let chosen = plan_rows(client, input, options, index, routine)?;
    let count = input.rows * options.k;
    let job = Job { client, input, options, index, spread: routine.is_none() };
    if count > 0 && !job.orders(chosen) {
        return Ok(topk_rows(client, input, options, index, routine)?.indices);
    }
    let indices = allocate(client, "indices", count, index)?;
    if count > 0 {
        job.select(chosen, Target::Indices(&indices))?;
    }
    Ok(indices)
}
