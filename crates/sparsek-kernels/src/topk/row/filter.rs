//! Routine `filter`, three launches:
//!
//! ```text
//! floors: floor of a row <- a threshold of a sample, with a margin
//! list:   each tile of a row appends its elements above the floor to a list of the row
//! select: from the list
//! ```
//!
//! Output slots follow index order, so scheduling changes no result. Too few elements above the
//! floor mean that many equal it: the first tiles are reread until they hold enough. If a sample
//! misleads, the row is selected as by `cube`.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    bounds::RowBounds,
    config::CandidateConfig,
    cube::{place_elements, select_in_memory},
    filter_list::ListedRow,
    layout::{MemoryCall, MemoryOutput, RowElements, RowLayout, RowRequest},
    loaded::{LoadedRow, RowSource},
    sampled::{ReachedBits, SampledThreshold, sampled_floor, sampling_of_row, to_column_order},
};
use crate::{
    primitives::team::{Team, exchange},
    topk::{
        key::Element,
        threshold::{
            cube_reduce::CubeReduce,
            search::{SearchParams, Threshold},
        },
        tuning::{FILTER_TOGETHER, LIST_AHEAD, TILE_ITEMS},
    },
};

/// Per tile: list place, elements above the floor, level.
pub(super) const TILE_WORDS: usize = 3;
pub(super) const FLOOR_WORDS: usize = 2;

const KEY: u32 = 0;
const FLOAT: u32 = 1;
/// One cube reads the whole row.
pub(super) const NONE: u32 = 2;

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct FilterSizes {
    /// Of the longest row.
    pub tiles: u32,
    /// Per list.
    pub capacity: u32,
}

fn tile_cols(units: u32) -> u32 {
    units * TILE_ITEMS as u32
}

#[derive(CubeType, CubeLaunch)]
pub(crate) struct Lists<E: Element> {
    pub(super) table: &'static mut [u32],
    pub(super) values: &'static mut [E],
    pub(super) columns: &'static mut [u32],
    sizes: FilterSizes,
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn write_floors<E: Element, N: Size>(
    input: &[Vector<E, N>],
    bounds: &RowBounds,
    floors: &mut [E::Key],
    lengths: &mut [u32],
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
        lengths[row] = 0u32;
    }
}

/// `lengths` of lists begin at zero.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn list_tiles<E: Element, N: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    bounds: &RowBounds,
    floors: &[E::Key],
    lengths: &[Atomic<u32>],
    lists: &mut Lists<E>,
    layout: RowLayout,
    params: SearchParams,
    #[comptime] config: CandidateConfig,
    #[comptime] max_tiles: usize,
) {
    let tiles = lists.sizes.tiles as usize;
    let row = CUBE_POS / tiles;
    if row >= layout.rows {
        terminate!();
    }
    let number = (CUBE_POS - row * tiles) as u32;
    let request = RowRequest::new(bounds, row, layout, params);
    let list = TileList::<E>::new::<N>(row, request, floors, lists.sizes, config, max_tiles);
    // Without the floor, so that it arrives with the tile.
    if request.layout.cols <= lists.sizes.capacity || number >= list.row_tiles() {
        terminate!();
    }
    let loaded = list.load::<N>(input, number);
    list.append::<N>(&loaded, elements, number, &lengths[row], lists);
}

/// A dense row begins at zero.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn select_listed<E: Element, I: Numeric, N: Size>(
    call: &mut MemoryCall<E, I>,
    floors: &[E::Key],
    lengths: &[u32],
    lists: &Lists<E>,
    #[comptime] config: CandidateConfig,
    #[comptime] max_tiles: usize,
    #[define(N)] _width: usize,
    #[define(I)] _index: ElemType,
) {
    let row = CUBE_POS;
    if row >= call.layout.rows {
        terminate!();
    }
    let elements = call.elements;
    let mut output = call.output(row, comptime!(config.memory));
    let request = output.request;
    if comptime!(config.memory.ragged) {
        output.pad(UNIT_POS, comptime!(config.list.lanes));
    }
    if request.params.k > 0 {
        let list = TileList::<E>::new::<N>(row, request, floors, lists.sizes, config, max_tiles);
        list.select::<I>(elements, &mut output, lists, lengths[row]);
    }
}

