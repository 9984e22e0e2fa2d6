//! Selected elements sorted by column.
//!
//! Per chunk of rows, a cube counts elements and claims a run per column; another places them.
//! Atomics order the runs; no sum depends on it.

use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
    server::Handle,
};

use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
    spmm::{compressed::SelectedColumns, tuning::CHUNK},
};

const U32: ElemType = ElemType::UInt(UIntKind::U32);

const COUNTERS: usize = 7;
/// First place and length.
pub(super) const RUN: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Chunk {
    pub units: u32,
    pub plane: u32,
    /// Selected elements, of whole rows.
    pub selected: usize,
}

impl Chunk {
    /// None without room.
    pub fn new(client: &Client, plane: u32, units: u32, k: usize) -> Option<Self> {
        let words = client.properties().hardware.max_shared_memory_size / size_of::<u32>();
        let room = words.checked_sub(COUNTERS * units as usize + 64)?;
        let selected = room.min(CHUNK) / k.max(1) * k.max(1);
        (selected > 0).then_some(Self { units, plane, selected })
    }
}

pub(super) struct ByColumn {
    /// `[total]`: row · k + position.
    pub selected: Handle,
    /// `[width + 1]`.
    pub firsts: Handle,
    /// `[chunks, width, RUN]`.
    pub runs: Handle,
    pub chunks: usize,
}

impl ByColumn {
    pub fn new(
        client: &Client,
        selected: &SelectedColumns,
        [rows, width]: [usize; 2],
        chunk: Chunk,
    ) -> Result<Self, KernelError> {
        let total = rows * selected.k;
        let chunks = total.div_ceil(chunk.selected);
        let sorted = Self {
            selected: allocate(client, "selected elements", total, U32)?,
            firsts: allocate(client, "firsts", width + 1, U32)?,
            runs: allocate(client, "runs", RUN * width * chunks, U32)?,
            chunks,
        };
        let totals = allocate(client, "totals", width, U32)?;
        fill_zero(client, &totals, U32, width)?;
        let grid = || {
            let dim = CubeDim::new_1d(chunk.units);
            Grid::new(client, chunks, dim, total.max(RUN * width * chunks))
        };
        let columns = || argument(selected.columns, "columns", selected.index, total);
        let totals = || argument(&totals, "totals", U32, width);
        // SAFETY: lengths checked; columns < `width` <= units of a cube.
        unsafe {
            let launch = grid()?;
            count_kernel::launch_unchecked(
                client,
                launch.count,
                launch.dim,
                launch.address,
                columns()?,
                sorted.runs(width)?,
                totals()?,
                total,
                chunks,
                width,
                chunk,
                selected.index,
            );
            let launch = grid()?;
            place_kernel::launch_unchecked(
                client,
                launch.count,
                launch.dim,
                launch.address,
                columns()?,
                totals()?,
                sorted.runs(width)?,
                argument(&sorted.firsts, "firsts", U32, width + 1)?,
                argument(&sorted.selected, "selected elements", U32, total)?,
                total,
                chunks,
                width,
                chunk,
                selected.index,
            );
        }
        Ok(sorted)
    }

    pub fn runs(&self, width: usize) -> Result<BufferArg, KernelError> {
        argument(&self.runs, "runs", U32, RUN * width * self.chunks)
    }
}

/// Inclusive, over a cube.
#[cube]
fn scan(own: u32, #[comptime] units: u32) -> u32 {
    let mut sums = Shared::<[u32]>::new_slice(comptime!(2 * units as usize));
    let mut half = 0u32.runtime();
    let mut sum = own + 0;
    sums[UNIT_POS as usize] = own;
    sync_cube();
    let mut step = 1u32.runtime();
    while step < units {
        if UNIT_POS >= step {
            sum += sums[(half + UNIT_POS - step) as usize];
        }
        half = units - half;
        sums[(half + UNIT_POS) as usize] = sum;
        sync_cube();
        step *= 2;
    }
    sum
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn count_kernel<I: Numeric>(
    columns: &[I],
    runs: &mut [u32],
    totals: &[Atomic<u32>],
    all: usize,
    chunks: usize,
    width: usize,
    #[comptime] chunk: Chunk,
    #[define(I)] _index: ElemType,
) {
    let number = CUBE_POS;
    if number >= chunks {
        terminate!();
    }
    let unit = UNIT_POS as usize;
    let counts = Shared::<[Atomic<u32>]>::new_slice(chunk.units as usize);
    counts[unit].store(0u32);
    sync_cube();
    let mut element = number * chunk.selected + unit;
    let end = min((number + 1) * chunk.selected, all);
    while element < end {
        counts[usize::cast_from(columns[element])].fetch_add(1u32);
        element += comptime!(chunk.units as usize);
    }
    sync_cube();
    if unit < width {
        let count = counts[unit].load();
        let run = (number * width + unit) * RUN;
        runs[run] = totals[unit].fetch_add(count);
        runs[run + 1] = count;
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn place_kernel<I: Numeric>(
    columns: &[I],
    totals: &[u32],
    runs: &mut [u32],
    firsts: &mut [u32],
    sorted: &mut [u32],
    all: usize,
    chunks: usize,
    width: usize,
    #[comptime] chunk: Chunk,
    #[define(I)] _index: ElemType,
) {
    let number = CUBE_POS;
    if number >= chunks {
        terminate!();
    }
    let units = comptime!(chunk.units as usize);
    let unit = UNIT_POS as usize;
    let mut tile = Shared::<[u32]>::new_slice(chunk.selected);
    let cursors = Shared::<[Atomic<u32>]>::new_slice(units);
    let mut counts = Shared::<[u32]>::new_slice(units);
    let mut targets = Shared::<[u32]>::new_slice(units);
    let mut total = 0u32;
    let mut count = 0u32;
    let run = (number * width + unit) * RUN;
    if unit < width {
        total = totals[unit];
        count = runs[run + 1];
    }
    let first = scan(total, chunk.units) - total;
    cursors[unit].store(scan(count, chunk.units) - count);
    counts[unit] = count;
    if unit < width {
        let target = first + runs[run];
        targets[unit] = target;
        runs[run] = target;
        if number == 0 {
            firsts[unit] = first;
            if unit + 1 == width {
                firsts[width] = first + total;
            }
        }
    }
    sync_cube();
    let mut element = number * chunk.selected + unit;
    let end = min((number + 1) * chunk.selected, all);
    while element < end {
        let place = cursors[usize::cast_from(columns[element])].fetch_add(1u32);
        tile[place as usize] = element as u32;
        element += units;
    }
    sync_cube();
    let mut column = unit / comptime!(chunk.plane as usize);
    while column < width {
        let count = counts[column];
        // Cursors are at run ends.
        let from = cursors[column].load() - count;
        let mut at = UNIT_POS % chunk.plane;
        while at < count {
            sorted[(targets[column] + at) as usize] = tile[(from + at) as usize];
            at += chunk.plane;
        }
        column += comptime!((chunk.units / chunk.plane) as usize);
    }
}
