use cubecl::{ir::ElemType, prelude::*};

use crate::distance::merge::pair::Sparse;

pub(super) const ABSENT: u32 = u32::MAX;
const EMPTY: u32 = u32::MAX;
const BITS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Layout {
    dense: bool,
    room: usize,
}

impl Layout {
    /// Arrays take 16-byte multiples.
    pub fn new(bytes: usize, dtype: ElemType, cols: usize) -> Self {
        let dense = 8 * bytes / (8 * dtype.size() + 1);
        let dense = dense - dense % (4 * BITS);
        let slots = bytes / (dtype.size() + size_of::<u32>());
        match cols <= dense {
            true => Self { dense: true, room: dense },
            false => Self { dense: false, room: slots - slots % 4 },
        }
    }

    fn words(self) -> usize {
        match self.dense {
            true => self.room / BITS,
            false => self.room,
        }
    }

    /// Tables over half full are slow.
    fn entries(self) -> usize {
        match self.dense {
            true => self.room,
            false => self.room / 2,
        }
    }
}

/// Columns in `low..high`.
#[derive(CubeType)]
pub(super) struct Table<S: Float> {
    keys: Shared<[Atomic<u32>]>,
    values: Shared<[S]>,
    low: u32,
    high: u32,
    #[cube(comptime)]
    layout: Layout,
}

#[cube]
impl<S: Float> Table<S> {
    pub fn new(#[comptime] layout: Layout) -> Table<S> {
        Table::<S> {
            keys: Shared::<[Atomic<u32>]>::new_slice(comptime!(layout.words())),
            values: Shared::<[S]>::new_slice(comptime!(layout.room)),
            low: 0u32.runtime(),
            high: 0u32.runtime(),
            layout,
        }
    }

    pub fn blocks(&self, count: usize) -> usize {
        let entries = comptime!(self.layout.entries());
        max((count + comptime!(entries - 1)) / entries, 1usize)
    }

    /// Every unit must call it.
    pub fn fill(&mut self, row: &Sparse<S>, begin: usize, end: usize, block: usize, units: usize) {
        let entries = comptime!(self.layout.entries());
        let words = comptime!(self.layout.words());
        let first = begin + block * entries;
        let last = min(first + entries, end);
        self.low = 0u32;
        self.high = u32::MAX;
        if block > 0 {
            self.low = row.column(first) as u32;
        }
        if last < end {
            self.high = row.column(last) as u32;
        }
        let none = if comptime!(self.layout.dense) { 0u32 } else { EMPTY };
        sync_cube();
        let mut word = UNIT_POS as usize;
        while word < words {
            self.keys[word].store(none);
            word += units;
        }
        sync_cube();
        let mut entry = first + UNIT_POS as usize;
        while entry < last {
            let column = row.column(entry) as u32;
            let place = self.insert(column);
            self.values[place as usize] = row.value(entry);
            entry += units;
        }
        sync_cube();
    }

    fn insert(&self, column: u32) -> u32 {
        if comptime!(self.layout.dense) {
            let bit = 1u32 << (column % comptime!(BITS as u32));
            self.keys[(column / comptime!(BITS as u32)) as usize].fetch_or(bit);
            column
        } else {
            let mut slot = self.slot(column);
            let mut found = self.keys[slot as usize].compare_exchange_weak(EMPTY, column);
            // Weak exchanges may fail: only the stored column proves success.
            while self.keys[slot as usize].load() != column {
                if found != EMPTY {
                    slot = self.next(slot);
                }
                found = self.keys[slot as usize].compare_exchange_weak(EMPTY, column);
            }
            slot
        }
    }

    pub fn covers(&self, column: u32) -> bool {
        column >= self.low && column < self.high
    }

    /// Slot, or [`ABSENT`].
    pub fn find(&self, column: u32) -> u32 {
        let mut found = ABSENT.runtime();
        if comptime!(self.layout.dense) {
            let word = self.keys[(column / comptime!(BITS as u32)) as usize].load();
            if (word >> (column % comptime!(BITS as u32))) & 1u32 == 1u32 {
                found = column;
            }
        } else {
            let mut slot = self.slot(column);
            let mut key = self.keys[slot as usize].load();
            while key != EMPTY && key != column {
                slot = self.next(slot);
                key = self.keys[slot as usize].load();
            }
            if key == column {
                found = slot;
            }
        }
        found
    }

    pub fn value(&self, place: u32) -> S {
        self.values[place as usize]
    }

    /// MurmurHash3's finalizer.
    fn slot(&self, column: u32) -> u32 {
        let mut hash = column ^ (column >> 16u32);
        hash *= 0x85eb_ca6b_u32;
        hash ^= hash >> 13u32;
        hash *= 0xc2b2_ae35_u32;
        hash ^= hash >> 16u32;
        hash % comptime!(self.layout.room as u32)
    }

    fn next(&self, slot: u32) -> u32 {
        let after = slot + 1u32;
        select(after == comptime!(self.layout.room as u32), 0u32, after)
    }
}
