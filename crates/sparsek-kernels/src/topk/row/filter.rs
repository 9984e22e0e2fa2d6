//! Routine `filter`: several cubes per row, read once. Two launches:
//!
//! ```text
//! floors: floor of a row <- a threshold of a sample, with a margin
//! filter: each tile of a row appends its elements above the floor to a list of the row
//!         the last tile of a row to arrive selects from the list
//! ```
//!
//! Lists are read in index order, so scheduling changes no result. Too few elements above the floor
//! mean that many equal it: the first tiles are reread until they hold enough. If a sample
//! misleads, the last tile selects as `cube`.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    bounds::RowBounds,
    config::CandidateConfig,
    cube::{place_elements, select_in_memory},
    layout::{MemoryCall, MemoryOutput, RowElements, RowLayout, RowRequest},
    loaded::{LoadedRow, RowSource},
    sampled::{ReachedBits, SampledThreshold, sampled_floor, sampling_of_row, to_column_order},
};
use crate::{
    primitives::team::{Team, exchange},
    topk::{
        key::{Element, ordered_key},
        threshold::search::{
            Cursor, KeyBracket, KeyRange, SearchParams, SearchRow, SearchRowExpand, Threshold,
            find_threshold,
        },
        tuning::{CUBE_ITEMS, FILTER_TOGETHER, LIST_AHEAD, TILE_ITEMS},
    },
};

/// Per tile: list place, elements above the floor, level.
pub(super) const TILE_WORDS: usize = 3;
pub(super) const FLOOR_WORDS: usize = 2;

