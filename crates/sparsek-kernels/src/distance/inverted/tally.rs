//! The sums of a plane in shared memory, and the entries that add to them.

use cubecl::prelude::*;

use super::{Blueprint, SPARE};
use crate::distance::{pair::Two, semiring::Semiring};

/// Entries of a column that a unit reads at a time, and fewer where the column ends.
const AHEAD: u32 = 4;
const FEW: u32 = 2;
/// Entries of a row between two looks at whether any distance is still finite.
const LOOK: u32 = 8;
/// Pairs of a unit that are looked at together where a part ends.
const TOGETHER: usize = 8;

/// Entries by column.
#[derive(CubeType)]
pub(super) struct Entries<'a, P: Int> {
    pub starts: &'a [i32],
    pub ends: &'a [i32],
    /// Of each its row in the tile, and the bits of its value.
    packed: &'a [Vector<P, Const<2>>],
    /// Where they end.
    end: usize,
}

#[cube]
impl<'a, P: Int> Entries<'a, P> {
    pub fn new(
        starts: &'a [i32],
        ends: &'a [i32],
        packed: &'a [Vector<P, Const<2>>],
        end: usize,
    ) -> Entries<'a, P> {
        Entries::<'a, P> {
            starts,
            ends,
            packed,
            end,
        }
    }
}

/// What the lanes of a plane have of a row: an entry each, and where the entries of its column begin and end.
#[derive(CubeType)]
pub(super) struct Lanes<S: Float> {
    pub value: S,
    pub start: i32,
    pub end: i32,
    /// Lanes that have one; the columns of the others are empty.
    pub there: u32,
}

/// An entry of a row, and what a unit has read of its column.
#[derive(CubeType)]
pub(super) struct Visit<S: Float> {
    value: S,
    first: i32,
    end: i32,
    rows: Array<u32>,
    values: Array<S>,
    #[cube(comptime)]
    blueprint: Blueprint,
}

#[cube]
impl<S: Float> Visit<S> {
    pub fn new(#[comptime] blueprint: Blueprint) -> Visit<S> {
        Visit::<S> {
            value: S::new(0.0),
            first: 0i32,
            end: 0i32,
            rows: Array::<u32>::new(AHEAD as usize),
            values: Array::<S>::new(AHEAD as usize),
            blueprint,
        }
    }

    /// Takes what a lane has, and reads the first entries of its column; of a turn that there is not, none.
    pub fn begin<P: Int>(&mut self, turn: u32, lanes: &Lanes<S>, entries: &Entries<P>) {
        let plane = comptime!(self.blueprint.plane);
        let lane = min(turn, comptime!(plane - 1));
        let there = turn < lanes.there;
        let value = of_lane::<S>(lanes.value, lane, plane);
        self.value = select(there, value, S::new(0.0));
        self.first = of_lane::<i32>(lanes.start, lane, plane);
        let end = of_lane::<i32>(lanes.end, lane, plane);
        self.end = select(there, end, self.first);
        self.read::<P>(entries);
    }

    /// Reads entries from the first on. What lies behind the end has the unit's spare sum for its row.
    fn read<P: Int>(&mut self, entries: &Entries<P>) {
        self.read_some::<P>(entries, 0u32, FEW);
        if self.more() {
            self.read_some::<P>(entries, FEW, AHEAD);
        }
    }

    /// Whether there are more than few.
    fn more(&self) -> bool {
        self.first + comptime!((FEW * self.blueprint.plane) as i32) < self.end
    }

    fn read_some<P: Int>(
        &mut self,
        entries: &Entries<P>,
        #[comptime] from: u32,
        #[comptime] to: u32,
    ) {
        #[unroll]
        for n in from..to {
            let before = comptime!((n * self.blueprint.plane) as i32);
            let at = self.first + before + UNIT_POS_X as i32;
            let at = select(
                at < self.end,
                at as usize,
                entries.end + UNIT_POS_X as usize,
            );
            let entry = entries.packed[at];
            self.rows[n as usize] = u32::cast_from(entry.extract(0usize));
            self.values[n as usize] = S::reinterpret(entry.extract(1usize));
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
    /// What the entries so far add to [`Semiring::norm`], and how many there were since they were last looked at.
    norm: S,
    unseen: u32,
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
            norm: S::new(0.0),
            unseen: 0u32,
            p,
            blueprint,
        }
    }

