//! The entries of a matrix by stretches of its columns, so short that a cube can hold a value for each column of one in shared memory.
//! Made on the device, once for each matrix.
//!
//! Entries are 16-bit places in the stretch, 64 to a load of [`TEAM`] units. Shared memory has [`BANKS`] banks that units read side by
//! side: an entry stands where the units of a team, and teams whose turn it is to begin with other words, read other banks, as far as there is room.
//! What is left over fills holes; other holes name zeros behind the stretch.
#![allow(
    clippy::manual_div_ceil,
    reason = "kernels know no `div_ceil` on runtime integers"
)]

use crate::device::require_dtype;
use crate::device::units_per_cube;
use crate::launch::fill_zero;
use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
    server::Handle,
};

use super::{Csr, shape};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;

/// The routine that they are for.
pub(super) const ROUTINE: &str = "resident";

const U16: ElemType = ElemType::UInt(UIntKind::U16);
const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// Units that load entries of a row together, 8 each.
pub(super) const TEAM: u32 = 8;
/// Entries of a load.
pub(super) const LOAD: usize = 64;
/// Banks of shared memory, and zeros behind a stretch, one in each.
pub(super) const BANKS: usize = 32;
/// Loads that a span tells itself; this or more are told beside it.
pub(super) const LONG: u32 = 255;
/// Bits of that number in a span.
pub(super) const LOADS_BITS: u32 = 8;
/// Units that list the entries of a row each, with two counters for each bank in shared memory.
const LISTERS: u32 = 128;
/// Places that 16 bits tell apart, with the zeros.
const PLACES: usize = (1 << 16) - BANKS;
/// Words of a span: first load and number of loads together, and the number of loads.
pub(super) const SPAN: usize = 2;
/// Words that sections of the buffer are multiples of, so that they can be bound by themselves.
const SECTION: usize = 64;
/// Fewest entries of a row in a stretch, on average, most stretches, and fewest entries in all, for the gradient to be added up so. On
/// graphs like Reddit with so many entries by stretches and gathered, k = 16 and 64 of 256: 115 million 1.84 and 6.36 ms against 13.1 and
/// 13.3, 57 million 0.91 and 2.80 against 4.74 and 6.09, 11.5 million 0.32 and 0.65 against 0.62 and 1.00, 2.3 million 0.18 and 0.25
/// against 0.16 and 0.21 (NVIDIA H200). All have about 100 to 500 entries of a row in a stretch. By Vulkan, whose shared
/// memory makes 20 stretches of the first, with 25 entries of a row each: 3.78, 6.80 and 12.9 ms for k = 16, 32 and 64, gathered 13.2, 12.4
/// and 13.1.
const ENTRIES: usize = 24;
const MOST: usize = 24;
const FEWEST: usize = 1 << 22;

/// The entries of a matrix by stretches of columns, in device memory: `[len(size, columns)]` u32.
///
/// For each stretch and row a span, then the entries of all.
#[derive(Clone, Debug)]
pub struct Stretches {
    handle: Handle,
    size: [usize; 3],
    columns: usize,
}

impl Stretches {
    /// Most columns of a stretch that shared memory of the device holds; 0 where no gradient is added up so: without planes of 8 units or
    /// more of one fixed size, or 16-bit integers.
    pub fn most_columns(client: &Client) -> usize {
        check(client).unwrap_or(0)
    }

    /// Whether the gradient of a matrix of so many rows, columns and entries is faster by stretches of at most so many columns: many
    /// entries, and many of each row in each.
    pub fn pays([rows, cols, nnz]: [usize; 3], most_columns: usize) -> bool {
        let stretches = cols.div_ceil(most_columns.max(1));
        let many = nnz >= FEWEST && rows > 0 && nnz / rows >= ENTRIES * stretches;
        most_columns > 0 && stretches <= MOST && many
    }

    /// Elements of the buffer for a matrix of so many rows, columns and entries.
    pub fn len(size: [usize; 3], most_columns: usize) -> usize {
        spans(size, most_columns) + loads(size, most_columns) * LOAD / 2
    }

    /// A buffer that was made before for a matrix of this size.
    pub fn from_handle(handle: Handle, size: [usize; 3], most_columns: usize) -> Self {
        Self {
            handle,
            size,
            columns: columns(size[1], most_columns),
        }
    }