const KEY: u32 = 0;
const FLOAT: u32 = 1;
/// One cube reads the whole row.
const NONE: u32 = 2;

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct FilterSizes {
    /// Of the longest row.
    pub tiles: u32,
    /// Per list.
    pub capacity: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tiling {
    /// Cube-wide loads per tile.
    pub steps: u32,
    /// Of the longest row, rounded up.
    pub max_tiles: usize,
}

impl Tiling {
    pub fn cols(&self, units: u32) -> u32 {
        units * TILE_ITEMS as u32 * self.steps
    }
}

#[derive(CubeType, CubeLaunch)]
pub(crate) struct Lists<E: Element> {
    table: &'static mut [u32],
    values: &'static mut [E],
    columns: &'static mut [u32],
    sizes: FilterSizes,
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn write_floors<E: Element, N: Size>(
    input: &[Vector<E, N>],
    bounds: &RowBounds,
    floors: &mut [E::Key],
    counters: &mut [u32],
    layout: RowLayout,
    params: SearchParams,
    sizes: FilterSizes,
    #[comptime] config: CandidateConfig,
) {
    let row = CUBE_POS;
    if row >= layout.rows {
        terminate!();
    }
    let request = RowRequest::new(bounds, row, layout, params);
    let memory = comptime!(config.memory);
    let mut kind = NONE.runtime();
    let mut floor = E::Key::min_value();
    if request.layout.cols > sizes.capacity {
        let (strided, search) = comptime!((memory.strided, memory.search));
        let source = RowSource::<E, N>::of_request(input, row, &request, strided, search);
        let sampling = sampling_of_row(&request, N::value().comptime() as u32, config);
        let sampled = sampled_floor::<E, N>(&source, &sampling, FILTER_TOGETHER, config);
        kind = KEY.runtime();
        floor = sampled.key;
        if comptime!(config.floats) {
            if sampled.found {
                kind = FLOAT.runtime();
                floor = E::Key::cast_from(u32::reinterpret(sampled.value));
            }
        }
    }
    if UNIT_POS == 0 {
        floors[row * FLOOR_WORDS] = floor;
        floors[row * FLOOR_WORDS + 1] = E::Key::cast_from(kind);
        counters[row] = 0u32;
        counters[layout.rows + row] = 0u32;
    }
}

/// Dense rows and `counters` (list lengths, then arrived tiles) begin at zero. Other cubes must see
/// storage after [`sync_storage`].
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn filter_select<E: Element, I: Numeric, N: Size>(
    input: &[Vector<E, N>],
    call: &mut MemoryCall<E, I>,
    floors: &[E::Key],
    counters: &[Atomic<u32>],
    lists: &mut Lists<E>,
    #[comptime] config: CandidateConfig,
    #[comptime] tiling: Tiling,
    #[define(I)] _index: ElemType,
) {
    let sizes = lists.sizes;
    let row = CUBE_POS / sizes.tiles as usize;
    if row >= call.layout.rows {
        terminate!();
    }
    let number = (CUBE_POS - row * sizes.tiles as usize) as u32;
    let memory = comptime!(config.memory);
    let units = comptime!(config.list.lanes);
    let elements = call.elements;
    let mut output = call.output(row, memory);
    let request = output.request;
    let layout = request.layout;
    let head = request.first % N::value().comptime() as u32;
    let tile_cols = comptime!(tiling.cols(units));
    let kind = u32::cast_from(floors[row * FLOOR_WORDS + 1]);
    let tiles = select(kind == NONE, 1u32, (head + layout.cols + tile_cols - 1) / tile_cols);
    if number >= tiles {
        terminate!();
    }
    let list = TileList::<E> {
        row,
        kind,
        floor: floors[row * FLOOR_WORDS],
        request,
        head,
        sizes,
        config,
        tiling,
    };
    let mut keys = Shared::<[E::Key]>::new_slice(comptime!(config.capacity()));
    let mut last = Shared::<[u32]>::new_slice(4usize);
    if kind == NONE {
        if UNIT_POS == 0 {
            last[0] = 1u32;
        }
    } else {
        list.append::<N>(input, elements, number, &counters[row], lists, &mut keys);
        // Cubes that see the arrival see the list.
        sync_storage();
        if UNIT_POS == 0 {
            let earlier = counters[layout.rows + row].fetch_add(1u32);
            last[0] = select(earlier + 1 == tiles, 1u32, 0u32);
        }
    }
    sync_storage();
    if last[0] == 1 {
        if comptime!(memory.ragged) {
            output.pad(UNIT_POS, units);
        }
        if output.request.params.k > 0 {
            list.select::<I>(elements, &mut output, &*lists, &mut keys, tiles);
        }
    }
}

#[derive(CubeType, Clone, Copy)]
struct TileList<E: Element> {
    row: usize,
    kind: u32,
    floor: E::Key,
    request: RowRequest,
    head: u32,
    sizes: FilterSizes,
    #[cube(comptime)]
    config: CandidateConfig,
    #[cube(comptime)]
    tiling: Tiling,
}

#[cube]
impl<E: Element> TileList<E> {
    fn entry(&self, tile: u32) -> usize {
        (self.row * self.sizes.tiles as usize + tile as usize) * TILE_WORDS
    }

    fn elements<'a>(&self, elements: &'a [E]) -> RowElements<'a, E> {
        let (first, layout) = (self.request.first, self.request.layout);
        RowElements::new(elements, self.row, first, layout, self.config.memory)
    }

    fn start(&self) -> usize {
        self.row * self.sizes.capacity as usize
    }

    fn append<N: Size>(
        &self,
        input: &[Vector<E, N>],
        elements: &[E],
        number: u32,
        listed: &Atomic<u32>,
        lists: &mut Lists<E>,
        scratch: &mut Shared<[E::Key]>,
    ) {
        let memory = comptime!(self.config.memory);
        let part = comptime!(self.config.part);
        let units = comptime!(self.config.list.lanes);
        let steps = comptime!(self.tiling.steps);
        let step_cols = comptime!(part.lanes * TILE_ITEMS as u32);
        let floor = SampledThreshold::<E> {
            value: f32::reinterpret(u32::cast_from(self.floor)),
            found: self.kind == FLOAT,
            key: self.floor,
        };
        let (strided, search) = comptime!((memory.strided, memory.search));
        let source = RowSource::<E, N>::of_request(input, self.row, &self.request, strided, search);
        let cols = source.layout.cols;
        let tile = number * comptime!(self.tiling.cols(units));
        let own = tile + UNIT_POS_Y * comptime!(step_cols * steps);
        let mut words = Shared::<[u32]>::new_slice(comptime!((units * steps) as usize));
        let mut level_count = 0u32;
        for step in 0..steps {
            let first = own + step * step_cols;
            let team = Team::of(cols - min(first, cols), part, memory.ragged);
            let rest = source.rest_from(first);
            let loaded = LoadedRow::<E, N>::new(&rest, team);
            let mut above = 0u32;
            if comptime!(self.config.floats) {
                if self.kind == FLOAT {
                    let bits = ReachedBits::new::<E, N>(&loaded, rest.head, &floor, true, search);
                    above = bits.above;
                }
            }
            if self.kind == KEY {
                let bits = ReachedBits::new::<E, N>(&loaded, rest.head, &floor, false, search);
                above = bits.above;
                level_count += bits.level.count_ones();
            }
            words[(step * units + UNIT_POS) as usize] = above;
        }
        sync_plane();

        let plane = Team::new(0u32.runtime(), part);
        let cube = Team::new(0u32.runtime(), comptime!(self.config.list));
        let mut before = Array::<u32>::new(comptime!(steps as usize));
        let mut ordered = Array::<u32>::new(comptime!(steps as usize));
        let mut in_plane = 0u32;
        #[unroll]
        for step in 0..comptime!(steps as usize) {
            let word = to_column_order(&words, comptime!(step as u32 * units), part);
            let sum = plane.running_sum(word.count_ones());
            ordered[step] = word;
            before[step] = in_plane + sum - word.count_ones();
            in_plane += plane_shuffle(sum, comptime!(part.lanes - 1));
        }
        let slots = exchange::<u32>(in_plane, comptime!(self.config.list));
        let mut before_plane = 0u32;
        let mut count = 0u32;
        #[unroll]
        for plane in 0..comptime!(self.config.list.planes as usize) {
            before_plane += select(UNIT_POS_Y > comptime!(plane as u32), slots[plane], 0u32);
            count += slots[plane];
        }
        let mut level = 0u32;
        if self.kind == KEY {
            level = cube.sum::<u32>(level_count);
        }
        let mut start = Shared::<[u32]>::new_slice(4usize);
        let mut place = 0u32;
        if UNIT_POS == 0 {
            place = listed.fetch_add(count);
        }
        let capacity = comptime!(self.config.capacity() as u32);
        #[unroll]
        for step in 0..comptime!(steps as usize) {
            let first = own + comptime!(step as u32 * step_cols);
            let first = first + UNIT_POS_X * comptime!(TILE_ITEMS as u32);
            let mut slot = before_plane + before[step];
            let mut rest = ordered[step];
            while rest != 0 {
                let lowest = rest & (!rest + 1);
                if slot < capacity {
                    let column = first + (lowest - 1).count_ones();
                    scratch[slot as usize] = E::Key::cast_from(column - self.head);
                }
                slot += 1;
                rest ^= lowest;
            }
        }
        // The place has arrived meanwhile.
        if UNIT_POS == 0 {
            start[0] = place;
            let entry = self.entry(number);
            lists.table[entry] = place;
            lists.table[entry + 1] = count;
            lists.table[entry + 2] = level;
        }
        sync_cube();
        let row = self.elements(elements);
        let first = start[0];
        let count = min(count, capacity - min(first, capacity));
        let mut place = UNIT_POS;
        while place < count {
            let mut columns = Sequence::<u32>::new();
            let mut values = Sequence::<E>::new();
            #[unroll]
            for load in 0..LIST_AHEAD {
                let inside = min(place + comptime!(load as u32 * units), count - 1);
                let column = u32::cast_from(scratch[inside as usize]);
                columns.push(column);
                values.push(row.value(column));
            }
            #[unroll]
            for load in 0..LIST_AHEAD {
                let own = place + comptime!(load as u32 * units);
                if own < count {
                    let target = self.start() + (first + own) as usize;
                    lists.columns[target] = columns[load];
                    lists.values[target] = values[load];
                }
            }
            place += comptime!(LIST_AHEAD as u32 * units);
        }
    }

    fn select<I: Numeric>(
        &self,
        elements: &[E],
        output: &mut MemoryOutput<E, I>,
        lists: &Lists<E>,
        keys: &mut Shared<[E::Key]>,
        tiles: u32,
    ) {
        let memory = comptime!(self.config.memory);
        let units = comptime!(self.config.list.lanes);
        let k = output.request.params.k;
        let row = self.elements(elements);
        let before = self.counts_before(lists, tiles);
        let above = before.above[tiles as usize];
        let level = before.level[tiles as usize];
        let enough_level = self.kind == KEY && above < k && above + level >= k;
        if above <= self.sizes.capacity && (above >= k || enough_level) {
            if above >= k {
                self.load_keys(&row, lists, &before, above, keys);
                sync_cube();
                let team = Team::new(above, comptime!(self.config.list));
                let list = ListRow::<E> { keys: keys.clone(), team, units };
                let threshold =
                    find_threshold::<E, ListRow<E>>(&list, &output.request.params, memory.search);
                keep_selected::<E>(keys, &threshold, k, team, units);
                sync_cube();
                let mut slot = UNIT_POS;
                while slot < k {
                    let mut found = Sequence::<Candidate<E>>::new();
                    #[unroll]
                    for load in 0..LIST_AHEAD {
                        let inside = min(slot + comptime!(load as u32 * units), k - 1);
                        let position = u32::cast_from(keys[inside as usize]);
                        found.push(self.candidate(&row, lists, &before, position, tiles));
                    }
                    #[unroll]
                    for load in 0..LIST_AHEAD {
                        let own = slot + comptime!(load as u32 * units);
                        if own < k {
                            found[load].write::<I>(output, own);
                        }
                    }
                    slot += comptime!(LIST_AHEAD as u32 * units);
                }
            } else {
                let quota = k - above;
                let mut low = 0u32;
                let mut high = tiles;
                while high - low > 1 {
                    let middle = (low + high) / 2;
                    let holds = before.level[middle as usize] >= quota;
                    high = select(holds, middle, high);
                    low = select(holds, low, middle);
                }
                let end = high * comptime!(self.tiling.cols(units)) - self.head;
                let end = min(end, self.request.layout.cols);
                let threshold = Threshold::<E::Key> { low: self.floor, high: self.floor, above };
                let counts = Shared::<[u32]>::new_slice(units as usize);
                place_elements::<E, I>(&row, output, &threshold, quota, end, counts, units);
                let mut position = before.above[high as usize] + UNIT_POS;
                while position < above {
                    let found = self.candidate(&row, lists, &before, position, tiles);
                    found.write::<I>(output, position + quota);
                    position += units;
                }
            }
        } else {
            select_in_memory::<E, I>(elements, output, units);
        }
    }

    fn load_keys(
        &self,
        row: &RowElements<E>,
        lists: &Lists<E>,
        before: &CountsBefore,
        above: u32,
        keys: &mut Shared<[E::Key]>,
    ) {
        let largest = comptime!(self.config.memory.search.largest);
        let units = comptime!(self.config.list.lanes);
        let tile_cols = comptime!(self.tiling.cols(units));
        let mut place = UNIT_POS;
        if self.kind == NONE {
            while place < above {
                keys[place as usize] = ordered_key::<E>(row.value(place), largest);
                place += units;
            }
        } else {
            while place < above {
                let mut values = Sequence::<E>::new();
                let mut columns = Sequence::<u32>::new();
                #[unroll]
                for load in 0..LIST_AHEAD {
                    let inside = min(place + comptime!(load as u32 * units), above - 1);
                    let source = self.start() + inside as usize;
                    values.push(lists.values[source]);
                    columns.push(lists.columns[source]);
                }
                #[unroll]
                for load in 0..LIST_AHEAD {
                    let listed = place + comptime!(load as u32 * units);
                    if listed < above {
                        let tile = (columns[load] + self.head) / tile_cols;
                        let position = listed - before.shift[tile as usize];
                        keys[position as usize] = ordered_key::<E>(values[load], largest);
                    }
                }
                place += comptime!(LIST_AHEAD as u32 * units);
            }
        }
    }

    fn counts_before(&self, lists: &Lists<E>, tiles: u32) -> CountsBefore {
        let max_tiles = comptime!(self.tiling.max_tiles);
        let units = comptime!(self.config.list.lanes);
        let team = Team::new(0u32.runtime(), comptime!(self.config.list));
        let mut above_before = Shared::<[u32]>::new_slice(max_tiles + 1);
        let mut level_before = Shared::<[u32]>::new_slice(max_tiles + 1);
        let mut shift = Shared::<[u32]>::new_slice(max_tiles);
        let mut above = 0u32;
        let mut level = 0u32;
        let mut chunk = 0u32;
        while chunk < tiles {
            let tile = chunk + UNIT_POS;
            let mut own_above = 0u32;
            let mut own_level = 0u32;
            let mut place = 0u32;
            if self.kind == NONE {
                own_above = select(tile == 0, self.request.layout.cols, 0u32);
            } else if tile < tiles {
                let entry = self.entry(tile);
                place = lists.table[entry];
                own_above = lists.table[entry + 1];
                own_level = lists.table[entry + 2];
            }
            let through_above = above + team.prefix_sum(own_above) + own_above;
            let through_level = level + team.prefix_sum(own_level) + own_level;
            if tile < tiles {
                above_before[tile as usize + 1] = through_above;
                shift[tile as usize] = place + own_above - through_above;
                level_before[tile as usize + 1] = through_level;
            }
            sync_cube();
            let last = min(chunk + units, tiles);
            above = above_before[last as usize];
            level = level_before[last as usize];
            chunk += units;
        }
        if UNIT_POS == 0 {
            above_before[0] = 0u32;
            level_before[0] = 0u32;
        }
        sync_cube();
        CountsBefore {
            above: above_before.clone(),
            level: level_before.clone(),
            shift: shift.clone(),
        }
    }

    fn candidate(
        &self,
        row: &RowElements<E>,
        lists: &Lists<E>,
        before: &CountsBefore,
        position: u32,
        tiles: u32,
    ) -> Candidate<E> {
        let mut candidate = Candidate::<E> { column: position, value: E::from_int(0) };
        if self.kind == NONE {
            candidate.value = row.value(position);
        } else {
            let mut low = 0u32;
            let mut high = tiles;
            while high - low > 1 {
                let middle = (low + high) / 2;
                let starts = before.above[middle as usize] <= position;
                low = select(starts, middle, low);
                high = select(starts, high, middle);
            }
            let place = self.start() + (position + before.shift[low as usize]) as usize;
            candidate.column = lists.columns[place];
            candidate.value = lists.values[place];
        }
        candidate
    }
}

