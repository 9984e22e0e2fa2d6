//! Gradient of top-k: scatters values to their columns.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    key::require_index,
    tuning::{ASSEMBLED_BYTES, CUBE_UNITS},
};
use crate::{
    device::{has_many_units, is_llvmpipe, require_dtype, units_per_cube},
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
};

/// Values to scatter.
#[derive(Clone, Debug)]
pub struct Scatter<'a> {
    /// `[rows, k]`, or `[rows, cols]` if `dense`.
    pub source: &'a Handle,
    /// Source and result dtype.
    pub dtype: ElemType,
    /// `[rows, k]`, distinct per row; skipped unless below `cols`.
    pub indices: &'a Handle,
    /// i32, u32 or i64; u16 or u8 if columns fit.
    pub index: ElemType,
    /// Result rows.
    pub rows: usize,
    /// Result columns.
    pub cols: usize,
    /// Columns per row.
    pub k: usize,
    /// Whether `source` is dense.
    pub dense: bool,
}

/// Returns `[rows, cols]`, zero outside the given columns.
///
/// Deterministic, without atomics. Rows above 16 KiB are zeroed first.
pub fn scatter(client: &Client, request: &Scatter) -> Result<Handle, KernelError> {
    let Scatter { dtype, index, rows, cols, k, dense, .. } = *request;
    require_dtype(client, dtype)?;
    require_index(index, cols)?;
    if cols > u32::MAX as usize {
        return Err(KernelError::RowTooLong { cols, limit: u32::MAX as usize });
    }
    let elements = rows * cols;
    let output = allocate(client, "output", elements, dtype)?;
    let total = rows * k;
    if total == 0 {
        fill_zero(client, &output, dtype, elements)?;
        return Ok(output);
    }
    let needed = if dense { elements } else { total };
    let source = argument(request.source, "source", dtype, needed)?;
    let indices = argument(request.indices, "indices", index, total)?;
    let result = argument(&output, "output", dtype, elements)?;
    let assembled = assembled(client, cols, dtype.size());
    // SAFETY: lengths checked; the kernels check columns.
    unsafe {
        if assembled > 0 {
            let units = units_per_cube(client, CUBE_UNITS);
            let cubes = rows.div_ceil(assembled / cols);
            let grid = Grid::new(client, cubes, CubeDim::new_1d(units), elements)?;
            assemble_rows::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                source,
                indices,
                result,
                rows,
                k as u32,
                cols as u32,
                dense,
                assembled,
                units,
                [dtype, index],
            );
        } else {
            fill_zero(client, &output, dtype, elements)?;
            let grid = Grid::elementwise(client, total, elements)?;
            scatter_selected::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                source,
                indices,
                result,
                total,
                k as u32,
                cols as u32,
                dense,
                [dtype, index],
            );
        }
    }
    Ok(output)
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn assemble_rows<E: Numeric, I: Numeric>(
    source: &[E],
    indices: &[I],
    output: &mut [E],
    rows: usize,
    k: u32,
    cols: u32,
    #[comptime] dense: bool,
    #[comptime] assembled: usize,
    #[comptime] units: u32,
    #[define(E, I)] _dtypes: [ElemType; 2],
) {
    let cube_rows = comptime!(assembled as u32) / cols;
    let first = CUBE_POS * cube_rows as usize;
    if first >= rows {
        terminate!();
    }
    let own_rows = u32::cast_from(min(rows - first, cube_rows as usize));
    let start = first * cols as usize;
    let mut tile = Shared::<[E]>::new_slice(assembled);
    let mut place = UNIT_POS;
    while place < own_rows * cols {
        tile[place as usize] = E::from_int(0);
        place += units;
    }
    sync_cube();
    let mut slot = UNIT_POS;
    while slot < own_rows * k {
        let from = first * k as usize + slot as usize;
        let column = usize::cast_from(indices[from]);
        if column < cols as usize {
            let target = (slot / k * cols) as usize + column;
            let from = if dense { start + target } else { from };
            tile[target] = source[from];
        }
        slot += units;
    }
    sync_cube();
    let mut place = UNIT_POS;
    while place < own_rows * cols {
        output[start + place as usize] = tile[place as usize];
        place += units;
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn scatter_selected<E: Numeric, I: Numeric>(
    source: &[E],
    indices: &[I],
    output: &mut [E],
    total: usize,
    k: u32,
    cols: u32,
    #[comptime] dense: bool,
    #[define(E, I)] _dtypes: [ElemType; 2],
) {
    let position = ABSOLUTE_POS;
    if position >= total {
        terminate!();
    }
    let row = position / k as usize;
    let column = usize::cast_from(indices[position]);
    if column < cols as usize {
        let target = row * cols as usize + column;
        let from = if dense { target } else { position };
        output[target] = source[from];
    }
}

pub(crate) fn assembled(client: &Client, cols: usize, size: usize) -> usize {
    let most = ASSEMBLED_BYTES / size;
    let room = client.properties().hardware.max_shared_memory_size;
    let small = !has_many_units(client) || room < 2 * ASSEMBLED_BYTES;
    if cols > most || small || is_llvmpipe(client) { 0 } else { most }
}