    /// The buffer.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Lists the entries of a matrix whose columns ascend in each row, by stretches of at most so many columns. Takes 2 bytes for each
    /// entry, and 136 for each row and stretch.
    ///
    /// # Errors
    ///
    /// [`KernelError`] for buffers that are too short or too large, and [`KernelError::Routine`] for stretches longer than
    /// [`Stretches::most_columns`] or more entries than spans can tell.
    pub fn new(client: &Client, csr: &Csr, most_columns: usize) -> Result<Self, KernelError> {
        let room = check(client)?;
        let size = [csr.rows, csr.cols, csr.nnz];
        if most_columns == 0 || most_columns > room {
            return refuse(format!(
                "stretches of {most_columns} columns; there is room for 1 to {room}"
            ));
        }
        let loads = loads(size, most_columns);
        let limit = 1 << (u32::BITS - LOADS_BITS);
        if loads > limit {
            return refuse(format!(
                "{loads} loads of entries; spans tell {limit} apart"
            ));
        }
        let len = Self::len(size, most_columns);
        let made = Self::from_handle(allocate(client, "stretches", len, U32)?, size, most_columns);
        let rows = csr.rows * made.number();
        if rows == 0 || csr.nnz == 0 {
            fill_zero(client, &made.handle, U32, len)?;
            return Ok(made);
        }
        let next = allocate(client, "next load", 1, U32)?;
        fill_zero(client, &next, U32, 1)?;
        let int = i32::elem_type_native();
        let listers = units_per_cube(client, LISTERS);
        let dim = CubeDim::new_1d(listers);
        let cubes = rows.div_ceil(listers as usize);
        let grid = Grid::new(client, cubes, dim, (loads * LOAD).max(csr.nnz))?;
        // SAFETY: `argument` checks the lengths; offsets and columns are in range by the contract of `Csr`; there is room for the loads
        // of all rows.
        unsafe {
            list_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(csr.indptr, "indptr", int, csr.rows + 1)?,
                argument(csr.indices, "indices", int, csr.nnz)?,
                made.spans()?,
                argument(&made.entries_handle(), "entries", U16, loads * LOAD)?,
                argument(&next, "next load", U32, 1)?,
                csr.rows,
                made.number(),
                made.columns as u32,
                listers,
            );
        }
        Ok(made)
    }

    /// Columns of a stretch: of the last one fewer.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Stretches.
    pub(super) fn number(&self) -> usize {
        self.size[1].div_ceil(self.columns)
    }

    /// Words of entries.
    pub(super) fn words(&self) -> usize {
        loads(self.size, self.columns) * LOAD / 2
    }

    pub(super) fn spans(&self) -> Result<BufferArg, KernelError> {
        let spans = SPAN * self.size[0] * self.number();
        argument(&self.handle, "spans", U32, spans)
    }

    pub(super) fn entries(&self) -> Result<BufferArg, KernelError> {
        argument(&self.entries_handle(), "entries", U32, self.words())
    }

    fn entries_handle(&self) -> Handle {
        let before = spans(self.size, self.columns) * size_of::<u32>();
        self.handle.clone().offset_start(before as u64)
    }
}

/// Why there are no stretches.
pub(super) fn refuse<T>(reason: String) -> Result<T, KernelError> {
    Err(KernelError::Routine {
        routine: ROUTINE,
        reason,
    })
}

/// Most columns of a stretch, where there can be some.
fn check(client: &Client) -> Result<usize, KernelError> {
    let plane = shape::check(client, ROUTINE, |_| 0)?;
    require_dtype(client, U16)?;
    if plane < TEAM {
        return refuse(format!("planes of {plane}; it needs {TEAM} units"));
    }
    let words = client.properties().hardware.max_shared_memory_size / size_of::<f32>();
    Ok(words.saturating_sub(3 * BANKS).min(PLACES) / BANKS * BANKS)
}

/// Columns of a stretch: as few as make no more stretches, so that all are about as long.
fn columns(cols: usize, most: usize) -> usize {
    let most = (most / BANKS * BANKS).max(BANKS);
    let stretches = cols.div_ceil(most).max(1);
    cols.div_ceil(stretches).next_multiple_of(BANKS).max(BANKS)
}

/// Words of spans.
fn spans([rows, cols, _]: [usize; 3], most: usize) -> usize {
    let stretches = cols.div_ceil(columns(cols, most));
    (SPAN * rows * stretches).next_multiple_of(SECTION)
}

