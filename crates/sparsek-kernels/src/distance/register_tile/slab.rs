use cubecl::prelude::*;

use crate::distance::{merge::pair::Sparse, tuning::REGISTER_TILE_READERS};

/// Spreads columns over banks.
const PADDING: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RegisterTileConfig {
    /// Across a tile, and down.
    pub units: [u32; 2],
    /// Per unit.
    pub pairs: [usize; 2],
    /// Columns per block.
    pub depth: usize,
    /// Skip below the diagonal.
    pub half: bool,
    /// Rows have all columns.
    pub full: bool,
}

impl RegisterTileConfig {
    pub fn rows(&self, side: Side) -> usize {
        self.units[side.axis()] as usize * self.pairs[side.axis()]
    }

    pub fn count(&self) -> u32 {
        self.units[0] * self.units[1]
    }

    fn moved(&self, side: Side) -> usize {
        (self.rows(side) * self.depth).div_ceil(self.count() as usize)
    }

    pub fn stride(&self, side: Side) -> usize {
        self.rows(side) + PADDING
    }

    fn room(&self, side: Side) -> usize {
        self.depth * self.stride(side)
    }

    pub fn pairs_per_unit(&self) -> usize {
        self.pairs[0] * self.pairs[1]
    }

    pub fn bytes(&self, size: usize) -> usize {
        let slab = |side| self.room(side) * size + 2 * self.rows(side) * size_of::<i32>();
        slab(Side::Left) + slab(Side::Right)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Right,
    Left,
}

impl Side {
    fn axis(self) -> usize {
        self as usize
    }
}

/// Dense block, column-major.
#[derive(CubeType)]
pub(super) struct Slab<S: Float> {
    values: Shared<[S]>,
    /// Each row's next entry, double-buffered.
    next: Shared<[i32]>,
    first: usize,
    count: usize,
    #[cube(comptime)]
    side: Side,
    #[cube(comptime)]
    config: RegisterTileConfig,
}

#[cube]
impl<S: Float> Slab<S> {
    /// Takes `count` rows.
    pub fn new(
        first: usize,
        count: usize,
        #[comptime] side: Side,
        #[comptime] config: RegisterTileConfig,
    ) -> Slab<S> {
        let values = Shared::<[S]>::new_slice(comptime!(config.room(side)));
        let next = Shared::<[i32]>::new_slice(comptime!(2 * config.rows(side)));
        Slab::<S> { values, next, first, count, side, config }
    }

    pub fn start(&mut self, matrix: &Sparse<S>) {
        let mut row = UNIT_POS as usize;
        while row < self.count {
            self.next[row] = matrix.start(self.first + row) as i32;
            row += comptime!(self.config.count() as usize);
        }
    }

    pub fn clear(&mut self) {
        let mut at = UNIT_POS as usize;
        while at < comptime!(self.config.room(self.side)) {
            self.values[at] = S::new(0.0);
            at += comptime!(self.config.count() as usize);
        }
    }

    /// Reads entries below `end`; `turn` alternates.
    pub fn fill(&mut self, matrix: &Sparse<S>, column: usize, end: usize, turn: usize) {
        let rows = comptime!(self.config.rows(self.side));
        let readers = comptime!(REGISTER_TILE_READERS.min(self.config.count() as usize));
        let lane = UNIT_POS as usize % readers;
        let mut row = UNIT_POS as usize / readers;
        while row < self.count {
            let begin = self.next[turn * rows + row] as usize;
            let last = matrix.start(self.first + row + 1);
            let mut entry = begin + lane;
            let mut taken = lane == 0;
            let mut more = entry < last;
            while more {
                let at = matrix.column(entry) as usize;
                more = at < end;
                if more {
                    let place = (at - column) * comptime!(self.config.stride(self.side)) + row;
                    self.values[place] = matrix.value(entry);
                    entry += readers;
                    more = entry < last;
                }
            }
            // The reader at the first untaken entry moves the cursor.
            if entry > begin {
                taken = false;
                if entry <= last {
                    taken = (matrix.column(entry - 1) as usize) < end;
                }
            }
            if taken {
                self.next[(1 - turn) * rows + row] = entry as i32;
            }
            row += comptime!(self.config.count() as usize / readers);
        }
    }

    /// Loads values of full rows.
    pub fn load(&self, matrix: &Sparse<S>, column: usize, columns: usize) -> Array<S> {
        let depth = comptime!(self.config.depth);
        let mut values = Array::<S>::new(comptime!(self.config.moved(self.side)));
        #[unroll]
        for number in 0..comptime!(self.config.moved(self.side)) {
            let place = UNIT_POS as usize + comptime!(number * self.config.count() as usize);
            // Clamped; sums never read outside.
            let row = min(place / depth, self.count - 1);
            let at = min(column + place % depth, columns - 1);
            values[number] = matrix.value((self.first + row) * columns + at);
        }
        values
    }

    /// Stores values of [`load`](Self::load).
    pub fn store(&mut self, values: &Array<S>) {
        let depth = comptime!(self.config.depth);
        let places = comptime!(self.config.rows(self.side) * depth);
        #[unroll]
        for number in 0..comptime!(self.config.moved(self.side)) {
            let place = UNIT_POS as usize + comptime!(number * self.config.count() as usize);
            let fits = comptime!((number + 1) * self.config.count() as usize <= places);
            if fits || place < places {
                let at = place % depth * comptime!(self.config.stride(self.side)) + place / depth;
                self.values[at] = values[number];
            }
        }
    }

    /// This unit's first place.
    pub fn origin(&self) -> usize {
        let unit = if comptime!(self.side == Side::Right) { UNIT_POS_X } else { UNIT_POS_Y };
        unit as usize
    }

    /// Value of row `number`, `column` after `origin`.
    pub fn value(&self, origin: usize, #[comptime] column: usize, #[comptime] number: usize) -> S {
        let axis = comptime!(self.side as usize);
        let behind = comptime!(
            column * self.config.stride(self.side) + number * self.config.units[axis] as usize
        );
        self.values[origin + behind]
    }
}
