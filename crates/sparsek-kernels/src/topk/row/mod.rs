//! Selection from rows. `plane` and `block` hold a row in [`register`]s, or as [`packed_f16`];
//! [`delegate`] and [`sampled`] read it twice and once, with a plane and a cube; [`cube`] and
//! [`unit`] read it in each pass.

mod candidates;
mod config;
mod cube;
mod delegate;
pub(crate) mod job;
mod launch;
mod layout;
mod loaded;
mod output;
mod packed_f16;
mod register;
mod sampled;
mod sort_in_memory;
mod sort_in_registers;
mod unit;

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use self::job::{Job, Target};
use crate::{
    error::KernelError,
    launch::allocate,
    topk::{
        options::TopkOptions,
        plan::plan_rows,
        types::{Routine, Rows, Selected},
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
