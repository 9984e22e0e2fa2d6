//! The last steps of a selection from a vector, in one cube: the k best delegates, of their subranges the elements that
//! reach the least of them (Rule 2), and the members among these.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::{ir::ElemType, prelude::*};

use super::crew::{Crew, Keys, KeysExpand, narrow, tally};
use super::radix::BINS;
use crate::topk::{
    element::{Element, ordered_key},
    routines::team::Shape,
    search::{Cursor, KeyRange, Threshold},
};

/// Loads of a unit under way at a time.
const FLIGHT: usize = 4;

/// How a cube finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FinishBlueprint {
    /// The units of the cube, and their loads of the vector.
    pub shape: Shape,
    /// Delegates that a unit holds; 0 where the k best have been found before.
    pub items: usize,
    /// Delegates of a subrange, β.
    pub delegates: u32,
    /// Most members, and most candidates in shared memory.
    pub members: usize,
    pub room: usize,
    pub largest: bool,
}

impl FinishBlueprint {
    /// Bytes of shared memory, about.
    pub fn shared(&self, key: usize) -> usize {
        let candidates = self.room * (key + size_of::<u32>());
        let lists = 3 * self.members * size_of::<u32>();
        BINS * size_of::<u32>() + candidates + lists + 4 * self.shape.planes as usize * key
    }
}

/// What a vector was cut into.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Subranges {
    pub length: usize,
    /// Delegates.
    pub count: u32,
    pub k: u32,
    /// Subranges have `2^exponent` elements.
    pub exponent: u32,
}

/// The delegates that a unit holds, neighbours.
#[derive(CubeType)]
struct Held<K: Int> {
    keys: Array<K>,
    #[cube(comptime)]
    items: usize,
}

#[cube]
impl<K: Int> Keys<K> for Held<K> {
    fn count(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<K>, shift: u32) {
        #[unroll]
        for item in 0..self.items {
            tally::<K>(bins, self.keys[item], range, shift);
        }
    }
}

/// Elements that reach the least chosen delegate: keys, and slots in the chosen subranges.
#[derive(CubeType)]
struct Candidates<K: Int> {
    keys: Shared<[K]>,
    slots: Shared<[u32]>,
    /// How many there are, which may be more than there is room for; how many members were listed.
    filled: Shared<[Atomic<u32>]>,
    #[cube(comptime)]
    room: usize,
    #[cube(comptime)]
    units: u32,
}

#[cube]
impl<K: Int> Candidates<K> {
    fn push(&self, key: K, slot: u32) {
        let (mut keys, mut slots) = (self.keys.clone(), self.slots.clone());
        let at = self.filled[0].fetch_add(1u32) as usize;
        if at < self.room {
            keys[at] = key;
            slots[at] = slot;
        }
    }
}

#[cube]
impl<K: Int> Keys<K> for Candidates<K> {
    fn count(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<K>, shift: u32) {
        let filled = self.filled[0].load();
        let mut at = UNIT_POS;
        while at < filled {
            tally::<K>(bins, self.keys[at as usize], range, shift);
            at += self.units;
        }
    }
}

/// The elements of chosen subranges.
#[derive(CubeType)]
struct Chosen<'a, E: Element, N: Size> {
    input: &'a [Vector<E, N>],
    elements: &'a [E],
    /// Of the k best delegates, in order.
    places: Shared<[u32]>,
    /// The ranks of the last delegates of subranges all of whose delegates are among the best.
    whole: Shared<[u32]>,
    cut: Subranges,
    #[cube(comptime)]
    blueprint: FinishBlueprint,
}

/// A load of a chosen subrange: its first element and slot, and how many elements are there.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Load {
    at: usize,
    slot: u32,
    items: u32,
}

