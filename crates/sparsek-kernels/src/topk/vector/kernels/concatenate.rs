//! Concatenates selected subranges over many cubes.
//!
//! Slot `(rank << α) + i` is element i of delegate `rank`'s subrange. [`gather_subranges`] copies
//! all; other kernels apply Rules 2 and 3.

#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::{ir::ElemType, prelude::*};

use super::{
    delegates::stored_key,
    types::{CutVector, write_stats},
};
use crate::{
    primitives::team::TeamShape,
    topk::{
        key::{Element, ordered_key, ordered_refined, ordered_rough},
        threshold::cube_reduce::CubeReduce,
        vector::tuning::CANDIDATE_LOAD,
    },
};

/// Slots beyond the vector get the least key.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn gather_subranges<E: Element, W: Numeric, N: Size>(
    vector: &CutVector<E, N>,
    selected: &[u32],
    keys: &mut [Vector<W, N>],
    slots: usize,
    #[comptime] short_keys: bool,
    #[comptime] largest: bool,
) {
    let width = N::value().comptime();
    let slot = ABSOLUTE_POS * width;
    if slot >= slots {
        terminate!();
    }
    let length = vector.length;
    let at = element_of_slot(selected, slot, vector.exponent, 1u32);
    let whole = at + width <= length;
    let items = vector.input[min(at / width, length / width - 1)];
    let mut loaded = Vector::<W, N>::new(W::cast_from(0u32));
    #[unroll]
    for item in 0..width {
        let mut key = ordered_rough::<E>(items.extract(item), short_keys, largest);
        if !whole {
            key = E::Key::min_value();
            if at + item < length {
                key = ordered_rough::<E>(vector.elements[at + item], short_keys, largest);
            }
        }
        let key = ordered_refined::<E>(key, short_keys, largest);
        loaded.insert(item, stored_key::<E::Key, W>(key, short_keys, largest));
    }
    keys[ABSOLUTE_POS] = loaded;
}

#[cube]
fn element_of_slot(selected: &[u32], slot: usize, exponent: u32, beta: u32) -> usize {
    let exponent = exponent as usize;
    let subrange = (selected[slot >> exponent] / beta) as usize;
    (subrange << exponent) + (slot & ((1usize << exponent) - 1))
}

