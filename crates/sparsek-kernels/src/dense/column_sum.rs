use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    tuning::{FLIGHT, RUN},
    types::DenseRows,
};
use crate::{
    device::rounded_accumulator,
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
};

/// Adds all rows: `[width]` in their dtype. Scratch: a row per 128 rows.
pub fn column_sums(client: &Client, x: &DenseRows) -> Result<Handle, KernelError> {
    let sum = rounded_accumulator(client, x.dtype)?;
    reduce_rows(client, x, sum, x.dtype)
}

pub(super) fn reduce_rows(
    client: &Client,
    x: &DenseRows,
    sum: ElemType,
    output: ElemType,
) -> Result<Handle, KernelError> {
    let runs = x.rows.div_ceil(RUN).max(1);
    let dtype = if runs == 1 { output } else { sum };
    let sums = allocate(client, "sums", runs * x.width, dtype)?;
    if x.width == 0 {
        return Ok(sums);
    }
    if x.rows == 0 {
        fill_zero(client, &sums, dtype, x.width)?;
        return Ok(sums);
    }
    let vector = x.vector(client, &[]);
    let units = runs * (x.width / vector);
    let grid = Grid::elementwise(client, units, x.elements())?;
    // SAFETY: lengths checked.
    unsafe {
        column_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            vector,
            argument(x.handle, "rows", x.dtype, x.elements())?,
            argument(&sums, "sums", dtype, runs * x.width)?,
            x.rows,
            x.width / vector,
            [x.dtype, sum, dtype],
        );
    }
    if runs == 1 {
        return Ok(sums);
    }
    let rest = DenseRows { handle: &sums, dtype: sum, rows: runs, width: x.width };
    reduce_rows(client, &rest, sum, output)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn column_kernel<E: Float, S: Float, O: Float, N: Size>(
    x: &[Vector<E, N>],
    sums: &mut [Vector<O, N>],
    rows: usize,
    across: usize,
    #[define(E, S, O)] _dtypes: [ElemType; 3],
) {
    let run = ABSOLUTE_POS / across;
    let column = ABSOLUTE_POS - run * across;
    let start = run * RUN;
    if start >= rows {
        terminate!();
    }
    let end = min(start + RUN, rows);
    let mut sum = Vector::<S, N>::zeroed();
    let mut row = start;
    while row < end {
        let mut values = Array::<Vector<E, N>>::new(FLIGHT);
        #[unroll]
        for i in 0..FLIGHT {
            let own = min(row + comptime!(i), end - 1);
            values[i] = x[own * across + column];
        }
        #[unroll]
        for i in 0..FLIGHT {
            if row + comptime!(i) < end {
                sum += Vector::<S, N>::cast_from(values[i]);
            }
        }
        row += FLIGHT;
    }
    sums[run * across + column] = Vector::cast_from(sum);
}
