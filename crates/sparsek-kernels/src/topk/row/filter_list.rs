//! ```text
//! threshold: by histograms of the keys in registers
//! slots:     lists hold tiles in any order, each tile in index order:
//!            slot <- selected before it on the list
//!                    - selected before its tile on the list + selected in earlier tiles
//! ```

use cubecl::prelude::*;

use super::{
    filter::{Lists, NONE, TileList},
    layout::{MemoryOutput, RowElements},
};
use crate::{
    primitives::{
        bit_set::bit,
        team::{Team, TeamShape},
    },
    topk::{
        key::{Element, ordered_key},
        threshold::{
            cube_reduce::CubeReduce,
            histogram::{BINS, KeySet, KeySetExpand, clear_bins, count_key, histogram_threshold},
            search::KeyRange,
        },
        tuning::LIST_AHEAD,
    },
};

/// Keys in registers.
#[derive(CubeType)]
pub(super) struct ListedRow<E: Element> {
    keys: Sequence<E::Key>,
    team: Team,
    tiles: u32,
}

#[cube]
impl<E: Element> ListedRow<E> {
    pub fn new(
        row: &TileList<E>,
        elements: &RowElements<E>,
        lists: &Lists<E>,
        count: u32,
        tiles: u32,
    ) -> ListedRow<E> {
        let team = Team::new(count, comptime!(row.config.list));
        let loads = comptime!(row.config.list.loads);
        let values = values::<E>(row, elements, lists, &team, 0usize, loads);
        let mut keys = Sequence::<E::Key>::new();
        #[unroll]
        for load in 0..loads {
            keys.push(ordered_key::<E>(values[load], row.config.memory.search.largest));
        }
        ListedRow::<E> { keys, team, tiles }
    }

    pub fn write_best<I: Numeric>(
        &self,
        row: &TileList<E>,
        elements: &RowElements<E>,
        lists: &Lists<E>,
        output: &mut MemoryOutput<E, I>,
    ) {
        let k = output.request.params.k;
        let bins = Shared::<[Atomic<u32>]>::new_slice(BINS);
        let reduce = CubeReduce::new(comptime!(self.team.shape));
        clear_bins(&bins, comptime!(self.team.shape.lanes));
        let range = self.range(&reduce);
        let threshold =
            histogram_threshold::<E::Key, ListedRow<E>>(self, &range, k, &bins, &reduce, 0u32);
        let mut selected = 0u32;
        let mut level = 0u32;
        #[unroll]
        for load in 0..self.keys.len() {
            let key = self.keys[load];
            let inside = self.team.loads(load);
            let is_above = key > threshold.high;
            let bit = comptime!(bit(load));
            selected |= select(inside && is_above, bit, 0u32);
            level |= select(inside && key >= threshold.low && !is_above, bit, 0u32);
        }
        let mut slots = self.slots(row, 0u32.runtime(), 0u32.runtime());
        if threshold.above < k {
            let quota = k - threshold.above;
            slots.count(level, row, lists, self.team.cols, self.tiles);
            let loads = comptime!(self.team.shape.loads);
            #[unroll]
            for group in 0..comptime!(loads.div_ceil(LIST_AHEAD)) {
                let first = comptime!(group * LIST_AHEAD);
                let length = comptime!(LIST_AHEAD.min(loads - first));
                let columns = columns::<E>(row, lists, &self.team, first, length);
                #[unroll]
                for load in 0..length {
                    let bit = comptime!(bit(first + load));
                    let place = self.team.column(comptime!(first + load));
                    let early = slots.slot(place, row.tile(columns[load])) < quota;
                    selected |= select(early, level & bit, 0u32);
                }
            }
            sync_cube();
        }
        slots.count(selected, row, lists, self.team.cols, self.tiles);
        self.write::<I>(&slots, row, elements, lists, output);
    }

