//! Maps columns to cache places: pages, then offsets.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{key::require_index, row::missing_index};
use crate::{
    device::require_dtype,
    error::KernelError,
    launch::{Grid, allocate, argument, placeholder},
};

/// Columns to map; maps share their dtype.
#[derive(Clone, Copy, Debug)]
pub struct Remap<'a> {
    /// `[rows, k]`; missing indices (all bits set) stay.
    pub indices: &'a Handle,
    /// i32, u32 or i64.
    pub index: ElemType,
    /// Rows.
    pub rows: usize,
    /// Indices per row.
    pub k: usize,
    /// Column c becomes `table[r, c / size] * size + c % size`.
    pub pages: Option<Pages<'a>>,
    /// Added per row: `[rows]`.
    pub offsets: Option<&'a Handle>,
}

/// Page table.
#[derive(Clone, Copy, Debug)]
pub struct Pages<'a> {
    /// `[rows, per_row]`.
    pub table: &'a Handle,
    /// Pages per row.
    pub per_row: usize,
    /// Columns per page, ≥ 1.
    pub size: usize,
}

/// Returns mapped indices, `[rows, k]`; missing if pages lie beyond the table.
pub fn remap(client: &Client, request: &Remap) -> Result<Handle, KernelError> {
    let Remap { index, rows, k, .. } = *request;
    require_index(index, u32::MAX as usize)?;
    require_dtype(client, index)?;
    let total = rows * k;
    let output = allocate(client, "indices", total, index)?;
    if total == 0 {
        return Ok(output);
    }
    let (per_row, size) = request.pages.map_or((0, 1), |pages| (pages.per_row, pages.size));
    let unused = placeholder(client);
    let table = match request.pages {
        Some(pages) => argument(pages.table, "pages", index, rows * per_row)?,
        None => argument(&unused, "pages", index, 1)?,
    };
    let offsets = match request.offsets {
        Some(offsets) => argument(offsets, "offsets", index, rows)?,
        None => argument(&unused, "offsets", index, 1)?,
    };
    let maps = [request.pages.is_some(), request.offsets.is_some()];
    let grid = Grid::elementwise(client, total, total.max(rows * per_row))?;
    // SAFETY: lengths checked; the kernel checks places and pages.
    unsafe {
        remap_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(request.indices, "indices", index, total)?,
            table,
            offsets,
            argument(&output, "output", index, total)?,
            k as u32,
            per_row,
            size as u32,
            maps,
            index,
        );
    }
    Ok(output)
}

/// Not optional buffers: the kernel cache on disk distinguishes them only by number.
#[cube(launch_unchecked, address_type = "dynamic")]
fn remap_kernel<I: Numeric>(
    indices: &[I],
    table: &[I],
    offsets: &[I],
    output: &mut [I],
    k: u32,
    per_row: usize,
    page: u32,
    #[comptime] maps: [bool; 2],
    #[define(I)] _index: ElemType,
) {
    let place = ABSOLUTE_POS;
    if place >= output.len() {
        terminate!();
    }
    let row = place / k as usize;
    let missing = missing_index::<I>();
    let mut index = indices[place];
    if index != missing {
        if comptime!(maps[0]) {
            let column = u32::cast_from(index);
            let own = (column / page) as usize;
            index = missing;
            if own < per_row {
                let first = table[row * per_row + own] * I::cast_from(page);
                index = first + I::cast_from(column % page);
            }
        }
        if comptime!(maps[1]) {
            if index != missing {
                index += offsets[row];
            }
        }
    }
    output[place] = index;
}