/// `places` holds slots, positions in `listed`, or indices if `direct`.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn fetch_selected<E: Element, I: Numeric>(
    elements: &[E],
    selected: &[u32],
    places: &[u32],
    listed: ComptimeOption<&[u32]>,
    values: &mut [E],
    indices: &mut [I],
    selected_count: usize,
    exponent: u32,
    beta: u32,
    #[comptime] direct: bool,
    #[define(I)] _index: ElemType,
) {
    let rank = ABSOLUTE_POS;
    if rank >= selected_count {
        terminate!();
    }
    let place = places[rank] as usize;
    let slot = #[comptime]
    match listed {
        ComptimeOption::Some(listed) => listed[place] as usize,
        ComptimeOption::None => place,
    };
    let at = if comptime!(direct) { slot } else { element_of_slot(selected, slot, exponent, beta) };
    values[rank] = elements[at];
    indices[rank] = I::cast_from(at);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FilterConfig {
    pub shape: TeamShape,
    pub beta: u32,
    /// Rule 2.
    pub filtered: bool,
    pub largest: bool,
}

#[derive(CubeType, CubeLaunch)]
pub(crate) struct FilterCall<E: Element> {
    elements: &'static [E],
    selected: &'static [u32],
    positions: &'static [u32],
    least: &'static [E::Key],
    least_at: usize,
    length: usize,
    exponent: u32,
    k: u32,
    per_cube: usize,
}

#[derive(CubeType)]
struct FilteredSubranges<E: Element> {
    call: FilterCall<E>,
    least: E::Key,
    #[cube(comptime)]
    config: FilterConfig,
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Candidate<K: Int> {
    key: K,
    slot: u32,
    exists: bool,
    opens_subrange: bool,
}

#[cube]
impl<E: Element> FilteredSubranges<E> {
    fn new(call: FilterCall<E>, #[comptime] config: FilterConfig) -> FilteredSubranges<E> {
        let least = call.least[call.least_at];
        FilteredSubranges::<E> { call, least, config }
    }

    fn end(&self) -> usize {
        let slots = (self.call.k as usize) << self.call.exponent as usize;
        min((CUBE_POS + 1) * self.call.per_cube, slots)
    }

    fn selected_delegates(&self, rank: u32, place: u32) -> u32 {
        let mut count = 0u32;
        #[unroll]
        for order in 0..comptime!(self.config.beta) {
            let other = min(rank + order, self.call.k - 1);
            let same = self.call.selected[other as usize] == place + order;
            count += select(same, 1u32, 0u32);
        }
        count
    }

    fn nth_position(&self, place: u32, count: u32, order: u32) -> u32 {
        let beta = comptime!(self.config.beta);
        let mut found = 0u32;
        #[unroll]
        for one in 0..beta {
            let nth_position = self.call.positions[(place + one) as usize];
            let mut before = 0u32;
            #[unroll]
            for other in 0..beta {
                let earlier = self.call.positions[(place + other) as usize] < nth_position;
                before += select(other < count && earlier, 1u32, 0u32);
            }
            found = select(one < count && before == order, nth_position, found);
        }
        found
    }

    fn candidate(&self, slot: u32) -> Candidate<E::Key> {
        let beta = comptime!(self.config.beta);
        let exponent = self.call.exponent;
        let rank = slot >> exponent;
        let place = self.call.selected[rank as usize];
        let mut inside = slot & ((1u32 << exponent) - 1);
        let mut exists = true.runtime();
        let mut whole = true.runtime();
        let opens_subrange = inside == 0;
        if comptime!(beta > 1) {
            let order = place % beta;
            let count = self.selected_delegates(rank - order, place - order);
            whole = count == beta;
            if whole {
                exists = order == 0;
            } else {
                exists = inside == 0;
                inside = self.nth_position(place - order, count, order);
            }
        }
        let at = (((place / beta) as usize) << exponent as usize) + inside as usize;
        let mut key = E::Key::min_value();
        exists = exists && at < self.call.length;
        if exists {
            key = ordered_key::<E>(self.call.elements[at], self.config.largest);
        }
        let opens_subrange = opens_subrange && whole && exists;
        if comptime!(self.config.filtered) {
            exists = exists && key >= self.least;
        }
        Candidate::<E::Key> { key, slot: (rank << exponent) + inside, exists, opens_subrange }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn find_least_delegate<E: Element>(
    delegates: &[E::Key],
    selected: &[u32],
    least: &mut [E::Key],
    k: u32,
    #[comptime] shape: TeamShape,
) {
    let reduce = CubeReduce::new(shape);
    let mut low = E::Key::max_value();
    let mut rank = UNIT_POS;
    while rank < k {
        low = min(low, delegates[selected[rank as usize] as usize]);
        rank += comptime!(shape.lanes);
    }
    let range = reduce.range::<E::Key>(low, low);
    if UNIT_POS == 0 {
        least[0] = range.low;
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn count_candidates<E: Element>(
    call: FilterCall<E>,
    counts: &mut [u32],
    #[comptime] config: FilterConfig,
) {
    let reduce = CubeReduce::new(config.shape);
    let per_cube = call.per_cube;
    let subranges = FilteredSubranges::<E>::new(call, config);
    let end = subranges.end();
    let mut candidates = 0u32;
    let mut opened_subranges = 0u32;
    let mut at = CUBE_POS * per_cube + UNIT_POS as usize;
    while at < end {
        let candidate = subranges.candidate(at as u32);
        candidates += select(candidate.exists, 1u32, 0u32);
        opened_subranges += select(candidate.opens_subrange, 1u32, 0u32);
        at += comptime!(config.shape.lanes as usize);
    }
    let candidates = reduce.prefix_sum(candidates).total;
    let opened_subranges = reduce.prefix_sum(opened_subranges).total;
    if UNIT_POS == 0 {
        counts[2 * CUBE_POS] = candidates;
        counts[2 * CUBE_POS + 1] = opened_subranges;
    }
}

/// Also writes the padded count.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn list_candidates<E: Element>(
    call: FilterCall<E>,
    counts: &[u32],
    keys: &mut [E::Key],
    slots: &mut [u32],
    filled: &mut [u32],
    stats: ComptimeOption<&mut [u32]>,
    cubes: usize,
    #[comptime] config: FilterConfig,
) {
    let units = comptime!(config.shape.lanes as usize);
    let reduce = CubeReduce::new(config.shape);
    let per_cube = call.per_cube;
    let subranges = FilteredSubranges::<E>::new(call, config);
    let mut before = 0u32;
    let mut opened_subranges = 0u32;
    let mut cube = UNIT_POS as usize;
    while cube < cubes {
        before += select(cube < CUBE_POS, counts[2 * cube], 0u32);
        opened_subranges += counts[2 * cube + 1];
        cube += units;
    }
    let mut before = reduce.prefix_sum(before).total;
    let opened_subranges = reduce.prefix_sum(opened_subranges).total;
    let end = subranges.end();
    let mut tile = CUBE_POS * per_cube;
    while tile < end {
        let at = tile + UNIT_POS as usize;
        let mut candidate = subranges.candidate(min(at, end - 1) as u32);
        candidate.exists = candidate.exists && at < end;
        sync_cube();
        let sums = reduce.prefix_sum(select(candidate.exists, 1u32, 0u32));
        if candidate.exists {
            let place = (before + sums.before) as usize;
            keys[place] = candidate.key;
            slots[place] = candidate.slot;
        }
        before += sums.total;
        tile += units;
    }
    if CUBE_POS + 1 == cubes {
        let whole =
            before.div_ceil(comptime!(CANDIDATE_LOAD as u32)) * comptime!(CANDIDATE_LOAD as u32);
        let mut behind = before + UNIT_POS;
        while behind < whole {
            keys[behind as usize] = E::Key::min_value();
            behind += units as u32;
        }
        if UNIT_POS == 0 {
            filled[0] = whole;
        }
        write_stats(stats, opened_subranges, before);
    }
}
