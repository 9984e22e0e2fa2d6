//! The last steps of a selection from a vector, in one cube: the k best delegates, of their subranges the elements that
//! reach the least of them (Rule 2), and the members among these.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::{ir::ElemType, prelude::*};

use super::{
    candidates::{Candidates, order},
    chosen::{Chosen, Subranges},
    crew::{Crew, Keys, KeysExpand, narrow, tally},
    radix::BINS,
};
use crate::topk::{
    element::{Element, ordered_key},
    routines::team::Shape,
    search::{Cursor, KeyRange},
};

/// Bytes of a load of delegates.
const LOAD_BYTES: usize = 16;

/// How a cube finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FinishBlueprint {
    /// The units of the cube, and their loads of the vector.
    pub shape: Shape,
    /// Delegates that a unit holds, or of groups; 0 where the k best have been found before.
    pub items: usize,
    /// Groups of `2^group` subranges, and their delegates that a unit holds; 0 where there are none.
    pub group: u32,
    pub grouped: usize,
    /// Delegates of a subrange, β.
    pub delegates: u32,
    /// Loads of a unit under way at a time.
    pub flight: usize,
    /// Most members, and most candidates in shared memory.
    pub members: usize,
    pub room: usize,
    pub largest: bool,
}

impl FinishBlueprint {
    /// Delegates of a load: what a unit holds is whole ones.
    pub fn delegate_width(&self, key: usize) -> usize {
        let least = if self.group > 0 {
            self.items.min(self.grouped)
        } else {
            self.items
        };
        least.clamp(1, LOAD_BYTES / key)
    }

    /// Bytes of shared memory, about.
    pub fn shared(&self, key: usize) -> usize {
        let candidates = self.room * (key + size_of::<u32>());
        let lists = 4 * self.members * size_of::<u32>();
        BINS * size_of::<u32>() + candidates + lists + 4 * self.shape.planes as usize * key
    }
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

/// Delegates to choose from, so many of each unit: all of them, or those of the best groups of `2^group`.
#[derive(CubeType)]
struct Choice {
    groups: Shared<[u32]>,
    count: u32,
    k: u32,
    #[cube(comptime)]
    group: u32,
    #[cube(comptime)]
    items: usize,
}

#[cube]
impl Choice {
    /// Where number `at` stands among all; behind the last one where it does not.
    fn place(&self, at: u32) -> u32 {
        if comptime!(self.group == 0) {
            at
        } else {
            let rank = at >> comptime!(self.group);
            let group = self.groups[min(rank, self.k - 1) as usize];
            let place =
                (group << comptime!(self.group)) + (at & comptime!((1u32 << self.group) - 1));
            select(rank < self.k, place, self.count)
        }
    }

    /// The places of the k best in order, and a range of keys: no less than what they reach, up to the greatest. `known` is such a
    /// range of the groups.
    fn best<K: Int, D: Size>(
        &self,
        delegates: &[Vector<K, D>],
        known: &KeyRange<K>,
        places: &mut Shared<[u32]>,
        bins: &Shared<[Atomic<u32>]>,
        crew: &Crew,
        #[comptime] members: usize,
    ) -> KeyRange<K> {
        let items = comptime!(self.items);
        let first = UNIT_POS * comptime!(items as u32);
        let mut greatest = K::min_value();
        let mut keys = Array::<K>::new(items);
        let width = D::value().comptime();
        #[unroll]
        for load in 0..comptime!(items / width) {
            let at = self.place(first + comptime!((load * width) as u32));
            let mut loaded = Vector::<K, D>::new(K::min_value());
            if at < self.count {
                loaded = delegates[at as usize / width];
            }
            #[unroll]
            for item in 0..width {
                let there = at + comptime!(item as u32) < self.count;
                let key = select(there, loaded.extract(item), K::min_value());
                greatest = max(greatest, key);
                keys[comptime!(load * width + item)] = key;
            }
        }
        let range = if comptime!(self.group == 0) {
            crew.best::<K>(greatest, comptime!(members as u32))
        } else {
            KeyRange::<K> {
                low: known.low,
                high: known.high,
            }
        };
        let held = Held::<K> { keys, items };
        let threshold = narrow::<K, Held<K>>(&held, &range, self.k, bins, crew);
        let quota = self.k - threshold.above;
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
                let key = held.keys[item];
                if key >= threshold.low {
                    let place = cursor.place::<K>(key, &threshold, quota);
                    if place.member {
                        let at = self.place(first + comptime!(item as u32));
                        places[place.position as usize] = at;
                    }
                }
            }
        }
        KeyRange::<K> {
            low: threshold.low,
            high: range.high,
        }
    }
}