    /// The sum of a row, of all planes that share the left one.
    pub fn total<M: Semiring>(&self, row: usize) -> S {
        let mut total = self.totals[self.first() + row];
        #[unroll]
        for member in 1..self.crew() {
            let of_member = self.totals[comptime!(member * self.blueprint.stride()) + row];
            total = M::reduce::<S>(total, of_member);
        }
        total
    }

    /// The second sum, where there are any.
    pub fn second<M: Semiring>(&self, row: usize) -> S {
        let mut second = S::new(0.0);
        if comptime!(M::NEEDS.other) {
            second = self.others[self.first() + row];
            #[unroll]
            for member in 1..self.crew() {
                second += self.others[comptime!(member * self.blueprint.stride()) + row];
            }
        }
        second
    }

    /// The sums of the plane, or of the first that shares its row.
    fn first(&self) -> usize {
        if comptime!(self.blueprint.crew > 1) {
            0usize.runtime()
        } else {
            self.base
        }
    }

    fn crew(&self) -> comptime_type!(usize) {
        comptime!(self.blueprint.crew as usize)
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
    pub fn add<M: Semiring, P: Int>(&mut self, visit: &mut Visit<S>, entries: &Entries<P>) {
        let plane = comptime!(self.blueprint.plane);
        if comptime!(M::NEEDS.covered) {
            self.norm += M::norm::<S>(visit.value, self.p);
            self.unseen += 1;
        }
        while visit.first < visit.end {
            if visit.more() {
                self.meet::<M>(&*visit, AHEAD);
            } else {
                self.meet::<M>(&*visit, FEW);
            }
            visit.first += comptime!((plane * AHEAD) as i32);
            if visit.first < visit.end {
                visit.read::<P>(entries);
            }
        }
        if comptime!(plane > 1) {
            sync_plane();
        }
    }

    /// Adds those of some entries for each lane, without branches, so that they overlap. All sums are read before any is
    /// written, as entries of a column are of different rows.
    fn meet<M: Semiring>(&mut self, visit: &Visit<S>, #[comptime] ahead: u32) {
        let mut totals = Array::<S>::new(ahead as usize);
        let mut others = Array::<S>::new(ahead as usize);
        #[unroll]
        for n in 0..ahead {
            let sum = self.base + visit.rows[n as usize] as usize;
            totals[n as usize] = self.totals[sum];
            if comptime!(M::NEEDS.other) {
                others[n as usize] = self.others[sum];
            }
        }
        #[unroll]
        for n in 0..ahead {
            let other = visit.values[n as usize];
            let product = M::product::<S>(visit.value, other, self.p);
            totals[n as usize] = M::reduce::<S>(totals[n as usize], product);
            if comptime!(M::NEEDS.other) {
                others[n as usize] += M::other::<S>(visit.value, other);
            }
        }
        #[unroll]
        for n in 0..ahead {
            let sum = self.base + visit.rows[n as usize] as usize;
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

    /// Whether no second sum is as great as what the entries so far add to the norm, looked at now and then.
    pub fn given_up(&mut self) -> bool {
        let mut given_up = false.runtime();
        if self.unseen >= LOOK {
            self.unseen = 0u32;
            let plane = comptime!(self.blueprint.plane as usize);
            let mut most = S::new(0.0);
            let mut sum = UNIT_POS_X as usize;
            while sum < comptime!(self.blueprint.room) {
                most = max(most, self.others[self.base + sum]);
                sum += plane;
            }
            let mut reached = most >= self.norm;
            if comptime!(plane > 1) {
                reached = plane_any(reached);
            }
            given_up = !reached;
        }
        given_up
    }
}

/// What a lane of the plane has.
#[cube]
pub(super) fn of_lane<T: CubePrimitive>(value: T, lane: u32, #[comptime] plane: u32) -> T {
    let mut found = value;
    if comptime!(plane > 1) {
        found = plane_shuffle(value, lane);
    }
    found
}