#[cube]
impl<'a, E: Element, N: Size> Chosen<'a, E, N> {
    fn new(
        input: &'a [Vector<E, N>],
        elements: &'a [E],
        places: Shared<[u32]>,
        whole: Shared<[u32]>,
        cut: Subranges,
        #[comptime] blueprint: FinishBlueprint,
    ) -> Chosen<'a, E, N> {
        Chosen::<'a, E, N> {
            input,
            elements,
            places,
            whole,
            cut,
            blueprint,
        }
    }

    /// The element in a slot: subranges count from the rank of their first delegate.
    fn origin(&self, slot: u32) -> usize {
        let exponent = self.cut.exponent;
        let place = self.places[(slot >> exponent) as usize];
        let subrange = place / comptime!(self.blueprint.delegates);
        let inside = slot & ((1u32 << exponent) - 1);
        ((subrange as usize) << exponent as usize) + inside as usize
    }

    /// Load number `load` of whole subranges, or, with `all`, of the subranges of all of the best delegates; then
    /// loads of others than their first delegates are empty.
    fn load(&self, load: u32, #[comptime] all: bool) -> Load {
        let width = comptime!(self.blueprint.shape.width as u32);
        let delegates = comptime!(self.blueprint.delegates);
        let per_subrange = self.cut.exponent - comptime!(width.ilog2());
        let mut rank = load >> per_subrange;
        let mut first = true.runtime();
        if comptime!(delegates > 1) {
            if comptime!(all) {
                first = self.places[rank as usize] % delegates == 0;
            } else {
                rank = self.whole[rank as usize] - (delegates - 1);
            }
        }
        let inside = (load & ((1u32 << per_subrange) - 1)) * width;
        let slot = (rank << self.cut.exponent) + inside;
        let at = self.origin(slot);
        let there = at < self.cut.length && first;
        let rest = u32::cast_from(min(
            self.cut.length - min(at, self.cut.length),
            width as usize,
        ));
        Load {
            at,
            slot,
            items: select(there, rest, 0u32),
        }
    }

    /// What a load holds; behind the end of the vector anything.
    fn items(&self, load: &Load) -> Vector<E, N> {
        let width = comptime!(self.blueprint.shape.width);
        let last = self.cut.length / width - 1;
        self.input[min(load.at / width, last)]
    }

    /// The last elements, where they are no whole load.
    fn rest(&self, load: &Load, items: Vector<E, N>) -> Vector<E, N> {
        let width = comptime!(self.blueprint.shape.width);
        let mut items = items;
        if comptime!(width > 1) {
            if load.items > 0 && load.items < comptime!(width as u32) {
                #[unroll]
                for item in 0..width {
                    let at = min(load.at + item, self.cut.length - 1);
                    items.insert(item, self.elements[at]);
                }
            }
        }
        items
    }

    /// The elements of whole subranges that are at least `least`, as far as there is room.
    fn collect(&self, least: E::Key, loads: u32, candidates: &Candidates<E::Key>) {
        let units = comptime!(self.blueprint.shape.lanes);
        let width = comptime!(self.blueprint.shape.width);
        let mut at = UNIT_POS;
        let mut room = true.runtime();
        while at < loads && room {
            let mut found = Sequence::<Vector<E, N>>::new();
            #[unroll]
            for step in 0..FLIGHT {
                let load = self.load(min(at + comptime!(step as u32 * units), loads - 1), false);
                found.push(self.items(&load));
            }
            #[unroll]
            for step in 0..FLIGHT {
                let number = at + comptime!(step as u32 * units);
                let load = self.load(min(number, loads - 1), false);
                let items = self.rest(&load, found[step]);
                let count = select(number < loads, load.items, 0u32);
                #[unroll]
                for item in 0..width {
                    let key = ordered_key::<E>(items.extract(item), self.blueprint.largest);
                    if key >= least && comptime!(item as u32) < count {
                        candidates.push(key, load.slot + comptime!(item as u32));
                    }
                }
            }
            at += comptime!(FLIGHT as u32 * units);
            room = candidates.filled[0].load() <= comptime!(self.blueprint.room as u32);
        }
    }

    /// Loads of `ranks` subranges.
    fn loads(&self, ranks: u32) -> u32 {
        ranks << (self.cut.exponent - comptime!(self.blueprint.shape.width.ilog2()))
    }

    /// Writes the members, where there were too many candidates for shared memory: the elements of all chosen subranges
    /// in index order.
    fn list<I: Numeric>(
        &self,
        threshold: &Threshold<E::Key>,
        values: &mut [E],
        indices: &mut [I],
        crew: &Crew,
    ) {
        let units = comptime!(self.blueprint.shape.lanes);
        let width = comptime!(self.blueprint.shape.width);
        let k = self.cut.k;
        let loads = self.loads(k);
        let quota = k - threshold.above;
        let mut above = 0u32;
        let mut level = 0u32;
        let mut tile = 0u32;
        while tile < loads && above + min(level, quota) < k {
            let mut load = self.load(min(tile + UNIT_POS, loads - 1), true);
            if tile + UNIT_POS >= loads {
                load.items = 0u32;
            }
            let items = self.rest(&load, self.items(&load));
            let mut own = Cursor { above: 0, level: 0 };
            #[unroll]
            for item in 0..width {
                let key = ordered_key::<E>(items.extract(item), self.blueprint.largest);
                if comptime!(item as u32) < load.items {
                    own.place::<E::Key>(key, threshold, quota);
                }
            }
            // A tile holds at most 1024 x 16 elements, so both counts fit in 16 bits.
            let sums = crew.sums(own.above + (own.level << 16));
            let mut cursor = Cursor {
                above: above + (sums.before & 0xffff),
                level: level + (sums.before >> 16),
            };
            #[unroll]
            for item in 0..width {
                let key = ordered_key::<E>(items.extract(item), self.blueprint.largest);
                if comptime!(item as u32) < load.items {
                    let place = cursor.place::<E::Key>(key, threshold, quota);
                    if place.member {
                        values[place.position as usize] = items.extract(item);
                        indices[place.position as usize] = I::cast_from(load.at + comptime!(item));
                    }
                }
            }
            above += sums.total & 0xffff;
            level += sums.total >> 16;
            tile += units;
        }
    }
}

