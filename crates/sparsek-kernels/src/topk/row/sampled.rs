//! Routine `sampled`.
//!
//! ```text
//! floor <- a threshold of a sample of the row, with a margin
//! one pass lists the columns at or above it, in index order
//! select from the list
//! ```
//!
//! Ragged rows that fit are listed whole. The sample affects only the list's length.

#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::{ir::ElemType, prelude::*};

use super::{
    candidates::select_from_candidates,
    config::CandidateConfig,
    layout::{MemoryCall, RowRequest},
    loaded::{LoadedRow, RowSource},
};
use crate::{
    primitives::team::{Team, TeamShape},
    topk::{
        key::{Element, ordered_key},
        options::SearchConfig,
        threshold::{
            normal::{Normal, normal_on_device},
            register_row::KeyRow,
            search::{Cursor, SearchParams, find_threshold},
        },
        tuning::{SAMPLE_MARGIN, SAMPLE_SLACK, TILE_ITEMS},
    },
};

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Sampling {
    /// From 1, the greatest.
    pub rank: u32,
    pub slack: u32,
    pub normal: Normal,
    /// Columns between sample loads.
    pub spacing: u32,
}

/// A float if `found`.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct SampledThreshold<E: Element> {
    pub value: f32,
    pub found: bool,
    pub key: E::Key,
}

/// A dense row must be zero.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn sampled_select<E: Element, I: Numeric, N: Size>(
    input: &[Vector<E, N>],
    call: &mut MemoryCall<E, I>,
    sampling: Sampling,
    #[comptime] config: CandidateConfig,
    #[define(I)] _index: ElemType,
) {
    let row = CUBE_POS;
    if row >= call.layout.rows {
        terminate!();
    }
    let memory = comptime!(config.memory);
    let elements = call.elements;
    let mut output = call.output(row, memory);
    let request = output.request;
    let (strided, search) = comptime!((memory.strided, memory.search));
    let source = RowSource::<E, N>::of_request(input, row, &request, strided, search);
    let mut whole = false.runtime();
    if comptime!(memory.ragged) {
        output.pad(UNIT_POS, comptime!(config.list.lanes));
        if request.params.k == 0 {
            terminate!();
        }
        whole = request.layout.cols <= comptime!(config.capacity() as u32);
    }
    let mut columns = Shared::<[u32]>::new_slice(comptime!(config.capacity()));
    let mut listed = 0u32;
    if whole {
        listed = request.layout.cols;
        let mut column = UNIT_POS;
        while column < listed {
            columns[column as usize] = column;
            column += comptime!(config.list.lanes);
        }
        sync_cube();
    } else {
        let sampling = if comptime!(memory.ragged) {
            sampling_of_row(&request, N::value().comptime() as u32, config)
        } else {
            sampling
        };
        let k = request.params.k;
        let floor = sampled_floor::<E, N>(&source, &sampling, 1u32, config);
        if comptime!(config.floats) {
            if floor.found {
                listed = list_candidates(&source, &floor, k, &mut columns, true, config);
            }
        }
        if !floor.found {
            listed = list_candidates(&source, &floor, k, &mut columns, false, config);
        }
    }
    select_from_candidates::<E, I>(elements, &mut output, &columns, listed, config);
}

#[cube]
pub(super) fn sampling_of_row(
    request: &RowRequest,
    width: u32,
    #[comptime] config: CandidateConfig,
) -> Sampling {
    let samples = comptime!(config.sample.lanes * config.sample.items() as u32);
    let margin = comptime!(SAMPLE_MARGIN as f32);
    let cols = request.layout.cols;
    let share = comptime!(samples as f32) / f32::cast_from(cols);
    let expected = f32::cast_from(request.params.k) * share;
    let rank = u32::cast_from(f32::ceil(expected + margin * f32::sqrt(expected) + margin));
    let rank = min(rank, samples);
    let slack = u32::cast_from(f32::ceil(f32::cast_from(rank) / comptime!(SAMPLE_SLACK as f32)));
    Sampling {
        rank,
        slack,
        normal: normal_on_device(rank + slack / 2, samples.runtime()),
        spacing: cols / (samples / width) / width * width,
    }
}

