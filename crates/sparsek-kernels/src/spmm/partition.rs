//! Splits CSR entries into items: rows, or parts of long rows.
//!
//! Counts items by length, then places the longest first, so planes of a cube finish together.
//! Atomics order similar lengths; no sum depends on it.

use cubecl::{prelude::*, server::Handle};

use super::{
    sizes::{ITEM_WORDS, cut_rows, items, part, partition_len},
    tuning::LENGTH_STEPS,
    types::Csr,
};
use crate::{
    device::is_llvmpipe,
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
};

/// [`LENGTH_STEPS`] per power of two.
const BUCKETS: u32 = LENGTH_STEPS * 11 + 2;
const COUNTERS: usize = 2;

/// A matrix's work items in device memory: [`partition_len`] i32.
///
/// Items: first entry, end, row, slot of the partial sum. Then cut rows: row, first slot, slots,
/// padding.
#[derive(Clone, Debug)]
pub struct Partition {
    handle: Handle,
    rows: usize,
    nnz: usize,
}

impl Partition {
    /// Wraps a [`Partition::handle`] of this size.
    pub fn from_handle(handle: Handle, rows: usize, nnz: usize) -> Self {
        Self { handle, rows, nnz }
    }

    /// Buffer.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Partitions the entries in O(rows). Takes 16 bytes per row and 48 per part.
    pub fn new(client: &Client, csr: &Csr) -> Result<Self, KernelError> {
        csr.check()?;
        let int = i32::elem_type_native();
        let (rows, nnz) = (csr.rows, csr.nnz);
        let len = partition_len(rows, nnz);
        let partition = Self { handle: allocate(client, "partition", len, int)?, rows, nnz };
        let argument_of = || argument(&partition.handle, "partition", int, len);
        let counters = COUNTERS + 2 * BUCKETS as usize;
        let counts = allocate(client, "counts", counters, int)?;
        fill_zero(client, &counts, int, counters)?;
        let grid = Grid::elementwise(client, len, len)?;
        // SAFETY: lengths checked; `Csr` promises offsets, whose items fit.
        unsafe {
            clear_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument_of()?,
            );
            if rows == 0 {
                return Ok(partition);
            }
            let rows_grid = || Grid::elementwise(client, rows, len.max(rows + 1));
            let indptr = || argument(csr.indptr, "indptr", int, rows + 1);
            if is_llvmpipe(client) {
                let grid = rows_grid()?;
                whole_rows_kernel::launch_unchecked(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    indptr()?,
                    argument_of()?,
                    rows,
                );
                return Ok(partition);
            }
            for place in [false, true] {
                let grid = rows_grid()?;
                partition_kernel::launch_unchecked(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    indptr()?,
                    argument_of()?,
                    argument(&counts, "counts", int, counters)?,
                    rows,
                    items(rows, nnz),
                    part(nnz) as u32,
                    place,
                );
            }
        }
        Ok(partition)
    }

    /// Upper bound.
    pub(super) fn items(&self) -> usize {
        items(self.rows, self.nnz)
    }

    pub(super) fn cut_rows(&self) -> usize {
        cut_rows(self.nnz)
    }

    pub(super) fn slots(&self) -> usize {
        2 * cut_rows(self.nnz)
    }

    pub(super) fn argument(&self) -> Result<BufferArg, KernelError> {
        let len = partition_len(self.rows, self.nnz);
        argument(&self.handle, "partition", i32::elem_type_native(), len)
    }
}

#[derive(CubeType)]
pub(super) struct Item {
    pub start: i32,
    pub end: i32,
    /// −1 if unused.
    pub row: i32,
    /// −1 for a whole row.
    pub slot: i32,
}

#[cube]
impl Item {
    pub fn read(parts: &[i32], item: usize) -> Item {
        let first = item * comptime!(ITEM_WORDS);
        Item {
            start: parts[first],
            end: parts[first + 1],
            row: parts[first + 2],
            slot: parts[first + 3],
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn clear_kernel(parts: &mut [i32]) {
    if ABSOLUTE_POS < parts.len() {
        parts[ABSOLUTE_POS] = -1;
    }
}

#[cube]
fn bucket(length: u32) -> u32 {
    let mut step = 0u32;
    if length > 0 {
        let power = 31 - u32::leading_zeros(length);
        let above = length - (1u32 << power);
        step = 1 + power * LENGTH_STEPS + ((above * LENGTH_STEPS) >> power);
    }
    BUCKETS - 1 - step
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn partition_kernel(
    indptr: &[i32],
    parts: &mut [i32],
    counts: &[Atomic<i32>],
    rows: usize,
    items: usize,
    part: u32,
    #[comptime] place: bool,
) {
    let row = ABSOLUTE_POS;
    if row >= rows {
        terminate!();
    }
    let start = indptr[row];
    let length = u32::cast_from(indptr[row + 1] - start);
    let number = max((length + part - 1) / part, 1);
    let each = length / number;
    let rest = length - each * number;
    let bucket = bucket(each + min(rest, 1));
    let own_count = comptime!(COUNTERS) + bucket as usize;
    if comptime!(!place) {
        counts[own_count].fetch_add(i32::cast_from(number));
    } else {
        let mut at =
            counts[own_count + comptime!(BUCKETS as usize)].fetch_add(i32::cast_from(number));
        for before in 0..bucket {
            at += counts[comptime!(COUNTERS) + before as usize].load();
        }
        let mut slot = i32::from_int(-1);
        if number > 1 {
            slot = counts[0].fetch_add(i32::cast_from(number));
            let cut = counts[1].fetch_add(1);
            let word = (items + cut as usize) * comptime!(ITEM_WORDS);
            parts[word] = i32::cast_from(row);
            parts[word + 1] = slot;
            parts[word + 2] = i32::cast_from(number);
        }
        for i in 0..number {
            let word = (at as usize + i as usize) * comptime!(ITEM_WORDS);
            parts[word] = start + i32::cast_from(i * each + min(i, rest));
            parts[word + 1] = start + i32::cast_from((i + 1) * each + min(i + 1, rest));
            parts[word + 2] = i32::cast_from(row);
            parts[word + 3] = select(number > 1, slot + i32::cast_from(i), i32::from_int(-1));
        }
    }
}

/// For llvmpipe, which fails to count.
#[cube(launch_unchecked, address_type = "dynamic")]
fn whole_rows_kernel(indptr: &[i32], parts: &mut [i32], rows: usize) {
    if ABSOLUTE_POS < rows {
        let word = ABSOLUTE_POS * comptime!(ITEM_WORDS);
        parts[word] = indptr[ABSOLUTE_POS];
        parts[word + 1] = indptr[ABSOLUTE_POS + 1];
        parts[word + 2] = i32::cast_from(ABSOLUTE_POS);
    }
}