/// The places of the k best delegates in order, of those that the units hold or of the best groups of theirs, and their range.
#[cube]
fn choose<K: Int, D: Size>(
    delegates: &[Vector<K, D>],
    groups: ComptimeOption<&[Vector<K, D>]>,
    places: &mut Shared<[u32]>,
    cut: &Subranges,
    bins: &Shared<[Atomic<u32>]>,
    crew: &Crew,
    #[comptime] blueprint: FinishBlueprint,
) -> KeyRange<K> {
    let members = comptime!(blueprint.members);
    let all = KeyRange::<K> {
        low: K::min_value(),
        high: K::max_value(),
    };
    let held = Choice {
        groups: places.clone(),
        count: cut.held,
        k: cut.k,
        group: 0u32,
        items: blueprint.items,
    };
    #[comptime]
    match groups {
        ComptimeOption::Some(groups) => {
            let mut chosen = Shared::<[u32]>::new_slice(members);
            let known = held.best::<K, D>(groups, &all, &mut chosen, bins, crew, members);
            sync_cube();
            let grouped = Choice {
                groups: chosen,
                count: cut.count,
                k: cut.k,
                group: blueprint.group,
                items: blueprint.grouped,
            };
            grouped.best::<K, D>(delegates, &known, places, bins, crew, members)
        }
        ComptimeOption::None => held.best::<K, D>(delegates, &all, places, bins, crew, members),
    }
}

/// [`choose`], where the best delegates and their places have been found before.
#[cube]
fn take<K: Int, D: Size>(
    best: &[Vector<K, D>],
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
        let key = best[rank as usize].extract(0usize);
        low = min(low, key);
        high = max(high, key);
        places[rank as usize] = chosen[rank as usize];
        rank += comptime!(blueprint.shape.lanes);
    }
    crew.range::<K>(low, high)
}

/// Values and indices of the k best elements in index order, by one cube. `delegates` holds the keys of all delegates,
/// in whole loads, `groups` the greatest ones of groups; where `chosen` holds the places of the k best, of these, one to a load. With several delegates for each
/// subrange, `positions` holds where in their subrange they stand (Rule 3).
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn finish<E: Element, I: Numeric, N: Size, D: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    delegates: &[Vector<E::Key, D>],
    groups: ComptimeOption<&[Vector<E::Key, D>]>,
    chosen: ComptimeOption<&[u32]>,
    positions: ComptimeOption<&[u32]>,
    values: &mut [E],
    indices: &mut [I],
    stats: ComptimeOption<&mut [u32]>,
    cut: Subranges,
    #[comptime] blueprint: FinishBlueprint,
    #[define(I)] _index: ElemType,
) {
    finish_cube::<E, I, N, D>(
        input, elements, delegates, groups, chosen, positions, values, indices, stats, cut,
        blueprint,
    );
}

/// [`finish`], by the cube that calls it.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers")]
pub(super) fn finish_cube<E: Element, I: Numeric, N: Size, D: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    delegates: &[Vector<E::Key, D>],
    groups: ComptimeOption<&[Vector<E::Key, D>]>,
    chosen: ComptimeOption<&[u32]>,
    positions: ComptimeOption<&[u32]>,
    values: &mut [E],
    indices: &mut [I],
    stats: ComptimeOption<&mut [u32]>,
    cut: Subranges,
    #[comptime] blueprint: FinishBlueprint,
) {
    let units = comptime!(blueprint.shape.lanes);
    let crew = Crew::new(blueprint.shape);
    let bins = Shared::<[Atomic<u32>]>::new_slice(BINS);
    let mut places = Shared::<[u32]>::new_slice(blueprint.members);
    let mut whole = Shared::<[u32]>::new_slice(comptime!(if blueprint.delegates > 1 {
        blueprint.members
    } else {
        4
    }));
    let filled = Shared::<[Atomic<u32>]>::new_slice(4usize);
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
            take::<E::Key, D>(delegates, chosen, &mut places, &cut, &crew, blueprint)
        }
        ComptimeOption::None => choose::<E::Key, D>(
            delegates,
            groups,
            &mut places,
            &cut,
            &bins,
            &crew,
            blueprint,
        ),
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
                    candidates.put(
                        candidates.claim(1u32),
                        key,
                        ((rank - order) << cut.exponent) + inside,
                    );
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
        order::<E, I, N>(
            &elements,
            &candidates,
            &threshold,
            values,
            indices,
            &bins,
            &crew,
        );
    }
}
