use cubecl::{prelude::*, server::Handle};

use super::types::check_entries;
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument},
    primitives::csr::first_from,
};

/// Finds row offsets by binary search: `[rows + 1]` `i32`.
///
/// `ascending` has each entry's row: `[nnz]` `i32` below `rows`.
pub fn row_offsets(
    client: &Client,
    ascending: &Handle,
    nnz: usize,
    rows: usize,
) -> Result<Handle, KernelError> {
    check_entries(nnz)?;
    let int = i32::elem_type_native();
    let offsets = allocate(client, "offsets", rows + 1, int)?;
    let grid = Grid::elementwise(client, rows + 1, nnz.max(rows + 1))?;
    // SAFETY: lengths checked.
    unsafe {
        offsets_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(ascending, "rows of entries", int, nnz)?,
            argument(&offsets, "offsets", int, rows + 1)?,
            nnz as i32,
        );
    }
    Ok(offsets)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn offsets_kernel(ascending: &[i32], offsets: &mut [i32], nnz: i32) {
    if ABSOLUTE_POS >= offsets.len() {
        terminate!();
    }
    offsets[ABSOLUTE_POS] = first_from(ascending, 0, nnz, i32::cast_from(ABSOLUTE_POS));
}