#[cube]
impl<'a, E: Element, N: Size> Keys<E::Key> for Chosen<'a, E, N> {
    fn count(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<E::Key>, shift: u32) {
        let loads = self.loads(self.cut.k);
        let mut at = UNIT_POS;
        while at < loads {
            let load = self.load(at, true);
            let items = self.rest(&load, self.items(&load));
            #[unroll]
            for item in 0..comptime!(self.blueprint.shape.width) {
                let key = ordered_key::<E>(items.extract(item), self.blueprint.largest);
                if comptime!(item as u32) < load.items {
                    tally::<E::Key>(bins, key, range, shift);
                }
            }
            at += comptime!(self.blueprint.shape.lanes);
        }
    }
}

/// The places of the k best delegates in order, and a range of keys: no less than what they reach, up to the greatest.
#[cube]
fn choose<K: Int>(
    delegates: &[K],
    places: &mut Shared<[u32]>,
    cut: &Subranges,
    bins: &Shared<[Atomic<u32>]>,
    crew: &Crew,
    #[comptime] blueprint: FinishBlueprint,
) -> KeyRange<K> {
    let items = comptime!(blueprint.items);
    let first = UNIT_POS * comptime!(items as u32);
    let mut keys = Array::<K>::new(items);
    let mut low = K::max_value();
    let mut high = K::min_value();
    #[unroll]
    for item in 0..items {
        let at = first + comptime!(item as u32);
        let mut key = K::min_value();
        if at < cut.count {
            key = delegates[at as usize];
            low = min(low, key);
            high = max(high, key);
        }
        keys[item] = key;
    }
    let range = crew.range::<K>(low, high);
    let held = Held::<K> { keys, items };
    let threshold = narrow::<K, Held<K>>(&held, &range, cut.k, bins, crew);
    let quota = cut.k - threshold.above;
    // At most 1024 x 32 delegates, so both counts fit in 16 bits.
    let mut own = Cursor { above: 0, level: 0 };
    #[unroll]
    for item in 0..items {
        own.place::<K>(held.keys[item], &threshold, quota);
    }
    let packed = own.above + (own.level << 16);
    let before = crew.sums(packed).before;
    if packed > 0 {
        let mut cursor = Cursor {
            above: before & 0xffff,
            level: before >> 16,
        };
        #[unroll]
        for item in 0..items {
            let place = cursor.place::<K>(held.keys[item], &threshold, quota);
            if place.member {
                places[place.position as usize] = first + comptime!(item as u32);
            }
        }
    }
    KeyRange::<K> {
        low: threshold.low,
        high: range.high,
    }
}

/// [`choose`], where the best delegates and their places have been found before.
#[cube]
fn take<K: Int>(
    best: &[K],
    chosen: &[u32],
    places: &mut Shared<[u32]>,
    cut: &Subranges,
    crew: &Crew,
    #[comptime] blueprint: FinishBlueprint,
) -> KeyRange<K> {
    let mut low = K::max_value();
    let mut high = K::min_value();
    let mut rank = UNIT_POS;
    while rank < cut.k {
        let key = best[rank as usize];
        low = min(low, key);
        high = max(high, key);
        places[rank as usize] = chosen[rank as usize];
        rank += comptime!(blueprint.shape.lanes);
    }
    crew.range::<K>(low, high)
}

