use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::tuning::EXCLUDE_SELF_UNIT_EACH;
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument},
};

/// Drops each row, or else the last, from its `k+1` nearest.
///
/// Row `i` is index row `first+i`. Inputs: sorted `[rows, k+1]`; results: `[rows, k]`.
pub fn exclude_self(
    client: &Client,
    [values, indices]: [&Handle; 2],
    [rows, k, first]: [usize; 3],
    dtype: ElemType,
    index: ElemType,
) -> Result<[Handle; 2], KernelError> {
    let kept = allocate(client, "values", rows * k, dtype)?;
    let kept_indices = allocate(client, "indices", rows * k, index)?;
    if rows * k > 0 {
        let all = rows * (k + 1);
        let unit_each = k <= EXCLUDE_SELF_UNIT_EACH;
        let grid = Grid::elementwise(client, if unit_each { rows * k } else { rows }, all)?;
        // SAFETY: lengths checked.
        unsafe {
            exclude_self_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(values, "values", dtype, all)?,
                argument(indices, "indices", index, all)?,
                argument(&kept, "kept values", dtype, rows * k)?,
                argument(&kept_indices, "kept indices", index, rows * k)?,
                rows,
                k,
                first,
                unit_each,
                [dtype, index],
            );
        }
    }
    Ok([kept, kept_indices])
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn exclude_self_kernel<S: Numeric, I: Numeric>(
    values: &[S],
    indices: &[I],
    kept: &mut [S],
    kept_indices: &mut [I],
    rows: usize,
    k: usize,
    first: usize,
    #[comptime] unit_each: bool,
    #[define(S, I)] _dtypes: [ElemType; 2],
) {
    let row = if comptime!(unit_each) { ABSOLUTE_POS / k } else { ABSOLUTE_POS };
    if row >= rows {
        terminate!();
    }
    let own = I::cast_from(first + row);
    let from = row * (k + 1);
    let mut shift = 0usize;
    if comptime!(unit_each) {
        let place = ABSOLUTE_POS - row * k;
        for before in 0..place + 1 {
            shift = select(indices[from + before] == own, 1usize, shift);
        }
        kept[ABSOLUTE_POS] = values[from + place + shift];
        kept_indices[ABSOLUTE_POS] = indices[from + place + shift];
    } else {
        let to = row * k;
        for place in 0..k {
            if indices[from + place] == own {
                shift = 1usize;
            }
            kept[to + place] = values[from + place + shift];
            kept_indices[to + place] = indices[from + place + shift];
        }
    }
}
