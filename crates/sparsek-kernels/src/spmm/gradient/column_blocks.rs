//! Entries by blocks of columns that fit shared memory.
//!
//! ```text
//! extents: for each block and row, the first load and the number of loads
//! entries: loads of 64 u16 columns within the block, 8 for each unit of a team
//! ```
//!
//! Units read different banks. Entries of overfull banks fill holes; other holes name zeros behind
//! the block.

use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
    server::Handle,
};

use crate::{
    device::{require_dtype, units_per_cube},
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
    primitives::csr::first_from,
    spmm::{
        plane_layout::require_plane_barrier,
        sizes::{BANKS, EXTENT, block_columns, column_blocks_len, extent_words, max_loads},
        tuning::{LIST_UNITS, LOAD, TEAM},
        types::Csr,
    },
};

pub(super) const ROUTINE: &str = "shared";

const U16: ElemType = ElemType::UInt(UIntKind::U16);
const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// From here on, the second word counts loads.
pub(super) const LONG: u32 = 255;
pub(super) const LOADS_BITS: u32 = 8;
/// 16 bits address columns and zeros.
const MAX_COLUMNS: usize = (1 << 16) - BANKS;

/// Entries by blocks of columns.
#[derive(Clone, Debug)]
pub struct ColumnBlocks {
    handle: Handle,
    size: [usize; 3],
    columns: usize,
}

impl ColumnBlocks {
    /// Returns the most columns per block, or 0 if unsupported.
    pub fn max_columns(client: &Client) -> usize {
        check(client).unwrap_or(0)
    }

    /// Wraps a [`ColumnBlocks::handle`] of this size.
    pub fn from_handle(handle: Handle, size: [usize; 3], max_columns: usize) -> Self {
        Self { handle, size, columns: block_columns(size[1], max_columns) }
    }

    /// Buffer.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Lists entries by blocks of ≤ `max_columns` columns.
    ///
    /// Columns ascend in each row. Takes 2 bytes per entry, 136 per row and block. Errors:
    /// unsupported blocks.
    pub fn new(client: &Client, csr: &Csr, max_columns: usize) -> Result<Self, KernelError> {
        let room = check(client)?;
        let size = [csr.rows, csr.cols, csr.nnz];
        if max_columns == 0 || max_columns > room {
            return refuse(format!("blocks of {max_columns} columns; the limits are 1 and {room}"));
        }
        let loads = max_loads(size, max_columns);
        let limit = 1 << (u32::BITS - LOADS_BITS);
        if loads > limit {
            return refuse(format!("{loads} loads of entries; the limit is {limit}"));
        }
        let len = column_blocks_len(size, max_columns);
        let handle = allocate(client, "column blocks", len, U32)?;
        let blocks = Self::from_handle(handle, size, max_columns);
        let extents = csr.rows * blocks.count();
        if extents == 0 || csr.nnz == 0 {
            fill_zero(client, &blocks.handle, U32, len)?;
            return Ok(blocks);
        }
        let next = allocate(client, "next load", 1, U32)?;
        fill_zero(client, &next, U32, 1)?;
        let int = i32::elem_type_native();
        let units = units_per_cube(client, LIST_UNITS);
        let dim = CubeDim::new_1d(units);
        let cubes = extents.div_ceil(units as usize);
        let grid = Grid::new(client, cubes, dim, (loads * LOAD).max(csr.nnz))?;
        // SAFETY: lengths checked; `max_loads` bounds loads; `Csr` promises indices.
        unsafe {
            list_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(csr.indptr, "indptr", int, csr.rows + 1)?,
                argument(csr.indices, "indices", int, csr.nnz)?,
                blocks.extents()?,
                argument(&blocks.entries_handle(), "entries", U16, loads * LOAD)?,
                argument(&next, "next load", U32, 1)?,
                csr.rows,
                blocks.count(),
                blocks.columns as u32,
                units,
            );
        }
        Ok(blocks)
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn count(&self) -> usize {
        self.size[1].div_ceil(self.columns)
    }

    pub(super) fn words(&self) -> usize {
        max_loads(self.size, self.columns) * LOAD / 2
    }

    pub(super) fn extents(&self) -> Result<BufferArg, KernelError> {
        let words = EXTENT * self.size[0] * self.count();
        argument(&self.handle, "extents", U32, words)
    }

