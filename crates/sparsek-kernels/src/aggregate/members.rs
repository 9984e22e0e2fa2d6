//! The members of compressed rows by column: which they are, so that those of a column stand together.
//!
//! A cube has a chunk of rows, and of each column the run of those members that are in the chunk. Runs of a column follow each other as
//! cubes ask for their place, and members of a run as units do; what is computed for a member does not depend on where it stands.
#![allow(
    clippy::manual_div_ceil,
    reason = "kernels know no `div_ceil` on runtime integers"
)]
#![allow(
    clippy::identity_op,
    reason = "kernels copy what changes later by an operation"
)]

use crate::launch::fill_zero;
use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
    server::Handle,
};

use super::gather::Picked;
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;

const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// Most members of a chunk.
const CHUNK: usize = 16_384;
/// Words of shared memory beside a chunk, for each unit: three counters, and those of two [`scan`]s.
const COUNTERS: usize = 7;
/// Words of a run: where it begins, and members.
pub(super) const RUN: usize = 2;

/// How rows are shared out to cubes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Chunk {
    pub units: u32,
    pub plane: u32,
    /// Members of a chunk, of whole rows.
    pub members: usize,
}

impl Chunk {
    /// Where a unit for each column and the members of a row find room.
    pub fn new(client: &Client, plane: u32, units: u32, k: usize) -> Option<Self> {
        let words = client.properties().hardware.max_shared_memory_size / size_of::<u32>();
        let room = words.checked_sub(COUNTERS * units as usize + 64)?;
        let members = room.min(CHUNK) / k.max(1) * k.max(1);
        (members > 0).then_some(Self {
            units,
            plane,
            members,
        })
    }
}

/// Members by column.
pub(super) struct Members {
    /// `[total]`: row · k + place.
    pub members: Handle,
    /// `[width + 1]`: where those of a column begin.
    pub firsts: Handle,
    /// `[chunks, width, RUN]`.
    pub runs: Handle,
    pub chunks: usize,
}

impl Members {
    pub fn new(
        client: &Client,
        picked: &Picked,
        [rows, width]: [usize; 2],
        chunk: Chunk,
    ) -> Result<Self, KernelError> {
        let total = rows * picked.k;
        let chunks = total.div_ceil(chunk.members);
        let made = Self {
            members: allocate(client, "members", total, U32)?,
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
        let columns = || argument(picked.columns, "columns", picked.index, total);
        let totals = || argument(&totals, "totals", U32, width);
        // SAFETY: `argument` checks the lengths; columns are below `width` by the contract of `Compressed`.
        unsafe {
            let Grid {
                count,
                dim,
                address,
            } = grid()?;
            count_kernel::launch_unchecked(
                client,
                count,
                dim,
                address,
                columns()?,
                made.runs(width)?,
                totals()?,
                total,
                chunks,
                width,
                chunk,
                picked.index,
            );
            let Grid {
                count,
                dim,
                address,
            } = grid()?;
            place_kernel::launch_unchecked(
                client,
                count,
                dim,
                address,
                columns()?,
                totals()?,
                made.runs(width)?,
                argument(&made.firsts, "firsts", U32, width + 1)?,
                argument(&made.members, "members", U32, total)?,
                total,
                chunks,
                width,
                chunk,
                picked.index,
            );
        }
        Ok(made)
    }

    pub fn runs(&self, width: usize) -> Result<BufferArg, KernelError> {
        argument(&self.runs, "runs", U32, RUN * width * self.chunks)
    }
}

/// What the units of a cube up to this one have together.
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

/// Counts the members of each column in a chunk, and asks for their place among those of the column.
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
    let mut member = number * chunk.members + unit;
    let end = min((number + 1) * chunk.members, all);
    while member < end {
        counts[usize::cast_from(columns[member])].fetch_add(1u32);
        member += comptime!(chunk.units as usize);
    }
    sync_cube();
    if unit < width {
        let count = counts[unit].load();
        let run = (number * width + unit) * RUN;
        runs[run] = totals[unit].fetch_add(count);
        runs[run + 1] = count;
    }
}

/// Puts the members of a chunk where those of their column are; in shared memory first, so that runs are written in one go.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(
    clippy::too_many_arguments,
    reason = "what is read, what is made and sizes"
)]
fn place_kernel<I: Numeric>(
    columns: &[I],
    totals: &[u32],
    runs: &mut [u32],
    firsts: &mut [u32],
    members: &mut [u32],
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
    let mut tile = Shared::<[u32]>::new_slice(chunk.members);
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
    let mut member = number * chunk.members + unit;
    let end = min((number + 1) * chunk.members, all);
    while member < end {
        let place = cursors[usize::cast_from(columns[member])].fetch_add(1u32);
        tile[place as usize] = member as u32;
        member += units;
    }
    sync_cube();
    let mut column = unit / comptime!(chunk.plane as usize);
    while column < width {
        let count = counts[column];
        // Where the cursor has come to is the end.
        let from = cursors[column].load() - count;
        let mut at = UNIT_POS % chunk.plane;
        while at < count {
            members[(targets[column] + at) as usize] = tile[(from + at) as usize];
            at += chunk.plane;
        }
        column += comptime!((chunk.units / chunk.plane) as usize);
    }
}
