//! The sums of a plane in shared memory, and the entries that add to them.

use cubecl::prelude::*;

use super::{Blueprint, SPARE};
use crate::distance::{pair::Two, semiring::Semiring};

/// Entries of a column that a unit reads at a time, and fewer where the column ends.
const AHEAD: u32 = 4;
const FEW: u32 = 2;
/// Pairs of a unit that are looked at together where a part ends.
const TOGETHER: usize = 8;

/// Entries by column.
#[derive(CubeType)]
pub(super) struct Entries<'a, S: Float> {
    pub starts: &'a [i32],
    pub ends: &'a [i32],
    rows: &'a [i32],
    values: &'a [S],
}

#[cube]
impl<'a, S: Float> Entries<'a, S> {
    pub fn new(
        starts: &'a [i32],
        ends: &'a [i32],
        rows: &'a [i32],
        values: &'a [S],
    ) -> Entries<'a, S> {
        Entries::<'a, S> {
            starts,
            ends,
            rows,
            values,
        }
    }
}

/// What a unit has read of a column.
#[derive(CubeType)]
pub(super) struct Batch<S: Float> {
    rows: Array<u32>,
    values: Array<S>,
    #[cube(comptime)]
    blueprint: Blueprint,
}

#[cube]
impl<S: Float> Batch<S> {
    pub fn new(#[comptime] blueprint: Blueprint) -> Batch<S> {
        Batch::<S> {
            rows: Array::<u32>::new(AHEAD as usize),
            values: Array::<S>::new(AHEAD as usize),
            blueprint,
        }
    }

    /// Reads the entries from `first` on. What lies behind the end has the unit's spare sum for its row.
    pub fn read(&mut self, first: i32, end: i32, entries: &Entries<S>) {
        #[unroll]
        for n in 0..AHEAD {
            let before = comptime!((n * self.blueprint.plane) as i32);
            let at = first + before + UNIT_POS_X as i32;
            self.rows[n as usize] = comptime!(self.blueprint.room as u32) + UNIT_POS_X;
            self.values[n as usize] = S::new(0.0);
            if at < end {
                self.rows[n as usize] = entries.rows[at as usize] as u32;
                self.values[n as usize] = entries.values[at as usize];
            }
        }
    }

    pub fn copy(&mut self, other: &Batch<S>) {
        #[unroll]
        for n in 0..AHEAD as usize {
            self.rows[n] = other.rows[n];
            self.values[n] = other.values[n];
        }
    }
}

/// The sums of the parts of a row's columns that have ended, where distances will be.
#[derive(CubeType)]
pub(super) struct Waiting<'a, S: Float> {
    pub totals: &'a mut [S],
    others: &'a mut [S],
    /// The plane's first, and how many there are.
    base: usize,
    across: usize,
    #[cube(comptime)]
    plane: usize,
}

#[cube]
impl<'a, S: Float> Waiting<'a, S> {
    pub fn new(
        totals: &'a mut [S],
        others: &'a mut [S],
        base: usize,
        across: usize,
        #[comptime] plane: usize,
    ) -> Waiting<'a, S> {
        Waiting::<'a, S> {
            totals,
            others,
            base,
            across,
            plane,
        }
    }

    pub fn clear<M: Semiring>(&mut self) {
        let mut place = UNIT_POS_X as usize;
        while place < self.across {
            self.totals[self.base + place] = M::identity::<S>();
            if comptime!(M::NEEDS.two_wait()) {
                self.others[self.base + place] = S::new(0.0);
            }
            place += comptime!(self.plane);
        }
    }
}

/// The sums of a plane.
#[derive(CubeType)]
pub(super) struct Tally<S: Float> {
    totals: Shared<[S]>,
    others: Shared<[S]>,
    /// The plane's first.
    base: usize,
    p: S,
    #[cube(comptime)]
    blueprint: Blueprint,
}

#[cube]
impl<S: Float> Tally<S> {
    pub fn new<M: Semiring>(p: S, #[comptime] blueprint: Blueprint) -> Tally<S> {
        let sums = comptime!(blueprint.planes as usize * blueprint.stride());
        Tally::<S> {
            totals: Shared::<[S]>::new_slice(sums),
            others: Shared::<[S]>::new_slice(comptime!(if M::NEEDS.other { sums } else { SPARE })),
            base: UNIT_POS_Y as usize * comptime!(blueprint.stride()),
            p,
            blueprint,
        }
    }

    pub fn total(&self, row: usize) -> S {
        self.totals[self.base + row]
    }

    pub fn other(&self, row: usize) -> S {
        self.others[self.base + row]
    }

    pub fn clear<M: Semiring>(&mut self) {
        let mut sum = UNIT_POS_X as usize;
        while sum < comptime!(self.blueprint.stride()) {
            self.totals[self.base + sum] = M::identity::<S>();
            if comptime!(M::NEEDS.other) {
                self.others[self.base + sum] = S::new(0.0);
            }
            sum += comptime!(self.blueprint.plane as usize);
        }
    }

