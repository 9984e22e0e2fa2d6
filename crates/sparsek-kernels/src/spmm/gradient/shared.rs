//! ```text
//! transpose dy, times the factors of its rows
//! sort the selected elements by column                              (by_column)
//! for each block of rows of dy, for each column c:                  (column_blocks, block_sums)
//!     load the block of column c into shared memory
//!     sums[block, (j, c)] = Σ dy[i, c]   over the entries (i, j) of the block
//! dx[j, s] = cols[j] Σ sums[block, (j, columns[j, s])]              in order of blocks
//! ```
//!
//! Entries alone order each sum; MaxK-GNN keeps a row of `dy` and adds by atomics.

use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use super::{
    block_sums::{BlockConfig, WORDS, sums_kernel},
    by_column::{ByColumn, Chunk, RUN},
    column_blocks::{ColumnBlocks, ROUTINE, refuse},
};
use crate::{
    device::{rounded_accumulator, units_per_cube},
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
    spmm::{
        compressed::Compressed,
        operand::Operand,
        plane_layout::require_plane_barrier,
        tuning::{CUBES_PER_BLOCK, SHARED_UNITS, TRANSPOSED_TILE},
    },
};

#[derive(Clone, Copy)]
pub(crate) struct SharedPlan {
    plane: u32,
    chunk: Chunk,
}

pub(crate) fn plan(
    client: &Client,
    transposed: &Operand,
    x: &Compressed,
    blocks: &ColumnBlocks,
) -> Result<SharedPlan, KernelError> {
    let plane = require_plane_barrier(client, ROUTINE)?;
    if x.dtype == ElemType::Float(FloatKind::F64) {
        return refuse("it adds f32, f16 and bf16 only".into());
    }
    rounded_accumulator(client, x.dtype)?;
    if transposed.weights.is_some() {
        return refuse("entries have weights".into());
    }
    let units = units_per_cube(client, SHARED_UNITS);
    if x.width > units as usize {
        let width = x.width;
        return refuse(format!("{width} columns; the limit is {units}"));
    }
    let room = ColumnBlocks::max_columns(client);
    if blocks.columns() > room {
        let columns = blocks.columns();
        return refuse(format!("blocks of {columns} columns; the limit is {room}"));
    }
    if transposed.csr.rows * x.k > u32::MAX as usize {
        return refuse("more than 2^32 selected elements".into());
    }
    match Chunk::new(client, plane, units, x.k) {
        Some(chunk) => Ok(SharedPlan { plane, chunk }),
        None => refuse(format!("no room for {} selected elements of a row", x.k)),
    }
}