#[derive(CubeType, Clone, Copy)]
pub(super) struct TileList<E: Element> {
    row: usize,
    pub kind: u32,
    floor: E::Key,
    pub request: RowRequest,
    head: u32,
    sizes: FilterSizes,
    #[cube(comptime)]
    pub config: CandidateConfig,
    /// Of the longest row, rounded up.
    #[cube(comptime)]
    pub max_tiles: usize,
}

#[cube]
impl<E: Element> TileList<E> {
    fn new<N: Size>(
        row: usize,
        request: RowRequest,
        floors: &[E::Key],
        sizes: FilterSizes,
        #[comptime] config: CandidateConfig,
        #[comptime] max_tiles: usize,
    ) -> TileList<E> {
        TileList::<E> {
            row,
            kind: u32::cast_from(floors[row * FLOOR_WORDS + 1]),
            floor: floors[row * FLOOR_WORDS],
            request,
            head: request.first % N::value().comptime() as u32,
            sizes,
            config,
            max_tiles,
        }
    }

    fn row_tiles(&self) -> u32 {
        let cols = comptime!(tile_cols(self.config.sample.lanes));
        (self.head + self.request.layout.cols).div_ceil(cols)
    }

    fn tiles(&self) -> u32 {
        select(self.kind == NONE, 1u32, self.row_tiles())
    }

    pub fn entry(&self, tile: u32) -> usize {
        (self.row * self.sizes.tiles as usize + tile as usize) * TILE_WORDS
    }