    /// Adds the pairs of a value with the entries of a column, of which the first are read.
    pub fn add<M: Semiring>(
        &mut self,
        value: S,
        start: i32,
        end: i32,
        batch: &mut Batch<S>,
        entries: &Entries<S>,
    ) {
        let plane = comptime!(self.blueprint.plane);
        let mut first = start;
        while first < end {
            if first + comptime!((FEW * plane) as i32) < end {
                self.meet::<M>(value, &*batch, AHEAD);
            } else {
                self.meet::<M>(value, &*batch, FEW);
            }
            first += comptime!((plane * AHEAD) as i32);
            if first < end {
                batch.read(first, end, entries);
            }
        }
        if comptime!(plane > 1) {
            sync_plane();
        }
    }

    /// Adds those of some entries for each lane, without branches, so that they overlap. All sums are read before any is
    /// written, as entries of a column are of different rows.
    fn meet<M: Semiring>(&mut self, value: S, batch: &Batch<S>, #[comptime] ahead: u32) {
        let mut totals = Array::<S>::new(ahead as usize);
        let mut others = Array::<S>::new(ahead as usize);
        #[unroll]
        for n in 0..ahead {
            let sum = self.base + batch.rows[n as usize] as usize;
            totals[n as usize] = self.totals[sum];
            if comptime!(M::NEEDS.other) {
                others[n as usize] = self.others[sum];
            }
        }
        #[unroll]
        for n in 0..ahead {
            let other = batch.values[n as usize];
            let product = M::product::<S>(value, other, self.p);
            totals[n as usize] = M::reduce::<S>(totals[n as usize], product);
            if comptime!(M::NEEDS.other) {
                others[n as usize] += M::other::<S>(value, other);
            }
        }
        #[unroll]
        for n in 0..ahead {
            let sum = self.base + batch.rows[n as usize] as usize;
            self.totals[sum] = totals[n as usize];
            if comptime!(M::NEEDS.other) {
                self.others[sum] = others[n as usize];
            }
        }
    }

    /// Adds the sums of pairs of which a part ends between two columns to what waits, and begins anew, given the parts of the row and
    /// the first row of the tile. Places of a unit are its own.
    pub fn hand_over<M: Semiring>(
        &mut self,
        two: &Two<S>,
        waiting: &mut Waiting<S>,
        own: u32,
        first: usize,
        before: u32,
        column: u32,
    ) {
        let plane = comptime!(self.blueprint.plane as usize);
        let mut place = UNIT_POS_X as usize;
        while place < waiting.across {
            // All are read before any is written, so that they overlap.
            let mut ends = Array::<bool>::new(TOGETHER);
            let mut totals = Array::<S>::new(TOGETHER);
            let mut others = Array::<S>::new(TOGETHER);
            #[unroll]
            for n in 0..TOGETHER {
                let at = min(place + comptime!(n * plane), waiting.across - 1);
                let bits = max(own, two.right_parts(first + at));
                ends[n] = before >> bits != column >> bits;
            }
            #[unroll]
            for n in 0..TOGETHER {
                let at = place + comptime!(n * plane);
                ends[n] = ends[n] && at < waiting.across;
                if ends[n] {
                    totals[n] = waiting.totals[waiting.base + at];
                    if comptime!(M::NEEDS.two_wait()) {
                        others[n] = waiting.others[waiting.base + at];
                    }
                }
            }
            #[unroll]
            for n in 0..TOGETHER {
                if ends[n] {
                    let at = place + comptime!(n * plane);
                    let sum = self.base + at;
                    waiting.totals[waiting.base + at] = M::reduce::<S>(totals[n], self.totals[sum]);
                    self.totals[sum] = M::identity::<S>();
                    if comptime!(M::NEEDS.two_wait()) {
                        waiting.others[waiting.base + at] = others[n] + self.others[sum];
                        self.others[sum] = S::new(0.0);
                    }
                }
            }
            place += comptime!(TOGETHER * plane);
        }
        if comptime!(self.blueprint.plane > 1) {
            sync_plane();
        }
    }

    /// Adds its sums to what has waited.
    pub fn take_back<M: Semiring>(&mut self, waiting: &Waiting<S>) {
        let mut place = UNIT_POS_X as usize;
        while place < waiting.across {
            let sum = self.base + place;
            let at = waiting.base + place;
            self.totals[sum] = M::reduce::<S>(waiting.totals[at], self.totals[sum]);
            if comptime!(M::NEEDS.two_wait()) {
                self.others[sum] += waiting.others[at];
            }
            place += comptime!(self.blueprint.plane as usize);
        }
    }

    /// Whether a second sum is as great as this.
    pub fn reaches(&self, norm: S) -> bool {
        let plane = comptime!(self.blueprint.plane as usize);
        let mut most = S::new(0.0);
        let mut sum = UNIT_POS_X as usize;
        while sum < comptime!(self.blueprint.room) {
            most = max(most, self.others[self.base + sum]);
            sum += plane;
        }
        let mut reached = most >= norm;
        if comptime!(plane > 1) {
            reached = plane_any(reached);
        }
        reached
    }
}
