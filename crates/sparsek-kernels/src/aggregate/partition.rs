//! How the entries of a CSR matrix are shared out: rows of similar length next to each other, the longest first, and rows
//! that are too long in parts of their own. Made on the device, once for each matrix.
//!
//! Items take their place in the order in which units ask for it. No sum depends on that: the parts of a row are cut by its
//! length alone, and added up in order.
#![allow(
    clippy::manual_div_ceil,
    reason = "kernels know no `div_ceil` on runtime integers"
)]

use crate::device::is_llvmpipe;
use crate::launch::fill_zero;
use cubecl::{prelude::*, server::Handle};

use super::Csr;
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;

/// Most entries of an item.
const PART: usize = 1024;
/// Items are told apart by their length, four times within each power of two.
const STEPS: u32 = 4;
const BUCKETS: u32 = STEPS * 11 + 2;
/// Words of an item, and of a row that was cut.
const WORDS: usize = 4;
/// Counters beside those of the buckets: slots, and rows that were cut.
const COUNTERS: usize = 2;

/// The items of a matrix in device memory: `[len(rows, nnz)]` i32.
///
/// An item is a row, or a part of at most 1024 entries of a longer one: first entry, end, row, and the slot of its sum or −1
/// where it is that of the row. After the items come the rows that were cut: row, first slot, number of slots. The row is −1
/// where there are no more.
#[derive(Clone, Debug)]
pub struct Partition {
    handle: Handle,
    rows: usize,
    nnz: usize,
}

impl Partition {
    /// Elements of the buffer.
    pub fn len(rows: usize, nnz: usize) -> usize {
        WORDS * (items(rows, nnz) + cut_rows(nnz))
    }

    /// The buffer of [`Partition::handle`], computed before for a matrix of this size.
    pub fn from_handle(handle: Handle, rows: usize, nnz: usize) -> Self {
        Self { handle, rows, nnz }
    }

    /// The buffer.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Shares out the entries of a matrix. O(rows) work; takes 16 bytes for each row, and 48 for each 1024 entries.
    ///
    /// # Errors
    ///
    /// [`KernelError`] for buffers that are too short, too large or need wider addresses.
    pub fn new(client: &Client, csr: &Csr) -> Result<Self, KernelError> {
        csr.check()?;
        let int = i32::elem_type_native();
        let (rows, nnz) = (csr.rows, csr.nnz);
        let len = Self::len(rows, nnz);
        let partition = Self {
            handle: allocate(client, "partition", len, int)?,
            rows,
            nnz,
        };
        let argument_of = || argument(&partition.handle, "partition", int, len);
        let counters = COUNTERS + 2 * BUCKETS as usize;
        let counts = allocate(client, "counts", counters, int)?;
        fill_zero(client, &counts, int, counters)?;
        let grid = Grid::elementwise(client, len, len)?;
        // SAFETY: `argument` checks the lengths; there is room for all items of rows whose offsets are as `Csr` demands.
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
                let Grid {
                    count,
                    dim,
                    address,
                } = rows_grid()?;
                let (indptr, parts) = (indptr()?, argument_of()?);
                whole_kernel::launch_unchecked(client, count, dim, address, indptr, parts, rows);
                return Ok(partition);
            }
            for place in [false, true] {
                let grid = rows_grid()?;
                share_kernel::launch_unchecked(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    indptr()?,
                    argument_of()?,
                    argument(&counts, "counts", int, counters)?,
                    rows,
                    items(rows, nnz),
                    place,
                );
            }
        }
        Ok(partition)
    }

    /// Most items.
    pub(super) fn items(&self) -> usize {
        items(self.rows, self.nnz)
    }

    /// Most rows that were cut.
    pub(super) fn cut_rows(&self) -> usize {
        cut_rows(self.nnz)
    }

    /// Most slots.
    pub(super) fn slots(&self) -> usize {
        2 * cut_rows(self.nnz)
    }

    pub(super) fn argument(&self) -> Result<BufferArg, KernelError> {
        let len = Self::len(self.rows, self.nnz);
        argument(&self.handle, "partition", i32::elem_type_native(), len)
    }
}

/// Rows longer than an item has entries; each has at most twice as many slots as full items.
fn cut_rows(nnz: usize) -> usize {
    nnz / (PART + 1)
}

fn items(rows: usize, nnz: usize) -> usize {
    rows + 2 * cut_rows(nnz)
}

/// What is added up by those that share an item.
#[derive(CubeType)]
pub(super) struct Item {
    pub start: i32,
    pub end: i32,
    /// Its row; -1 where there is no such item.
    pub row: i32,
    /// Where its sum goes, or -1 for the row itself.
    pub slot: i32,
}

#[cube]
impl Item {
    pub fn read(parts: &[i32], item: usize) -> Item {
        let first = item * comptime!(WORDS);
        Item {
            start: parts[first],
            end: parts[first + 1],
            row: parts[first + 2],
            slot: parts[first + 3],
        }
    }
}

/// No items.
#[cube(launch_unchecked, address_type = "dynamic")]
fn clear_kernel(parts: &mut [i32]) {
    if ABSOLUTE_POS < parts.len() {
        parts[ABSOLUTE_POS] = -1;
    }
}

/// The bucket of a length: the longest first.
#[cube]
fn bucket(length: u32) -> u32 {
    let mut step = 0u32;
    if length > 0 {
        let power = 31 - u32::leading_zeros(length);
        let above = length - (1u32 << power);
        step = 1 + power * STEPS + ((above * STEPS) >> power);
    }
    BUCKETS - 1 - step
}

/// A unit for each row: counts its items, or puts them where their bucket has room.
#[cube(launch_unchecked, address_type = "dynamic")]
fn share_kernel(
    indptr: &[i32],
    parts: &mut [i32],
    counts: &[Atomic<i32>],
    rows: usize,
    items: usize,
    #[comptime] place: bool,
) {
    let row = ABSOLUTE_POS;
    if row >= rows {
        terminate!();
    }
    let start = indptr[row];
    let length = u32::cast_from(indptr[row + 1] - start);
    let part = comptime!(PART as u32);
    let number = max((length + part - 1) / part, 1);
    let each = (length + number - 1) / number;
    let bucket = bucket(each);
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
            let word = (items + cut as usize) * comptime!(WORDS);
            parts[word] = i32::cast_from(row);
            parts[word + 1] = slot;
            parts[word + 2] = i32::cast_from(number);
        }
        for i in 0..number {
            let word = (at as usize + i as usize) * comptime!(WORDS);
            parts[word] = start + i32::cast_from(min(i * each, length));
            parts[word + 1] = start + i32::cast_from(min((i + 1) * each, length));
            parts[word + 2] = i32::cast_from(row);
            parts[word + 3] = select(number > 1, slot + i32::cast_from(i), i32::from_int(-1));
        }
    }
}

/// Each row as an item where it stands, whatever its length: on llvmpipe, where counting fails.
#[cube(launch_unchecked, address_type = "dynamic")]
fn whole_kernel(indptr: &[i32], parts: &mut [i32], rows: usize) {
    if ABSOLUTE_POS < rows {
        let word = ABSOLUTE_POS * comptime!(WORDS);
        parts[word] = indptr[ABSOLUTE_POS];
        parts[word + 1] = indptr[ABSOLUTE_POS + 1];
        parts[word + 2] = i32::cast_from(ABSOLUTE_POS);
    }
}
