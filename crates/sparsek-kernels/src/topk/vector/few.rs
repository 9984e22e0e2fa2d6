//! Long rows, one or a few, as vectors.

use crate::device::is_gpu;
use cubecl::{ir::ElemType, prelude::*};

use super::{VectorOptions, topk_vector, tuning::Tuning};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;
use crate::topk::key::Element;
use crate::topk::key::with_element;
use crate::topk::options::Method;
use crate::topk::options::TopkOptions;
use crate::topk::types::MAX_COLS;
use crate::topk::types::Routine;
use crate::topk::types::Rows;
use crate::topk::types::Selected;

/// Most members for which a row that is not much longer than those of the routines for rows is a vector, and elements
/// for each of them: then few launches suffice.
const MEMBERS: usize = 1 << 10;
const SHARE: usize = 16;
/// Elements of a row from which on it is a vector for any k; for each row so many, since rows follow one another. A cube
/// takes 0.16 ms for a row of 2^20, and 0.61 for one of 2^22; a vector of 2^22 takes 0.024 (NVIDIA H200).
const LONG: usize = 1 << 20;

/// Whether rows are left to [`topk_vector`]: long and few ones, and one alone that is too long for the routines.
pub(crate) fn takes(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    routine: Option<Routine>,
) -> bool {
    let plain = input.col_stride == 1
        && input.lengths.is_none()
        && options.method == Method::Exact
        && routine.is_none();
    let Rows { rows, cols, .. } = *input;
    if !plain || rows == 0 || options.k > cols {
        return false;
    }
    if rows == 1 && cols > MAX_COLS {
        return true;
    }
    let few = options.k <= MEMBERS && options.k * SHARE <= cols;
    let alone = rows == 1 && few && cols > Tuning::default().row;
    // Rows of a buffer have to begin where the device lets buffers begin.
    let step = input.row_stride * input.dtype.size();
    let aligned = rows == 1 || step.is_multiple_of(client.properties().memory.alignment as usize);
    // Elsewhere the routines take any row.
    (alone || (rows * LONG <= cols && aligned)) && is_gpu(client)
}

/// The members of each row, one row after the other.
pub(crate) fn topk_few(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
) -> Result<Selected, KernelError> {
    let vector = VectorOptions {
        largest: options.largest,
        sorted: options.sorted,
        ..VectorOptions::new(options.k)
    };
    let Rows {
        handle,
        dtype,
        rows,
        cols,
        row_stride,
        ..
    } = input;
    if *rows == 1 {
        return topk_vector(client, handle, *dtype, *cols, &vector, index);
    }
    argument(handle, "input", *dtype, input.extent())?;
    let output = Selected {
        values: allocate(client, "values", rows * options.k, *dtype)?,
        indices: allocate(client, "indices", rows * options.k, index)?,
    };
    if options.k == 0 {
        return Ok(output);
    }
    for row in 0..*rows {
        let start = (row * row_stride * dtype.size()) as u64;
        let start = handle.clone().offset_start(start);
        let best = topk_vector(client, &start, *dtype, *cols, &vector, index)?;
        with_element!(*dtype, E => place::<E>(client, &best, &output, row, options.k, (*dtype, *rows, index)))?;
    }
    Ok(output)
}

fn place<E: Element>(
    client: &Client,
    best: &Selected,
    output: &Selected,
    row: usize,
    k: usize,
    (dtype, rows, index): (ElemType, usize, ElemType),
) -> Result<(), KernelError> {
    let grid = Grid::elementwise(client, k, rows * k)?;
    // SAFETY: the kernel reads below k and writes to the k places of the row.
    unsafe {
        place_row::launch_unchecked::<E>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(&best.values, "values", dtype, k)?,
            argument(&best.indices, "indices", index, k)?,
            argument(&output.values, "values", dtype, rows * k)?,
            argument(&output.indices, "indices", index, rows * k)?,
            row * k,
            k,
            index,
        );
    }
    Ok(())
}

/// The members of a row at their place among those of all rows.
#[cube(launch_unchecked, address_type = "dynamic")]
fn place_row<E: Element, I: Numeric>(
    best: &[E],
    columns: &[I],
    values: &mut [E],
    indices: &mut [I],
    first: usize,
    k: usize,
    #[define(I)] _index: ElemType,
) {
    let member = ABSOLUTE_POS;
    if member < k {
        values[first + member] = best[member];
        indices[first + member] = columns[member];
    }
}
