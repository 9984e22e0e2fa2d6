use cubecl::prelude::*;

use crate::distance::{
    merge::pair::RowPair,
    semiring::Semiring,
    tuning::{COLUMN_READS, FINITE_CHECK_ENTRIES, FLUSHED_TOGETHER, SHORT_COLUMN_READS},
};

pub(super) const SPARE: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct InvertedConfig {
    pub plane: u32,
    pub planes: u32,
    pub room: usize,
    /// Skip below the diagonal.
    pub half: bool,
    pub parts: bool,
    /// All or 1.
    pub planes_per_row: u32,
}

impl InvertedConfig {
    pub fn stride(&self) -> usize {
        self.room + SPARE.max(self.plane as usize)
    }
}

#[derive(CubeType)]
pub(super) struct Entries<'a, P: Int> {
    pub starts: &'a [i32],
    pub ends: &'a [i32],
    /// Tile row, value bits.
    packed: &'a [Vector<P, Const<2>>],
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
        Entries::<'a, P> { starts, ends, packed, end }
    }
}

#[derive(CubeType)]
pub(super) struct LaneEntries<S: Float> {
    pub value: S,
    pub start: i32,
    pub end: i32,
    pub active: u32,
}

#[derive(CubeType)]
pub(super) struct Visit<S: Float> {
    value: S,
    first: i32,
    end: i32,
    rows: Array<u32>,
    values: Array<S>,
    #[cube(comptime)]
    config: InvertedConfig,
}

#[cube]
impl<S: Float> Visit<S> {
    pub fn new(#[comptime] config: InvertedConfig) -> Visit<S> {
        Visit::<S> {
            value: S::new(0.0),
            first: 0i32,
            end: 0i32,
            rows: Array::<u32>::new(COLUMN_READS as usize),
            values: Array::<S>::new(COLUMN_READS as usize),
            config,
        }
    }

    /// Nothing past the last lane.
    pub fn begin<P: Int>(&mut self, turn: u32, lanes: &LaneEntries<S>, entries: &Entries<P>) {
        let plane = comptime!(self.config.plane);
        let lane = min(turn, comptime!(plane - 1));
        let active = turn < lanes.active;
        let value = broadcast::<S>(lanes.value, lane, plane);
        self.value = select(active, value, S::new(0.0));
        self.first = broadcast::<i32>(lanes.start, lane, plane);
        let end = broadcast::<i32>(lanes.end, lane, plane);
        self.end = select(active, end, self.first);
        self.read::<P>(entries);
    }

    fn read<P: Int>(&mut self, entries: &Entries<P>) {
        self.read_some::<P>(entries, 0u32, SHORT_COLUMN_READS);
        if self.more() {
            self.read_some::<P>(entries, SHORT_COLUMN_READS, COLUMN_READS);
        }
    }

    fn more(&self) -> bool {
        self.first + comptime!((SHORT_COLUMN_READS * self.config.plane) as i32) < self.end
    }

    fn read_some<P: Int>(
        &mut self,
        entries: &Entries<P>,
        #[comptime] from: u32,
        #[comptime] to: u32,
    ) {
        #[unroll]
        for n in from..to {
            let before = comptime!((n * self.config.plane) as i32);
            let at = self.first + before + UNIT_POS_X as i32;
            let at = select(at < self.end, at as usize, entries.end + UNIT_POS_X as usize);
            let entry = entries.packed[at];
            self.rows[n as usize] = u32::cast_from(entry.extract(0usize));
            self.values[n as usize] = S::reinterpret(entry.extract(1usize));
        }
    }
}

#[derive(CubeType)]
pub(super) struct FinishedParts<'a, S: Float> {
    pub totals: &'a mut [S],
    others: &'a mut [S],
    base: usize,
    across: usize,
    #[cube(comptime)]
    plane: usize,
}