/// Computes [`gradient`](crate::spmm::gradient) with columns of `upstream` in shared memory, by
/// [blocks](ColumnBlocks) of `transposed`.
///
/// Scratch: `upstream` in f32; per selected element, 4 bytes and 4 per block.
///
/// Errors: f64, weights, more columns than units of a cube, no equal planes of ≥ 8 units.
pub fn gradient_shared(
    client: &Client,
    transposed: &Operand,
    upstream: &Handle,
    x: &Compressed,
    blocks: &ColumnBlocks,
) -> Result<Handle, KernelError> {
    let SharedPlan { plane, chunk } = plan(client, transposed, x, blocks)?;
    let (dtype, width, k) = (x.dtype, x.width, x.k);
    let csr = transposed.csr;
    let sum = f32::elem_type_native();
    let index = u32::elem_type_native();
    let total = csr.rows * k;
    let output = allocate(client, "gradient", total, dtype)?;
    if total == 0 || csr.cols == 0 {
        fill_zero(client, &output, dtype, total)?;
        return Ok(output);
    }
    let count = blocks.count();
    let stride = count * blocks.columns();
    let columns = allocate(client, "columns of upstream", width * stride, sum)?;
    let partials = allocate(client, "sums of blocks", total * count, sum)?;
    let sorted = ByColumn::new(client, &x.selected(), [csr.rows, width], chunk)?;
    let arguments = transposed.arguments(client, dtype, sum)?;
    let largest = (width * stride).max(total * count).max(blocks.words());
    let config = BlockConfig { plane, units: chunk.units, columns: blocks.columns() };
    let selected = || argument(&sorted.selected, "selected elements", index, total);
    let sums = || argument(&partials, "sums of blocks", sum, total * count);
    // SAFETY: lengths checked; prepared indices are in range.
    unsafe {
        let across = width.div_ceil(TRANSPOSED_TILE as usize);
        let tiles = csr.cols.div_ceil(TRANSPOSED_TILE as usize) * across;
        let dim = CubeDim::new_2d(TRANSPOSED_TILE, TRANSPOSED_TILE / 4);
        let grid = Grid::new(client, tiles, dim, largest)?;
        transpose_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(upstream, "upstream", dtype, csr.cols * width)?,
            arguments.cols,
            argument(&columns, "columns of upstream", sum, width * stride)?,
            csr.cols,
            width,
            stride,
            across,
            transposed.scales.cols.is_some(),
            dtype,
        );
        let dim = CubeDim::new_2d(plane, config.units / plane);
        let grid = Grid::new(client, count * CUBES_PER_BLOCK, dim, largest)?;
        sums_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            WORDS,
            selected()?,
            argument(&sorted.firsts, "firsts", index, width + 1)?,
            blocks.extents()?,
            blocks.entries()?,
            argument(&columns, "columns of upstream", sum, width * stride)?,
            sums()?,
            csr.rows,
            count,
            k as u32,
            stride,
            width as u32,
            config,
        );
        let dim = CubeDim::new_1d(config.units);
        let grid = Grid::new(client, sorted.chunks, dim, largest)?;
        combine_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            selected()?,
            sorted.runs(width)?,
            sums()?,
            arguments.rows,
            argument(&output, "gradient", dtype, total)?,
            count,
            sorted.chunks,
            width,
            k,
            chunk,
            transposed.scales.rows.is_some(),
            dtype,
        );
    }
    Ok(output)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn transpose_kernel<E: Float>(
    upstream: &[E],
    factors: &[f32],
    columns: &mut [f32],
    rows: usize,
    width: usize,
    stride: usize,
    across: usize,
    #[comptime] scaled: bool,
    #[define(E)] _dtype: ElemType,
) {
    let down = CUBE_POS / across;
    let first_row = down * comptime!(TRANSPOSED_TILE as usize);
    let first_column = (CUBE_POS - down * across) * comptime!(TRANSPOSED_TILE as usize);
    let mut tile =
        Shared::<[f32]>::new_slice(comptime!((TRANSPOSED_TILE * (TRANSPOSED_TILE + 1)) as usize));
    #[unroll]
    for i in 0..4u32 {
        let line = UNIT_POS_Y + comptime!(i * TRANSPOSED_TILE / 4);
        let row = first_row + line as usize;
        let column = first_column + UNIT_POS_X as usize;
        if row < rows && column < width {
            let mut value = f32::cast_from(upstream[row * width + column]);
            if comptime!(scaled) {
                value *= factors[row];
            }
            tile[(line * comptime!(TRANSPOSED_TILE + 1) + UNIT_POS_X) as usize] = value;
        }
    }
    sync_cube();
    #[unroll]
    for i in 0..4u32 {
        let line = UNIT_POS_Y + comptime!(i * TRANSPOSED_TILE / 4);
        let row = first_row + UNIT_POS_X as usize;
        let column = first_column + line as usize;
        if row < rows && column < width {
            columns[column * stride + row] =
                tile[(UNIT_POS_X * comptime!(TRANSPOSED_TILE + 1) + line) as usize];
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn combine_kernel<E: Float>(
    selected: &[u32],
    runs: &[u32],
    partials: &[f32],
    factors: &[f32],
    gradient: &mut [E],
    blocks: usize,
    chunks: usize,
    width: usize,
    k: usize,
    #[comptime] chunk: Chunk,
    #[comptime] scaled: bool,
    #[define(E)] _dtype: ElemType,
) {
    let number = CUBE_POS;
    if number >= chunks {
        terminate!();
    }
    let total = selected.len();
    let first = number * chunk.selected;
    let mut tile = Shared::<[f32]>::new_slice(chunk.selected);
    let mut column = (UNIT_POS / chunk.plane) as usize;
    while column < width {
        let run = (number * width + column) * RUN;
        let count = runs[run + 1];
        let mut at = UNIT_POS % chunk.plane;
        while at < count {
            let place = (runs[run] + at) as usize;
            let mut sum = 0.0f32;
            for block in 0..blocks {
                sum += partials[block * total + place];
            }
            tile[selected[place] as usize - first] = sum;
            at += chunk.plane;
        }
        column += comptime!((chunk.units / chunk.plane) as usize);
    }
    sync_cube();
    let mut at = UNIT_POS as usize;
    let count = min(chunk.selected, total - first);
    while at < count {
        let mut sum = tile[at];
        if comptime!(scaled) {
            sum *= factors[(first + at) / k];
        }
        gradient[first + at] = E::cast_from(sum);
        at += comptime!(chunk.units as usize);
    }
}
