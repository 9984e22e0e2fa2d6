use cubecl::prelude::*;

use crate::distance::{merge::pair::Sparse, tuning::REGISTER_TILE_READERS};

/// Elements between columns in shared memory: columns of a row are in banks of their own.
const PADDING: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RegisterTileConfig {
    /// Units of a cube across a tile, and down.
    pub units: [u32; 2],
    /// Pairs of a unit across, and down.
    pub pairs: [usize; 2],
    /// Columns of a block.
    pub depth: usize,
    /// Skip tiles below the diagonal.
    pub half: bool,
    /// Every row has all columns.
    pub full: bool,
}

impl RegisterTileConfig {
    /// Rows of a slab: of the right matrix, and of the left.
    pub fn rows(&self, side: Side) -> usize {
        self.units[side.axis()] as usize * self.pairs[side.axis()]
    }

    pub fn count(&self) -> u32 {
        self.units[0] * self.units[1]
    }

    /// Values of a block that a unit moves, of full rows.
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

    /// Shared bytes, of values of `size` bytes.
    pub fn bytes(&self, size: usize) -> usize {
        let slab = |side| self.room(side) * size + 2 * self.rows(side) * size_of::<i32>();
        slab(Side::Left) + slab(Side::Right)
    }
}

/// Which matrix.
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

/// A block of columns of a tile's rows, dense, column after column.
#[derive(CubeType)]
pub(super) struct Slab<S: Float> {
    values: Shared<[S]>,
    /// Next entry of each row, twice: what one block reads, it writes for the next.
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
    /// `count` rows from `first`; [`start`](Self::start) follows.
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

    /// Some units each read a row's entries below column `end`; `turn` alternates.
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
            // The reader at the first untaken entry writes the cursor: the entry before it was
            // taken, or none was.
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

    /// Loads this unit's values of a block of full rows.
    pub fn load(&self, matrix: &Sparse<S>, column: usize, columns: usize) -> Array<S> {
        let depth = comptime!(self.config.depth);
        let mut values = Array::<S>::new(comptime!(self.config.moved(self.side)));
        #[unroll]
        for number in 0..comptime!(self.config.moved(self.side)) {
            let place = UNIT_POS as usize + comptime!(number * self.config.count() as usize);
            // Clamped for unconditional loads; sums never read what lies outside.
            let row = min(place / depth, self.count - 1);
            let at = min(column + place % depth, columns - 1);
            values[number] = matrix.value((self.first + row) * columns + at);
        }
        values
    }

    /// Stores the values of [`load`](Self::load) in shared memory.
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

    /// Place of this unit's first row in the block's first column.
    pub fn origin(&self) -> usize {
        let unit = if comptime!(self.side == Side::Right) { UNIT_POS_X } else { UNIT_POS_Y };
        unit as usize
    }

    /// Value of row `number` of this unit, `column` columns behind an origin.
    pub fn value(&self, origin: usize, #[comptime] column: usize, #[comptime] number: usize) -> S {
        let axis = comptime!(self.side as usize);
        let behind = comptime!(
            column * self.config.stride(self.side) + number * self.config.units[axis] as usize
        );
        self.values[origin + behind]
    }
}