    fn elements<'a>(&self, elements: &'a [E]) -> RowElements<'a, E> {
        let (first, layout) = (self.request.first, self.request.layout);
        RowElements::new(elements, self.row, first, layout, self.config.memory)
    }

    pub fn start(&self) -> usize {
        self.row * self.sizes.capacity as usize
    }

    /// First column of this plane.
    fn first_of_plane(&self, number: u32) -> u32 {
        let units = comptime!(self.config.sample.lanes);
        let plane_cols = comptime!(self.config.part.lanes * TILE_ITEMS as u32);
        number * comptime!(tile_cols(units)) + UNIT_POS_Y * plane_cols
    }

    fn load<N: Size>(&self, input: &[Vector<E, N>], number: u32) -> LoadedRow<E, N> {
        let memory = comptime!(self.config.memory);
        let (strided, search) = comptime!((memory.strided, memory.search));
        let source = RowSource::<E, N>::of_request(input, self.row, &self.request, strided, search);
        let first = self.first_of_plane(number);
        let cols = source.layout.cols;
        let part = comptime!(self.config.part);
        let team = Team::of(cols - min(first, cols), part, memory.ragged);
        LoadedRow::<E, N>::new(&source.rest_from(first), team)
    }

    fn append<N: Size>(
        &self,
        loaded: &LoadedRow<E, N>,
        elements: &[E],
        number: u32,
        listed: &Atomic<u32>,
        lists: &mut Lists<E>,
    ) {
        let search = comptime!(self.config.memory.search);
        let part = comptime!(self.config.part);
        let units = comptime!(self.config.sample.lanes);
        let floor = SampledThreshold::<E> {
            value: f32::reinterpret(u32::cast_from(self.floor)),
            found: self.kind == FLOAT,
            key: self.floor,
        };
        let own = self.first_of_plane(number);
        let head = select(own == 0, self.head, 0u32);
        let mut words = Shared::<[u32]>::new_slice(units as usize);
        let mut above = 0u32;
        let mut level_count = 0u32;
        if comptime!(self.config.floats) {
            if self.kind == FLOAT {
                let bits = ReachedBits::new::<E, N>(loaded, head, &floor, true, search);
                above = bits.above;
            }
        }
        if self.kind == KEY {
            let bits = ReachedBits::new::<E, N>(loaded, head, &floor, false, search);
            above = bits.above;
            level_count = bits.level.count_ones();
        }
        words[UNIT_POS as usize] = above;
        sync_plane();

        let plane = Team::new(0u32.runtime(), part);
        let cube = Team::new(0u32.runtime(), comptime!(self.config.sample));
        let ordered = to_column_order(&words, part);
        let sum = plane.running_sum(ordered.count_ones());
        let in_plane = plane_shuffle(sum, comptime!(part.lanes - 1));
        let slots = exchange::<u32>(in_plane, comptime!(self.config.sample));
        let mut before_plane = 0u32;
        let mut count = 0u32;
        #[unroll]
        for plane in 0..comptime!(self.config.sample.planes as usize) {
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
        let capacity = comptime!(self.config.capacity().min(tile_cols(units) as usize));
        let mut scratch = Shared::<[u32]>::new_slice(capacity);
        let capacity = comptime!(capacity as u32);
        let first_column = own + UNIT_POS_X * comptime!(TILE_ITEMS as u32);
        let mut slot = before_plane + sum - ordered.count_ones();
        let mut rest = ordered;
        while rest != 0 {
            let lowest = rest & (!rest + 1);
            if slot < capacity {
                let column = first_column + (lowest - 1).count_ones();
                scratch[slot as usize] = column - self.head;
            }
            slot += 1;
            rest ^= lowest;
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
        let count = min(count, self.sizes.capacity - min(first, self.sizes.capacity));
        let mut place = UNIT_POS;
        while place < count {
            let mut columns = Sequence::<u32>::new();
            let mut values = Sequence::<E>::new();
            #[unroll]
            for load in 0..LIST_AHEAD {
                let inside = min(place + comptime!(load as u32 * units), count - 1);
                let column = scratch[inside as usize];
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
        listed: u32,
    ) {
        let units = comptime!(self.config.list.lanes);
        let tile_cols = comptime!(tile_cols(self.config.sample.lanes));
        let tiles = self.tiles();
        let k = output.request.params.k;
        let row = self.elements(elements);
        let count = select(self.kind == NONE, self.request.layout.cols, listed);
        let mut selected = false.runtime();
        if count <= self.sizes.capacity {
            let list = ListedRow::<E>::new(self, &row, lists, count, tiles);
            if count >= k {
                list.write_best::<I>(self, &row, lists, output);
                selected = true.runtime();
            } else if self.kind == KEY {
                let quota = k - count;
                let end = self.tiles_of_level(lists, tiles, quota);
                if end <= tiles {
                    let end = end * tile_cols - self.head;
                    let end = min(end, self.request.layout.cols);
                    let threshold =
                        Threshold::<E::Key> { low: self.floor, high: self.floor, above: count };
                    let counts = Shared::<[u32]>::new_slice(units as usize);
                    place_elements::<E, I>(&row, output, &threshold, quota, end, counts, units);
                    list.write_rest::<I>(self, &row, lists, output, end, quota);
                    selected = true.runtime();
                }
            }
        }
        if !selected {
            select_in_memory::<E, I>(elements, output, units);
        }
    }

    /// Tiles with the first `quota` elements at the floor; more than `tiles` if fewer exist.
    fn tiles_of_level(&self, lists: &Lists<E>, tiles: u32, quota: u32) -> u32 {
        let reduce = CubeReduce::new(comptime!(self.config.list));
        let mut level = 0u32;
        let mut fewer = 0u32;
        let mut chunk = 0u32;
        while chunk < tiles {
            let tile = chunk + UNIT_POS;
            let mut own = 0u32;
            if tile < tiles {
                own = lists.table[self.entry(tile) + 2];
            }
            let sums = reduce.prefix_sum(own);
            let through = level + sums.before + own;
            fewer += select(tile < tiles && through < quota, 1u32, 0u32);
            level += sums.total;
            chunk += comptime!(self.config.list.lanes);
            sync_cube();
        }
        reduce.prefix_sum(fewer).total + 1
    }

    pub fn tile(&self, column: u32) -> u32 {
        let cols = comptime!(tile_cols(self.config.sample.lanes));
        select(self.kind == NONE, 0u32, (column + self.head) / cols)
    }
}