#[cube]
impl<'a, S: Float> FinishedParts<'a, S> {
    pub fn new(
        totals: &'a mut [S],
        others: &'a mut [S],
        base: usize,
        across: usize,
        #[comptime] plane: usize,
    ) -> FinishedParts<'a, S> {
        FinishedParts::<'a, S> { totals, others, base, across, plane }
    }

    pub fn clear<M: Semiring>(&mut self) {
        let mut place = UNIT_POS_X as usize;
        while place < self.across {
            self.totals[self.base + place] = M::identity::<S>();
            if comptime!(M::ALGEBRA.other_in_parts()) {
                self.others[self.base + place] = S::new(0.0);
            }
            place += comptime!(self.plane);
        }
    }
}

#[derive(CubeType)]
pub(super) struct Accumulator<S: Float> {
    totals: Shared<[S]>,
    others: Shared<[S]>,
    base: usize,
    norm: S,
    unseen: u32,
    p: S,
    #[cube(comptime)]
    config: InvertedConfig,
}

#[cube]
impl<S: Float> Accumulator<S> {
    pub fn new<M: Semiring>(p: S, #[comptime] config: InvertedConfig) -> Accumulator<S> {
        let sums = comptime!(config.planes as usize * config.stride());
        let others = comptime!(if M::ALGEBRA.other { sums } else { SPARE });
        Accumulator::<S> {
            totals: Shared::<[S]>::new_slice(sums),
            others: Shared::<[S]>::new_slice(others),
            base: UNIT_POS_Y as usize * comptime!(config.stride()),
            norm: S::new(0.0),
            unseen: 0u32,
            p,
            config,
        }
    }

    pub fn total<M: Semiring>(&self, row: usize) -> S {
        let mut total = self.totals[self.first() + row];
        #[unroll]
        for slice in 1..self.slices() {
            let of_slice = self.totals[comptime!(slice * self.config.stride()) + row];
            total = M::reduce::<S>(total, of_slice);
        }
        total
    }

    pub fn second<M: Semiring>(&self, row: usize) -> S {
        let mut second = S::new(0.0);
        if comptime!(M::ALGEBRA.other) {
            second = self.others[self.first() + row];
            #[unroll]
            for slice in 1..self.slices() {
                second += self.others[comptime!(slice * self.config.stride()) + row];
            }
        }
        second
    }

    fn first(&self) -> usize {
        if comptime!(self.config.planes_per_row > 1) { 0usize.runtime() } else { self.base }
    }

    fn slices(&self) -> comptime_type!(usize) {
        comptime!(self.config.planes_per_row as usize)
    }

    pub fn clear<M: Semiring>(&mut self) {
        let mut sum = UNIT_POS_X as usize;
        while sum < comptime!(self.config.stride()) {
            self.totals[self.base + sum] = M::identity::<S>();
            if comptime!(M::ALGEBRA.other) {
                self.others[self.base + sum] = S::new(0.0);
            }
            sum += comptime!(self.config.plane as usize);
        }
    }

    pub fn add<M: Semiring, P: Int>(&mut self, visit: &mut Visit<S>, entries: &Entries<P>) {
        let plane = comptime!(self.config.plane);
        if comptime!(M::ALGEBRA.covered) {
            self.norm += M::norm::<S>(visit.value, self.p);
            self.unseen += 1;
        }
        while visit.first < visit.end {
            if visit.more() {
                self.add_entries::<M>(&*visit, COLUMN_READS);
            } else {
                self.add_entries::<M>(&*visit, SHORT_COLUMN_READS);
            }
            visit.first += comptime!((plane * COLUMN_READS) as i32);
            if visit.first < visit.end {
                visit.read::<P>(entries);
            }
        }
        if comptime!(plane > 1) {
            sync_plane();
        }
    }