/// Most loads.
fn loads([rows, cols, nnz]: [usize; 3], most: usize) -> usize {
    let stretches = cols.div_ceil(columns(cols, most));
    nnz / LOAD + (rows * stretches).min(nnz).max(1)
}

/// The first entry of a row whose column is not below `column`.
#[cube]
fn first_from(indices: &[i32], from: i32, to: i32, column: i32) -> i32 {
    let mut low = from;
    let mut high = to;
    while low < high {
        let middle = low + (high - low) / 2;
        if indices[middle as usize] < column {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Where the nth entry of a bank stands: of four words of a unit each has two of one bank.
#[cube]
fn place(start: u32, bank: u32, nth: u32) -> usize {
    let unit = (start + nth / 2) as usize * comptime!(TEAM as usize) + (bank / 4) as usize;
    unit * comptime!(LOAD / TEAM as usize) + ((bank % 4) * 2 + nth % 2) as usize
}

/// A unit for each row of each stretch. Spans stand where units asked for them, which no sum depends on.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(
    clippy::too_many_arguments,
    reason = "a pattern, what is made of it and sizes"
)]
fn list_kernel(
    indptr: &[i32],
    indices: &[i32],
    spans: &mut [u32],
    entries: &mut [u16],
    next: &[Atomic<u32>],
    rows: usize,
    stretches: usize,
    columns: u32,
    #[comptime] listers: u32,
) {
    let banks = comptime!(BANKS as u32);
    // Entries of each bank that were placed, and those that were looked at again.
    let mut placed = Shared::<[u32]>::new_slice(comptime!(BANKS * listers as usize));
    let mut again = Shared::<[u32]>::new_slice(comptime!(BANKS * listers as usize));
    if ABSOLUTE_POS >= rows * stretches {
        terminate!();
    }
    for bank in 0..banks {
        placed[(bank * listers + UNIT_POS) as usize] = 0u32;
        again[(bank * listers + UNIT_POS) as usize] = 0u32;
    }
    let stretch = ABSOLUTE_POS / rows;
    let row = ABSOLUTE_POS - stretch * rows;
    let first = i32::cast_from(stretch) * i32::cast_from(columns);
    let begin = first_from(indices, indptr[row], indptr[row + 1], first);
    let end = first_from(
        indices,
        begin,
        indptr[row + 1],
        first + i32::cast_from(columns),
    );
    let loads = (u32::cast_from(end - begin) + comptime!(LOAD as u32 - 1)) / comptime!(LOAD as u32);
    let start = next[0].fetch_add(loads);
    spans[ABSOLUTE_POS * SPAN] = (start << LOADS_BITS) | min(loads, LONG);
    spans[ABSOLUTE_POS * SPAN + 1] = loads;
    let room = 2 * loads;
    let mut left_over = false;
    let mut entry = begin;
    while entry < end {
        let column = u32::cast_from(indices[entry as usize] - first);
        let bank = column % banks;
        let nth = placed[(bank * listers + UNIT_POS) as usize];
        placed[(bank * listers + UNIT_POS) as usize] = nth + 1;
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
            let own = (column % banks * listers + UNIT_POS) as usize;
            let nth = again[own];
            again[own] = nth + 1;
            if nth >= room {
                while placed[(hole * listers + UNIT_POS) as usize] >= room {
                    hole += 1;
                }
                let nth = placed[(hole * listers + UNIT_POS) as usize];
                placed[(hole * listers + UNIT_POS) as usize] = nth + 1;
                entries[place(start, hole, nth)] = u16::cast_from(column);
            }
            entry += 1;
        }
    }
    for bank in 0..banks {
        let mut nth = placed[(bank * listers + UNIT_POS) as usize];
        while nth < room {
            entries[place(start, bank, nth)] = u16::cast_from(columns + bank);
            nth += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_of_one_length_about() {
        for (cols, most) in [
            (0, 32),
            (1, 32),
            (33, 32),
            (100, 64),
            (232_965, 58_016),
            (65_536, 65_504),
        ] {
            let columns = columns(cols, most);
            assert!(
                columns.is_multiple_of(BANKS) && columns <= most,
                "{cols} {most}: {columns}"
            );
            assert_eq!(cols.div_ceil(columns), cols.div_ceil(most), "{cols} {most}");
            assert_eq!(columns, self::columns(cols, columns));
        }
    }
}
