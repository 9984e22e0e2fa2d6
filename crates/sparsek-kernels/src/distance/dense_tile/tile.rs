use cubecl::prelude::*;

use crate::distance::{
    merge::pair::Sparse,
    semiring::{Dense, Semiring},
    tuning::TILE_STEP,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DenseTileConfig {
    pub plane: u32,
    pub planes: u32,
    /// Per lane.
    pub rows: usize,
    pub block: usize,
    pub half: bool,
}

impl DenseTileConfig {
    pub fn width(&self) -> usize {
        self.rows * self.plane as usize
    }

    pub fn room(&self) -> usize {
        (self.block + 1) * self.plane as usize
    }
}

#[derive(CubeType)]
pub(super) struct Tile<S: Float> {
    values: Sequence<Shared<[S]>>,
    pub column: usize,
    p: S,
    #[cube(comptime)]
    config: DenseTileConfig,
}

#[cube]
impl<S: Float> Tile<S> {
    pub fn new(p: S, #[comptime] config: DenseTileConfig) -> Tile<S> {
        let mut values = Sequence::<Shared<[S]>>::new();
        #[unroll]
        for _ in 0..comptime!(config.rows) {
            values.push(Shared::<[S]>::new_slice(comptime!(config.room())));
        }
        Tile::<S> { values, column: 0usize, p, config }
    }

    /// The last column stays zero, for lanes without entry.
    pub fn clear<M: Semiring>(&mut self) {
        let plane = comptime!(self.config.plane as usize);
        let units = comptime!((self.config.plane * self.config.planes) as usize);
        let room = comptime!(self.config.room());
        #[unroll]
        for r in 0..comptime!(self.config.rows) {
            let mut at = UNIT_POS as usize;
            while at < room {
                let behind = at + plane >= room;
                self.values.index_mut(r)[at] = select(behind, S::new(0.0), M::absent::<S>());
                at += units;
            }
        }
    }

    pub fn fill<M: Semiring>(
        &mut self,
        y: &Sparse<S>,
        starts: &[i32],
        first: usize,
        across: usize,
        place: &Block,
    ) {
        let plane = comptime!(self.config.plane as usize);
        #[unroll]
        for r in 0..comptime!(self.config.rows) {
            let mut row = UNIT_POS_Y as usize;
            while row < plane {
                let number = first + comptime!(r * self.config.plane as usize) + row;
                if number < across {
                    let start_index = place.start_index(number);
                    let end = starts[start_index + 1] as usize;
                    let mut entry = starts[start_index] as usize + UNIT_POS_X as usize;
                    while entry < end {
                        let at = (y.column(entry) as usize - self.column) * plane + row;
                        self.values.index_mut(r)[at] = M::dense_value::<S>(y.value(entry));
                        entry += plane;
                    }
                }
                row += comptime!(self.config.planes as usize);
            }
        }
    }

    fn add<M: Semiring>(&self, sum: S, value: S, left_value: S, other: S) -> S {
        let mut out = sum;
        if comptime!(M::STRATEGY.dense == Some(Dense::Halves)) {
            let part = select(other == S::new(0.0), S::new(1.0), S::new(0.5));
            out += part * M::direct::<S>(value, other, self.p);
        } else if comptime!(M::STRATEGY.dense == Some(Dense::Left)) {
            out += M::contribution::<S>(value, left_value, other);
        } else if comptime!(M::STRATEGY.dense == Some(Dense::Either) && M::STRATEGY.union) {
            out = M::reduce::<S>(sum, M::direct::<S>(value, other, self.p));
        } else {
            out = M::reduce::<S>(sum, M::product::<S>(value, other, self.p));
        }
        out
    }

    pub fn multiply_row<M: Semiring>(&self, x: &Sparse<S>, begin: usize, end: usize) -> Array<S> {
        let plane = comptime!(self.config.plane as usize);
        let lane = UNIT_POS_X as usize;
        let mut sums = Array::<S>::new(comptime!(self.config.rows));
        #[unroll]
        for r in 0..comptime!(self.config.rows) {
            sums[r] = M::identity::<S>();
        }
        let mut done = begin;
        while done < end {
            let position = done + lane;
            let mut place =
                comptime!((self.config.block * self.config.plane as usize) as u32).runtime();
            let mut value = S::new(0.0);
            if position < end {
                value = x.value(position);
                if value != S::new(0.0) {
                    place = (x.column(position) as u32 - self.column as u32)
                        * comptime!(self.config.plane);
                }
            }
            let mut left_value = value;
            if comptime!(M::STRATEGY.dense == Some(Dense::Left)) {
                left_value = M::left_value::<S>(value);
            }
            let active = min(end - done, plane) as u32;
            let step = comptime!(if plane > TILE_STEP as usize { TILE_STEP } else { 1 });
            let mut turn = 0u32;
            while turn < active {
                #[unroll]
                for t in 0..step {
                    let mut at = place;
                    let mut a = value;
                    let mut beside = left_value;
                    if comptime!(plane > 1) {
                        at = plane_shuffle(place, turn + t);
                        a = plane_shuffle(value, turn + t);
                        if comptime!(M::STRATEGY.dense == Some(Dense::Left)) {
                            beside = plane_shuffle(left_value, turn + t);
                        }
                    }
                    let at = at as usize + lane;
                    #[unroll]
                    for r in 0..comptime!(self.config.rows) {
                        sums[r] = self.add::<M>(sums[r], a, beside, self.values.index(r)[at]);
                    }
                }
                turn += step;
            }
            done += plane;
            if comptime!(M::ALGEBRA.covered) {
                let mut least = sums[0];
                #[unroll]
                for r in 1..comptime!(self.config.rows) {
                    least = min(least, sums[r]);
                }
                if !any_finite::<S>(least, self.config.plane) {
                    done = end;
                }
            }
        }
        sums
    }
}

#[derive(CubeType)]
pub(super) struct Block {
    pub number: usize,
    pub of: usize,
}

#[cube]
impl Block {
    /// Block start; its end follows.
    pub fn start_index(&self, row: usize) -> usize {
        row * (self.of + 1) + self.number
    }
}

#[cube]
pub(super) fn any_finite<S: Float>(least: S, #[comptime] plane: u32) -> bool {
    let mut found = least <= S::max_value();
    if comptime!(plane > 1) {
        found = plane_any(found);
    }
    found
}

#[cube]
pub(super) fn next_row(taken: &Shared<[Atomic<u32>]>, #[comptime] plane: u32) -> usize {
    let mut row = 0u32;
    if UNIT_POS_X == 0 {
        row = taken[0].fetch_add(1);
    }
    if comptime!(plane > 1) {
        row = plane_shuffle(row, 0);
    }
    row as usize
}