#[cube]
fn keep_selected<E: Element>(
    keys: &mut Shared<[E::Key]>,
    threshold: &Threshold<E::Key>,
    k: u32,
    team: Team,
    #[comptime] units: u32,
) {
    let quota = k - threshold.above;
    let mut totals = Cursor { above: 0u32.runtime(), level: 0u32.runtime() };
    let mut tile = 0u32;
    while tile < team.cols {
        let first = tile + UNIT_POS * CUBE_ITEMS;
        let mut above = 0u32;
        let mut level = 0u32;
        #[unroll]
        for item in 0..CUBE_ITEMS {
            if first + item < team.cols {
                let key = keys[(first + item) as usize];
                let is_above = key > threshold.high;
                let bit = comptime!(1u32 << item);
                above |= select(is_above, bit, 0u32);
                level |= select(key >= threshold.low && !is_above, bit, 0u32);
            }
        }
        let counts = Cursor { above: above.count_ones(), level: level.count_ones() };
        let packed = counts.packed();
        // Waits for all units; slots never pass positions.
        let mut cursor = totals.after(team.prefix_sum(packed));
        let mut rest = above | level;
        while rest != 0 {
            let lowest = rest & (!rest + 1);
            let is_above = above & lowest != 0;
            if is_above || cursor.level < quota {
                let slot = cursor.above + min(cursor.level, quota);
                keys[slot as usize] = E::Key::cast_from(first + (lowest - 1).count_ones());
            }
            cursor.above += select(is_above, 1u32, 0u32);
            cursor.level += select(is_above, 0u32, 1u32);
            rest ^= lowest;
        }
        totals.skip(team.sum::<u32>(packed));
        tile += comptime!(units * CUBE_ITEMS);
    }
}

