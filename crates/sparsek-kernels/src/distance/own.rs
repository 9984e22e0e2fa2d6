//! Nearest rows without the row itself.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument},
};

/// Up to so many neighbours each is written by a unit of its own, which looks for the row itself among those before it; of more, all of a
/// row by one. 17 of 6040 rows took 13 µs by one unit for each row (NVIDIA H200).
const FEW: usize = 64;

/// The `k` best of `k + 1` for each of some rows, sorted: all but the row itself, or but the last where it is not among them.
/// Row `i` is the index's row `first + i`. Values are contiguous `[rows, k + 1]` of `dtype`, indices of `index`; so is the
/// result, `[rows, k]`.
///
/// # Errors
///
/// [`KernelError`] for buffers that are too short or too large.
pub fn without_own(
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
        let few = k <= FEW;
        let grid = Grid::elementwise(client, if few { rows * k } else { rows }, all)?;
        // SAFETY: `argument` checks the lengths.
        unsafe {
            without_own_kernel::launch_unchecked(
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
                few,
                [dtype, index],
            );
        }
    }
    Ok([kept, kept_indices])
}

/// A unit for each row, or of few neighbours for each of them.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "two buffers in, two out")]
fn without_own_kernel<S: Numeric, I: Numeric>(
    values: &[S],
    indices: &[I],
    kept: &mut [S],
    kept_indices: &mut [I],
    rows: usize,
    k: usize,
    first: usize,
    #[comptime] few: bool,
    #[define(S, I)] _dtypes: [ElemType; 2],
) {
    let row = if comptime!(few) {
        ABSOLUTE_POS / k
    } else {
        ABSOLUTE_POS
    };
    if row >= rows {
        terminate!();
    }
    let own = I::cast_from(first + row);
    let from = row * (k + 1);
    let mut shift = 0usize;
    if comptime!(few) {
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
