//! Dense rows in shared memory, and what entries of a row add up to with them.

use cubecl::prelude::*;

use super::{Blueprint, STEP};
use crate::distance::{
    pair::Sparse,
    semiring::{Dense, Semiring},
};

/// A tile of dense rows.
#[derive(CubeType)]
pub(super) struct Tile<S: Float> {
    /// Column by column, apart for each row of a lane.
    values: Sequence<Shared<[S]>>,
    /// The first column of the block.
    pub column: usize,
    p: S,
    #[cube(comptime)]
    blueprint: Blueprint,
}

#[cube]
impl<S: Float> Tile<S> {
    pub fn new(p: S, #[comptime] blueprint: Blueprint) -> Tile<S> {
        let mut values = Sequence::<Shared<[S]>>::new();
        #[unroll]
        for _ in 0..comptime!(blueprint.rows) {
            values.push(Shared::<[S]>::new_slice(comptime!(blueprint.room())));
        }
        Tile::<S> {
            values,
            column: 0usize,
            p,
            blueprint,
        }
    }

    /// Makes all values absent ones, and those of the column behind the block zeros.
    pub fn clear<M: Semiring>(&mut self) {
        let plane = comptime!(self.blueprint.plane as usize);
        let units = comptime!((self.blueprint.plane * self.blueprint.planes) as usize);
        let room = comptime!(self.blueprint.room());
        #[unroll]
        for r in 0..comptime!(self.blueprint.rows) {
            let mut at = UNIT_POS as usize;
            while at < room {
                let behind = at + plane >= room;
                self.values.index_mut(r)[at] = select(behind, S::new(0.0), M::absent::<S>());
                at += units;
            }
        }
    }

    /// Lays out the block of columns of the rows from `first` on, `across` of the matrix in all.
    pub fn fill<M: Semiring>(
        &mut self,
        y: &Sparse<S>,
        starts: &[i32],
        first: usize,
        across: usize,
        place: &Block,
    ) {
        let plane = comptime!(self.blueprint.plane as usize);
        #[unroll]
        for r in 0..comptime!(self.blueprint.rows) {
            let mut row = UNIT_POS_Y as usize;
            while row < plane {
                let number = first + comptime!(r * self.blueprint.plane as usize) + row;
                if number < across {
                    let noted = place.noted(number);
                    let end = starts[noted + 1] as usize;
                    let mut entry = starts[noted] as usize + UNIT_POS_X as usize;
                    while entry < end {
                        let at = (y.column(entry) as usize - self.column) * plane + row;
                        self.values.index_mut(r)[at] = M::laid::<S>(y.value(entry));
                        entry += plane;
                    }
                }
                row += comptime!(self.blueprint.planes as usize);
            }
        }
    }

    /// A sum and what an entry adds to it, given what the row has in its column.
    fn add<M: Semiring>(&self, sum: S, value: S, aid: S, other: S) -> S {
        let mut out = sum;
        if comptime!(M::NEEDS.dense == Some(Dense::Halves)) {
            let part = select(other == S::new(0.0), S::new(1.0), S::new(0.5));
            out += part * M::direct::<S>(value, other, self.p);
        } else if comptime!(M::NEEDS.dense == Some(Dense::Left)) {
            out += M::share::<S>(value, aid, other);
        } else if comptime!(M::NEEDS.dense == Some(Dense::Either) && M::NEEDS.union) {
            out = M::reduce::<S>(sum, M::direct::<S>(value, other, self.p));
        } else {
            out = M::reduce::<S>(sum, M::product::<S>(value, other, self.p));
        }
        out
    }

    /// Goes through the entries of a row, from `begin` to before `end`: what each of the lane's rows adds up to.
    pub fn meet<M: Semiring>(&self, x: &Sparse<S>, begin: usize, end: usize) -> Array<S> {
        let plane = comptime!(self.blueprint.plane as usize);
        let lane = UNIT_POS_X as usize;
        let mut sums = Array::<S>::new(comptime!(self.blueprint.rows));
        #[unroll]
        for r in 0..comptime!(self.blueprint.rows) {
            sums[r] = M::identity::<S>();
        }
        let mut done = begin;
        while done < end {
            // Each lane has an entry, which all of them look at in turn.
            let mine = done + lane;
            let mut place =
                comptime!((self.blueprint.block * self.blueprint.plane as usize) as u32).runtime();
            let mut value = S::new(0.0);
            if mine < end {
                value = x.value(mine);
                if value != S::new(0.0) {
                    place = (x.column(mine) as u32 - self.column as u32)
                        * comptime!(self.blueprint.plane);
                }
            }
            let mut aid = value;
            if comptime!(M::NEEDS.dense == Some(Dense::Left)) {
                aid = M::aid::<S>(value);
            }
            let there = min(end - done, plane) as u32;
            let step = comptime!(if plane > STEP as usize { STEP } else { 1 });
            let mut turn = 0u32;
            while turn < there {
                #[unroll]
                for t in 0..step {
                    let mut at = place;
                    let mut a = value;
                    let mut beside = aid;
                    if comptime!(plane > 1) {
                        at = plane_shuffle(place, turn + t);
                        a = plane_shuffle(value, turn + t);
                        if comptime!(M::NEEDS.dense == Some(Dense::Left)) {
                            beside = plane_shuffle(aid, turn + t);
                        }
                    }
                    let at = at as usize + lane;
                    #[unroll]
                    for r in 0..comptime!(self.blueprint.rows) {
                        sums[r] = self.add::<M>(sums[r], a, beside, self.values.index(r)[at]);
                    }
                }
                turn += step;
            }
            done += plane;
            if comptime!(M::NEEDS.covered) {
                let mut least = sums[0];
                #[unroll]
                for r in 1..comptime!(self.blueprint.rows) {
                    least = min(least, sums[r]);
                }
                if !any_finite::<S>(least, self.blueprint.plane) {
                    done = end;
                }
            }
        }
        sums
    }
}

/// One of the blocks of columns.
#[derive(CubeType)]
pub(super) struct Block {
    pub number: usize,
    pub of: usize,
}

#[cube]
impl Block {
    /// Where the first entry of the block in a row is noted; behind it that of the next.
    pub fn noted(&self, row: usize) -> usize {
        row * (self.of + 1) + self.number
    }
}

/// Whether a number of any lane of the plane is below infinity.
#[cube]
pub(super) fn any_finite<S: Float>(least: S, #[comptime] plane: u32) -> bool {
    let mut found = least <= S::max_value();
    if comptime!(plane > 1) {
        found = plane_any(found);
    }
    found
}

/// The next row of a chunk for each plane.
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