    /// Reads precede writes: a column's entries differ in row.
    fn add_entries<M: Semiring>(&mut self, visit: &Visit<S>, #[comptime] ahead: u32) {
        let mut totals = Array::<S>::new(ahead as usize);
        let mut others = Array::<S>::new(ahead as usize);
        #[unroll]
        for n in 0..ahead {
            let sum = self.base + visit.rows[n as usize] as usize;
            totals[n as usize] = self.totals[sum];
            if comptime!(M::ALGEBRA.other) {
                others[n as usize] = self.others[sum];
            }
        }
        #[unroll]
        for n in 0..ahead {
            let other = visit.values[n as usize];
            let product = M::product::<S>(visit.value, other, self.p);
            totals[n as usize] = M::reduce::<S>(totals[n as usize], product);
            if comptime!(M::ALGEBRA.other) {
                others[n as usize] += M::other::<S>(visit.value, other);
            }
        }
        #[unroll]
        for n in 0..ahead {
            let sum = self.base + visit.rows[n as usize] as usize;
            self.totals[sum] = totals[n as usize];
            if comptime!(M::ALGEBRA.other) {
                self.others[sum] = others[n as usize];
            }
        }
    }

    /// Moves sums of parts that end before `column`.
    pub fn flush_parts<M: Semiring>(
        &mut self,
        pair: &RowPair<S>,
        finished: &mut FinishedParts<S>,
        left_bits: u32,
        first: usize,
        before: u32,
        column: u32,
    ) {
        let plane = comptime!(self.config.plane as usize);
        let mut place = UNIT_POS_X as usize;
        while place < finished.across {
            let mut ends = Array::<bool>::new(FLUSHED_TOGETHER);
            let mut totals = Array::<S>::new(FLUSHED_TOGETHER);
            let mut others = Array::<S>::new(FLUSHED_TOGETHER);
            #[unroll]
            for n in 0..FLUSHED_TOGETHER {
                let at = min(place + comptime!(n * plane), finished.across - 1);
                let bits = max(left_bits, pair.right_parts(first + at));
                ends[n] = before >> bits != column >> bits;
            }
            #[unroll]
            for n in 0..FLUSHED_TOGETHER {
                let at = place + comptime!(n * plane);
                ends[n] = ends[n] && at < finished.across;
                if ends[n] {
                    totals[n] = finished.totals[finished.base + at];
                    if comptime!(M::ALGEBRA.other_in_parts()) {
                        others[n] = finished.others[finished.base + at];
                    }
                }
            }
            #[unroll]
            for n in 0..FLUSHED_TOGETHER {
                if ends[n] {
                    let at = place + comptime!(n * plane);
                    let sum = self.base + at;
                    finished.totals[finished.base + at] =
                        M::reduce::<S>(totals[n], self.totals[sum]);
                    self.totals[sum] = M::identity::<S>();
                    if comptime!(M::ALGEBRA.other_in_parts()) {
                        finished.others[finished.base + at] = others[n] + self.others[sum];
                        self.others[sum] = S::new(0.0);
                    }
                }
            }
            place += comptime!(FLUSHED_TOGETHER * plane);
        }
        if comptime!(self.config.plane > 1) {
            sync_plane();
        }
    }

    pub fn add_finished<M: Semiring>(&mut self, finished: &FinishedParts<S>) {
        let mut place = UNIT_POS_X as usize;
        while place < finished.across {
            let sum = self.base + place;
            let at = finished.base + place;
            self.totals[sum] = M::reduce::<S>(finished.totals[at], self.totals[sum]);
            if comptime!(M::ALGEBRA.other_in_parts()) {
                self.others[sum] += finished.others[at];
            }
            place += comptime!(self.config.plane as usize);
        }
    }

    /// Whether no second sum reaches the norm.
    pub fn none_finite(&mut self) -> bool {
        let mut none_finite = false.runtime();
        if self.unseen >= FINITE_CHECK_ENTRIES {
            self.unseen = 0u32;
            let plane = comptime!(self.config.plane as usize);
            let mut most = S::new(0.0);
            let mut sum = UNIT_POS_X as usize;
            while sum < comptime!(self.config.room) {
                most = max(most, self.others[self.base + sum]);
                sum += plane;
            }
            let mut reached = most >= self.norm;
            if comptime!(plane > 1) {
                reached = plane_any(reached);
            }
            none_finite = !reached;
        }
        none_finite
    }
}

#[cube]
pub(super) fn broadcast<T: CubePrimitive>(value: T, lane: u32, #[comptime] plane: u32) -> T {
    let mut found = value;
    if comptime!(plane > 1) {
        found = plane_shuffle(value, lane);
    }
    found
}