    /// Writes all from column `end`, `earlier` slots after their place in the list.
    pub fn write_rest<I: Numeric>(
        &self,
        row: &TileList<E>,
        elements: &RowElements<E>,
        lists: &Lists<E>,
        output: &mut MemoryOutput<E, I>,
        end: u32,
        earlier: u32,
    ) {
        let mut all = 0u32;
        #[unroll]
        for load in 0..self.keys.len() {
            all |= select(self.team.loads(load), comptime!(bit(load)), 0u32);
        }
        let mut slots = self.slots(row, end, earlier);
        slots.count(all, row, lists, self.team.cols, self.tiles);
        self.write::<I>(&slots, row, elements, lists, output);
    }

    fn write<I: Numeric>(
        &self,
        slots: &Slots,
        row: &TileList<E>,
        elements: &RowElements<E>,
        lists: &Lists<E>,
        output: &mut MemoryOutput<E, I>,
    ) {
        let loads = comptime!(self.team.shape.loads);
        #[unroll]
        for group in 0..comptime!(loads.div_ceil(LIST_AHEAD)) {
            let start = comptime!(group * LIST_AHEAD);
            let length = comptime!(LIST_AHEAD.min(loads - start));
            let columns = columns::<E>(row, lists, &self.team, start, length);
            let values = values::<E>(row, elements, lists, &self.team, start, length);
            #[unroll]
            for load in 0..length {
                let (column, value) = (columns[load], values[load]);
                let place = self.team.column(comptime!(start + load));
                let selected = slots.selected & comptime!(bit(start + load)) != 0;
                if selected && column >= slots.first {
                    if comptime!(output.config.dense) {
                        output.set_dense(column, value);
                    }
                    let slot = slots.slot(place, row.tile(column)) + slots.earlier;
                    output.set(slot, value, column);
                }
            }
        }
    }

    fn slots(&self, row: &TileList<E>, first: u32, earlier: u32) -> Slots {
        let words = comptime!(words(self.team.shape));
        Slots {
            bits: Shared::<[u32]>::new_slice(comptime!(words + 1)),
            before: Shared::<[u32]>::new_slice(comptime!(words + 1)),
            shifts: Shared::<[u32]>::new_slice(row.max_tiles),
            selected: 0u32.runtime(),
            first,
            earlier,
            shape: self.team.shape,
        }
    }

    fn range(&self, reduce: &CubeReduce) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        #[unroll]
        for load in 0..self.keys.len() {
            let key = self.keys[load];
            let inside = self.team.loads(load);
            low = min(low, select(inside, key, E::Key::max_value()));
            high = max(high, select(inside, key, E::Key::min_value()));
        }
        reduce.range::<E::Key>(low, high)
    }
}

#[cube]
impl<E: Element> KeySet<E::Key> for ListedRow<E> {
    fn count_keys(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<E::Key>, shift: u32) {
        #[unroll]
        for load in 0..self.keys.len() {
            if self.team.loads(load) {
                count_key::<E::Key>(bins, self.keys[load], range, shift);
            }
        }
    }
}

/// Values of `length` loads from `first`. Branchless: all loads are in flight.
#[cube]
fn values<E: Element>(
    row: &TileList<E>,
    elements: &RowElements<E>,
    lists: &Lists<E>,
    team: &Team,
    #[comptime] first: usize,
    #[comptime] length: usize,
) -> Array<E> {
    let mut values = Array::<E>::new(length);
    let last = max(team.cols, 1) - 1;
    if row.kind == NONE {
        #[unroll]
        for load in 0..length {
            values[load] = elements.value(min(team.column(comptime!(first + load)), last));
        }
    } else {
        #[unroll]
        for load in 0..length {
            let place = min(team.column(comptime!(first + load)), last);
            values[load] = lists.values[row.start() + place as usize];
        }
    }
    values
}