#[derive(CubeType, Clone, Copy)]
struct Candidate<E: Element> {
    column: u32,
    value: E,
}

#[cube]
impl<E: Element> Candidate<E> {
    fn write<I: Numeric>(&self, output: &mut MemoryOutput<E, I>, slot: u32) {
        if comptime!(output.config.dense) {
            output.set_dense(self.column, self.value);
        }
        output.set(slot, self.value, self.column);
    }
}

#[derive(CubeType)]
struct CountsBefore {
    above: Shared<[u32]>,
    level: Shared<[u32]>,
    /// Index-order position to list place, modulo 2^32.
    shift: Shared<[u32]>,
}

#[derive(CubeType)]
struct ListRow<E: Element> {
    keys: Shared<[E::Key]>,
    team: Team,
    #[cube(comptime)]
    units: u32,
}

#[cube]
impl<E: Element> ListRow<E> {
    fn key(&self, position: u32, #[comptime] load: usize, other: E::Key) -> E::Key {
        let own = position + comptime!(load as u32 * self.units);
        let inside = min(own, self.team.cols - 1);
        select(own < self.team.cols, self.keys[inside as usize], other)
    }
}

#[cube]
impl<E: Element> SearchRow<E> for ListRow<E> {
    fn bracket(&self, _k: u32) -> KeyBracket<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        let mut position = UNIT_POS;
        while position < self.team.cols {
            #[unroll]
            for load in 0..LIST_AHEAD {
                low = min(low, self.key(position, load, E::Key::max_value()));
                high = max(high, self.key(position, load, E::Key::min_value()));
            }
            position += comptime!(LIST_AHEAD as u32 * self.units);
        }
        KeyBracket::<E::Key> {
            low: self.team.min::<E::Key>(low),
            high: self.team.max::<E::Key>(high),
            expected: f32::cast_from(self.team.cols),
        }
    }

    /// Only other methods ask.
    fn finite_range(&self) -> KeyRange<E::Key> {
        KeyRange::<E::Key> { low: E::Key::min_value(), high: E::Key::max_value() }
    }

    fn count(&self, key: E::Key) -> u32 {
        let mut count = 0u32;
        let mut position = UNIT_POS;
        while position < self.team.cols {
            #[unroll]
            for load in 0..LIST_AHEAD {
                let own = self.key(position, load, E::Key::min_value());
                count += select(own >= key, 1u32, 0u32);
            }
            position += comptime!(LIST_AHEAD as u32 * self.units);
        }
        self.team.sum::<u32>(count)
    }

    fn greatest(&self, key: E::Key) -> E::Key {
        let mut greatest = E::Key::min_value();
        let mut position = UNIT_POS;
        while position < self.team.cols {
            #[unroll]
            for load in 0..LIST_AHEAD {
                let other = self.key(position, load, E::Key::min_value());
                greatest = max(greatest, select(other <= key, other, greatest));
            }
            position += comptime!(LIST_AHEAD as u32 * self.units);
        }
        self.team.max::<E::Key>(greatest)
    }

    fn agreed(&self, condition: bool) -> bool {
        condition
    }
}