/// Values and indices of the k best elements in index order, by one cube. `delegates` holds the keys of all delegates;
/// where `chosen` holds the places of the k best, of these. With several delegates for each subrange, `positions`
/// holds where in their subrange they stand (Rule 3).
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn finish<E: Element, I: Numeric, N: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    delegates: &[E::Key],
    chosen: ComptimeOption<&[u32]>,
    positions: ComptimeOption<&[u32]>,
    values: &mut [E],
    indices: &mut [I],
    stats: ComptimeOption<&mut [u32]>,
    cut: Subranges,
    #[comptime] blueprint: FinishBlueprint,
    #[define(I)] _index: ElemType,
) {
    let units = comptime!(blueprint.shape.lanes);
    let crew = Crew::new(blueprint.shape);
    let bins = Shared::<[Atomic<u32>]>::new_slice(BINS);
    let mut places = Shared::<[u32]>::new_slice(blueprint.members);
    let mut whole = Shared::<[u32]>::new_slice(comptime!(if blueprint.delegates > 1 {
        blueprint.members
    } else {
        1
    }));
    let filled = Shared::<[Atomic<u32>]>::new_slice(3usize);
    let candidates = Candidates::<E::Key> {
        keys: Shared::<[E::Key]>::new_slice(blueprint.room),
        slots: Shared::<[u32]>::new_slice(blueprint.room),
        filled: filled.clone(),
        room: blueprint.room,
        units,
    };
    if UNIT_POS == 0 {
        filled[0].store(0u32);
        filled[1].store(0u32);
        filled[2].store(0u32);
    }
    let reached = #[comptime]
    match chosen {
        ComptimeOption::Some(chosen) => {
            take::<E::Key>(delegates, chosen, &mut places, &cut, &crew, blueprint)
        }
        ComptimeOption::None => {
            choose::<E::Key>(delegates, &mut places, &cut, &bins, &crew, blueprint)
        }
    };
    sync_cube();
    let mut ranks = cut.k;
    #[comptime]
    match positions {
        ComptimeOption::Some(positions) => {
            let per_subrange = comptime!(blueprint.delegates);
            let mut rank = UNIT_POS;
            while rank < cut.k {
                let place = places[rank as usize];
                let order = place % per_subrange;
                // Where the last delegate of the subrange would stand.
                let last = rank + (per_subrange - 1 - order);
                let all = last < cut.k
                    && places[min(last, cut.k - 1) as usize] == place + (per_subrange - 1 - order);
                if all {
                    if last == rank {
                        let at = filled[2].fetch_add(1u32);
                        whole[at as usize] = rank;
                    }
                } else {
                    let inside = positions[place as usize];
                    let at = ((place / per_subrange) as usize) << cut.exponent as usize;
                    let key = ordered_key::<E>(elements[at + inside as usize], blueprint.largest);
                    candidates.push(key, ((rank - order) << cut.exponent) + inside);
                }
                rank += units;
            }
            sync_cube();
            ranks = filled[2].load();
        }
        ComptimeOption::None => {}
    };
    let elements = Chosen::<E, N>::new(
        input,
        elements,
        places.clone(),
        whole.clone(),
        cut,
        blueprint,
    );
    elements.collect(reached.low, elements.loads(ranks), &candidates);
    sync_cube();
    #[comptime]
    match stats {
        ComptimeOption::Some(stats) => {
            if UNIT_POS == 0 {
                stats[0] = ranks;
                stats[1] = filled[0].load();
            }
        }
        ComptimeOption::None => {}
    };
    if filled[0].load() > comptime!(blueprint.room as u32) {
        let threshold = narrow::<E::Key, Chosen<E, N>>(&elements, &reached, cut.k, &bins, &crew);
        elements.list::<I>(&threshold, values, indices, &crew);
    } else {
        let threshold =
            narrow::<E::Key, Candidates<E::Key>>(&candidates, &reached, cut.k, &bins, &crew);
        order::<E, I, N>(&elements, &candidates, &threshold, values, indices);
    }
}

/// Writes the members among the candidates in index order.
#[cube]
fn order<E: Element, I: Numeric, N: Size>(
    elements: &Chosen<E, N>,
    candidates: &Candidates<E::Key>,
    threshold: &Threshold<E::Key>,
    values: &mut [E],
    indices: &mut [I],
) {
    let k = elements.cut.k;
    let quota = k - threshold.above;
    let units = candidates.units;
    let mut members = Shared::<[u32]>::new_slice(comptime!(elements.blueprint.members));
    let count = candidates.filled[0].load();
    let mut at = UNIT_POS;
    while at < count {
        let key = candidates.keys[at as usize];
        let slot = candidates.slots[at as usize];
        let mut member = key > threshold.high;
        if key >= threshold.low && !member {
            // Equal ones before this one.
            let mut before = 0u32;
            for other in 0..count {
                let key = candidates.keys[other as usize];
                let level = key >= threshold.low && key <= threshold.high;
                let earlier = candidates.slots[other as usize] < slot;
                before += select(level && earlier, 1u32, 0u32);
            }
            member = before < quota;
        }
        if member {
            let place = candidates.filled[1].fetch_add(1u32);
            members[place as usize] = slot;
        }
        at += units;
    }
    sync_cube();
    let mut member = UNIT_POS;
    while member < k {
        let slot = members[member as usize];
        let mut rank = 0u32;
        for other in 0..k {
            rank += select(members[other as usize] < slot, 1u32, 0u32);
        }
        let at = elements.origin(slot);
        values[rank as usize] = elements.elements[at];
        indices[rank as usize] = I::cast_from(at);
        member += units;
    }
}