#[cube]
fn columns<E: Element>(
    row: &TileList<E>,
    lists: &Lists<E>,
    team: &Team,
    #[comptime] first: usize,
    #[comptime] length: usize,
) -> Array<u32> {
    let mut columns = Array::<u32>::new(length);
    let last = max(team.cols, 1) - 1;
    #[unroll]
    for load in 0..length {
        columns[load] = min(team.column(comptime!(first + load)), last);
    }
    if row.kind != NONE {
        #[unroll]
        for load in 0..length {
            columns[load] = lists.columns[row.start() + columns[load] as usize];
        }
    }
    columns
}

fn word_lanes(shape: TeamShape) -> u32 {
    shape.plane_lanes().min(u32::BITS)
}

/// Of all loads: as many bits each as a plane has lanes, ≤ 32.
fn words(shape: TeamShape) -> usize {
    shape.loads * (shape.lanes / word_lanes(shape)) as usize
}

/// Slots of selected elements in index order.
#[derive(CubeType)]
struct Slots {
    /// A bit per list place; then their sums before each word.
    bits: Shared<[u32]>,
    before: Shared<[u32]>,
    /// From list order to index order for each tile, modulo 2^32.
    shifts: Shared<[u32]>,
    /// Of this unit.
    selected: u32,
    /// Columns to write.
    first: u32,
    /// Slots before them all.
    earlier: u32,
    #[cube(comptime)]
    shape: TeamShape,
}

#[cube]
impl Slots {
    fn count<E: Element>(
        &mut self,
        selected: u32,
        row: &TileList<E>,
        lists: &Lists<E>,
        count: u32,
        tiles: u32,
    ) {
        let units = comptime!(self.shape.lanes);
        let lanes = comptime!(word_lanes(self.shape));
        let words = comptime!(words(self.shape));
        let reduce = CubeReduce::new(self.shape);
        self.selected = selected;
        #[unroll]
        for load in 0..comptime!(self.shape.loads) {
            let ballot = plane_ballot(selected & comptime!(bit(load)) != 0);
            let word = comptime!(load as u32 * (units / lanes)) + UNIT_POS / lanes;
            #[unroll]
            for part in 0..comptime!((self.shape.plane_lanes() / lanes) as usize) {
                if UNIT_POS_X == comptime!(part as u32 * lanes) {
                    self.bits[word as usize] = ballot.extract(part);
                }
            }
        }
        if UNIT_POS == 0 {
            self.bits[words] = 0u32;
        }
        sync_cube();
        let mut earlier = 0u32;
        let mut chunk = 0u32;
        while chunk <= comptime!(words as u32) {
            let word = chunk + UNIT_POS;
            let mut own = 0u32;
            if word <= comptime!(words as u32) {
                own = self.bits[word as usize].count_ones();
            }
            let sums = reduce.prefix_sum(own);
            if word <= comptime!(words as u32) {
                self.before[word as usize] = earlier + sums.before;
            }
            earlier += sums.total;
            chunk += units;
            sync_cube();
        }
        let mut earlier = 0u32;
        let mut chunk = 0u32;
        while chunk < tiles {
            let tile = chunk + UNIT_POS;
            let mut start = 0u32;
            let mut own = 0u32;
            if tile < tiles {
                let mut first = 0u32;
                let mut length = count;
                if row.kind != NONE {
                    first = lists.table[row.entry(tile)];
                    length = lists.table[row.entry(tile) + 1];
                }
                start = self.before(first);
                own = self.before(first + length) - start;
            }
            let sums = reduce.prefix_sum(own);
            if tile < tiles {
                self.shifts[tile as usize] = earlier + sums.before - start;
            }
            earlier += sums.total;
            chunk += units;
            sync_cube();
        }
    }

    /// Selected before a list place.
    fn before(&self, place: u32) -> u32 {
        let lanes = comptime!(word_lanes(self.shape));
        let word = (place / lanes) as usize;
        let below = self.bits[word] & ((1u32 << (place % lanes)) - 1);
        self.before[word] + below.count_ones()
    }

    fn slot(&self, place: u32, tile: u32) -> u32 {
        self.before(place) + self.shifts[tile as usize]
    }
}