    pub(super) fn entries(&self) -> Result<BufferArg, KernelError> {
        argument(&self.entries_handle(), "entries", U32, self.words())
    }

    fn entries_handle(&self) -> Handle {
        let before = extent_words(self.size, self.columns) * size_of::<u32>();
        self.handle.clone().offset_start(before as u64)
    }
}

pub(super) fn refuse<T>(reason: String) -> Result<T, KernelError> {
    Err(KernelError::Routine { routine: ROUTINE, reason })
}

fn check(client: &Client) -> Result<usize, KernelError> {
    let plane = require_plane_barrier(client, ROUTINE)?;
    require_dtype(client, U16)?;
    if plane < TEAM {
        return refuse(format!("planes have {plane} units; it needs {TEAM}"));
    }
    let words = client.properties().hardware.max_shared_memory_size / size_of::<f32>();
    Ok(words.saturating_sub(3 * BANKS).min(MAX_COLUMNS) / BANKS * BANKS)
}

/// A word holds two entries of a bank.
#[cube]
fn place(start: u32, bank: u32, nth: u32) -> usize {
    let unit = (start + nth / 2) as usize * comptime!(TEAM as usize) + (bank / 4) as usize;
    unit * comptime!(LOAD / TEAM as usize) + ((bank % 4) * 2 + nth % 2) as usize
}

/// No sum depends on load order.
#[cube(launch_unchecked, address_type = "dynamic")]
fn list_kernel(
    indptr: &[i32],
    indices: &[i32],
    extents: &mut [u32],
    entries: &mut [u16],
    next: &[Atomic<u32>],
    rows: usize,
    blocks: usize,
    columns: u32,
    #[comptime] units: u32,
) {
    let banks = comptime!(BANKS as u32);
    let mut placed = Shared::<[u32]>::new_slice(comptime!(BANKS * units as usize));
    let mut again = Shared::<[u32]>::new_slice(comptime!(BANKS * units as usize));
    if ABSOLUTE_POS >= rows * blocks {
        terminate!();
    }
    for bank in 0..banks {
        placed[(bank * units + UNIT_POS) as usize] = 0u32;
        again[(bank * units + UNIT_POS) as usize] = 0u32;
    }
    let block = ABSOLUTE_POS / rows;
    let row = ABSOLUTE_POS - block * rows;
    let first = i32::cast_from(block) * i32::cast_from(columns);
    let begin = first_from(indices, indptr[row], indptr[row + 1], first);
    let end = first_from(indices, begin, indptr[row + 1], first + i32::cast_from(columns));
    let loads = (u32::cast_from(end - begin) + comptime!(LOAD as u32 - 1)) / comptime!(LOAD as u32);
    let start = next[0].fetch_add(loads);
    extents[ABSOLUTE_POS * EXTENT] = (start << LOADS_BITS) | min(loads, LONG);
    extents[ABSOLUTE_POS * EXTENT + 1] = loads;
    let room = 2 * loads;
    let mut left_over = false;
    let mut entry = begin;
    while entry < end {
        let column = u32::cast_from(indices[entry as usize] - first);
        let bank = column % banks;
        let nth = placed[(bank * units + UNIT_POS) as usize];
        placed[(bank * units + UNIT_POS) as usize] = nth + 1;
        if nth < room {
            entries[place(start, bank, nth)] = u16::cast_from(column);
        } else {
            left_over = true;
        }
        entry += 1;
    }
    if left_over {
        let mut hole = 0u32.runtime();
        entry = begin;
        while entry < end {
            let column = u32::cast_from(indices[entry as usize] - first);
            let own = (column % banks * units + UNIT_POS) as usize;
            let nth = again[own];
            again[own] = nth + 1;
            if nth >= room {
                while placed[(hole * units + UNIT_POS) as usize] >= room {
                    hole += 1;
                }
                let nth = placed[(hole * units + UNIT_POS) as usize];
                placed[(hole * units + UNIT_POS) as usize] = nth + 1;
                entries[place(start, hole, nth)] = u16::cast_from(column);
            }
            entry += 1;
        }
    }
    for bank in 0..banks {
        let mut nth = placed[(bank * units + UNIT_POS) as usize];
        while nth < room {
            entries[place(start, bank, nth)] = u16::cast_from(columns + bank);
            nth += 1;
        }
    }
}
