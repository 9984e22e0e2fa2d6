use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::super::{kernels::long_rows::copy_row, options::VectorOptions, types::VectorCall};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument},
    topk::{
        key::{Element, with_element},
        options::TopkOptions,
        types::{Rows, Selected},
    },
};

pub(crate) fn topk_long_rows(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
) -> Result<Selected, KernelError> {
    let k = options.k;
    let options = VectorOptions::new(k).with_largest(options.largest).with_sorted(options.sorted);
    let Rows { handle, dtype, rows, cols, row_stride, .. } = input;
    let (dtype, rows) = (*dtype, *rows);
    let topk =
        |input: &Handle| VectorCall::new(client, input, dtype, *cols, &options, index).topk();
    if rows == 1 {
        return topk(handle);
    }
    argument(handle, "input", dtype, input.extent())?;
    let output = Selected {
        values: allocate(client, "values", rows * k, dtype)?,
        indices: allocate(client, "indices", rows * k, index)?,
    };
    if k == 0 {
        return Ok(output);
    }
    for row in 0..rows {
        let start = (row * row_stride * dtype.size()) as u64;
        let best = topk(&handle.clone().offset_start(start))?;
        let (from, to) = ((&best, k), (&output, rows * k, row * k));
        with_element!(dtype, E => copy::<E>(client, from, to, [dtype, index]))?;
    }
    Ok(output)
}

fn copy<E: Element>(
    client: &Client,
    (best, k): (&Selected, usize),
    (output, total, first): (&Selected, usize, usize),
    [dtype, index]: [ElemType; 2],
) -> Result<(), KernelError> {
    let grid = Grid::elementwise(client, k, total)?;
    // SAFETY: the kernel reads below k and writes k places.
    unsafe {
        copy_row::launch_unchecked::<E>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(&best.values, "values", dtype, k)?,
            argument(&best.indices, "indices", index, k)?,
            argument(&output.values, "values", dtype, total)?,
            argument(&output.indices, "indices", index, total)?,
            first,
            k,
            index,
        );
    }
    Ok(())
}