#[cube]
pub(super) fn sampled_floor<E: Element, N: Size>(
    source: &RowSource<E, N>,
    sampling: &Sampling,
    #[comptime] together: u32,
    #[comptime] config: CandidateConfig,
) -> SampledThreshold<E> {
    let shape = comptime!(config.sample);
    let mut vectors = Sequence::<Vector<E, N>>::new();
    #[unroll]
    for load in 0..comptime!(shape.loads) {
        let place = UNIT_POS + comptime!(load as u32 * shape.lanes);
        let group = place / together * (sampling.spacing * together);
        let inside = place % together * comptime!(shape.width as u32);
        vectors.push(source.load(group + inside));
    }
    let team = Team::new(comptime!(shape.lanes * shape.items() as u32), shape);
    let sample = LoadedRow::<E, N> { vectors, team, search: source.search };
    let mut floor = SampledThreshold::<E> {
        value: 0.0f32.runtime(),
        found: false.runtime(),
        key: E::Key::min_value(),
    };
    if comptime!(config.floats) {
        let wanted = f32::cast_from(sampling.rank);
        let slack = f32::cast_from(sampling.slack);
        let level = sample.singles().approximate(wanted, slack, &sampling.normal);
        floor.value = level.value;
        floor.found = plane_all(level.settled);
    }
    if !floor.found {
        let params =
            SearchParams { k: sampling.rank, max_iter: 0u32.runtime(), eps: 0.0f32.runtime() };
        let keys = sample.keys(false);
        floor.key = find_threshold::<E, KeyRow<E>>(&keys, &params, source.search).low;
    }
    floor
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct ReachedBits {
    pub above: u32,
    pub level: u32,
}

#[cube]
impl ReachedBits {
    /// Skips the first `head` elements.
    pub fn new<E: Element, N: Size>(
        loaded: &LoadedRow<E, N>,
        head: u32,
        floor: &SampledThreshold<E>,
        #[comptime] floats: bool,
        #[comptime] search: SearchConfig,
    ) -> ReachedBits {
        let width = comptime!(loaded.team.shape.width);
        let mut above = 0u32;
        let mut level = 0u32;
        #[unroll]
        for load in 0..comptime!(loaded.team.shape.loads) {
            let mut load_above = 0u32;
            let mut load_level = 0u32;
            #[unroll]
            for i in 0..width {
                let item = comptime!(load * width + i);
                let value = loaded.value(item);
                let bit = comptime!(1u32 << item);
                if comptime!(floats) {
                    let over = is_above::<E>(value, floor.value, search.largest);
                    load_above |= select(over, bit, 0u32);
                } else {
                    let key = ordered_key::<E>(value, search.largest);
                    load_above |= select(key > floor.key, bit, 0u32);
                    load_level |= select(key == floor.key, bit, 0u32);
                }
            }
            let inside = load_bits(&loaded.team, load, head);
            above |= load_above & inside;
            level |= load_level & inside;
        }
        ReachedBits { above, level }
    }

    pub fn counts(&self) -> u32 {
        self.above.count_ones() + (self.level.count_ones() << 16)
    }
}

#[cube]
fn load_bits(team: &Team, #[comptime] load: usize, head: u32) -> u32 {
    let width = comptime!(team.shape.width as u32);
    let all = comptime!(u32::MAX >> (32 - width));
    let shift = comptime!(load as u32 * width);
    if comptime!(team.ragged && width > 1) {
        let start = team.column(load);
        let missing = width - min(team.cols - min(start, team.cols), width);
        let skipped = select(start == 0, head, 0u32);
        (((all.runtime() >> missing) >> skipped) << skipped) << shift
    } else {
        select(team.loads(load), comptime!(all << shift), 0u32)
    }
}

#[cube]
fn is_above<E: Element>(value: E, floor: f32, #[comptime] largest: bool) -> bool {
    let single = E::single(value);
    if comptime!(largest) {
        // By bits: shader compilers may assume no NaN.
        single > floor || (u32::reinterpret(single) & 0x7fff_ffffu32) > 0x7f80_0000u32
    } else {
        -single > floor
    }
}

#[cube]
pub(super) fn to_column_order(words: &Shared<[u32]>, #[comptime] part: TeamShape) -> u32 {
    let width = comptime!(part.width as u32);
    let group = comptime!(TILE_ITEMS as u32 / width);
    let groups = comptime!(part.lanes / group);
    let first = UNIT_POS_Y * part.lanes + UNIT_POS_X % groups * group;
    let shift = UNIT_POS_X / groups * width;
    let mut word = 0u32;
    #[unroll]
    for unit in 0..group {
        let own = words[(first + unit) as usize] >> shift;
        word |= (own & comptime!(u32::MAX >> (32 - width))) << comptime!(unit * width);
    }
    word
}

/// May exceed the capacity.
#[cube]
fn list_candidates<E: Element, N: Size>(
    source: &RowSource<E, N>,
    floor: &SampledThreshold<E>,
    k: u32,
    columns: &mut Shared<[u32]>,
    #[comptime] floats: bool,
    #[comptime] config: CandidateConfig,
) -> u32 {
    let part = comptime!(config.part);
    let units = comptime!(config.list.lanes);
    let part_cols = comptime!(part.lanes * TILE_ITEMS as u32);
    let capacity = comptime!(config.capacity() as u32);
    let mut above_words = Shared::<[u32]>::new_slice(units as usize);
    let mut level_words =
        Shared::<[u32]>::new_slice(comptime!(if floats { 4 } else { units as usize }));
    let mut slots = Shared::<[u32]>::new_slice(config.list.planes as usize);
    let mut totals = Cursor { above: 0, level: 0 };
    let mut tile = 0u32;
    let cols = source.layout.cols;
    while tile < cols {
        let first = tile + UNIT_POS_Y * part_cols;
        let team = Team::of(cols - min(first, cols), part, config.memory.ragged);
        let rest = source.rest_from(first);
        let loaded = LoadedRow::<E, N>::new(&rest, team);
        let own = ReachedBits::new::<E, N>(&loaded, rest.head, floor, floats, source.search);
        above_words[UNIT_POS as usize] = own.above;
        if comptime!(!floats) {
            level_words[UNIT_POS as usize] = own.level;
        }
        sync_cube();
        let mut level = 0u32;
        if comptime!(!floats) {
            level = to_column_order(&level_words, part);
        }
        let reached = ReachedBits { above: to_column_order(&above_words, part), level };
        let counts = reached.counts();
        let sums = team.running_sum(counts);
        if UNIT_POS_X == comptime!(part.lanes - 1) {
            slots[UNIT_POS_Y as usize] = sums;
        }
        // Others may still read.
        sync_cube();
        let mut before = sums - counts;
        let mut all = 0u32;
        #[unroll]
        for plane in 0..comptime!(config.list.planes) {
            let count = slots[plane as usize];
            before += select(plane < UNIT_POS_Y, count, 0u32);
            all += count;
        }
        let mut cursor = totals.after(before);
        let mut rest = reached.above | reached.level;
        while rest != 0 {
            let lowest = rest & (!rest + 1);
            let is_above = reached.above & lowest != 0;
            let slot = cursor.above + min(cursor.level, k);
            if (is_above || cursor.level < k) && slot < capacity {
                let place = (lowest - 1).count_ones();
                let column = tile + UNIT_POS * comptime!(TILE_ITEMS as u32) + place;
                columns[slot as usize] = column - source.head;
            }
            cursor.above += select(is_above, 1u32, 0u32);
            cursor.level += select(is_above, 0u32, 1u32);
            rest ^= lowest;
        }
        totals.skip(all);
        tile += comptime!(units * TILE_ITEMS as u32);
    }
    sync_cube();
    totals.above + min(totals.level, k)
}
