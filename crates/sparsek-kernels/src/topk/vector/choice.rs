//! The best delegates, as one cube comes by them.

use cubecl::prelude::*;

use super::{
    candidates::Candidates,
    chosen::Subranges,
    crew::{Crew, Keys, KeysExpand, narrow, tally},
    finish::FinishBlueprint,
    pick::Lists,
};
use crate::topk::threshold::search::{Cursor, KeyRange};

/// What a cube that finishes has in its shared memory, and its units.
#[derive(CubeType)]
pub(super) struct Workplace<K: Int> {
    pub candidates: Candidates<K>,
    pub lists: Lists,
    pub bins: Shared<[Atomic<u32>]>,
    pub crew: Crew,
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
    #[cube(comptime)]
    spacing: u32,
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
        with: &Workplace<K>,
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
            with.crew.best::<K>(greatest, comptime!(members as u32))
        } else {
            KeyRange::<K> {
                low: known.low,
                high: known.high,
            }
        };
        let held = Held::<K> { keys, items };
        let threshold =
            narrow::<K, Held<K>>(&held, &range, self.k, &with.bins, &with.crew, self.spacing);
        let quota = self.k - threshold.above;
        // At most 1024 x 32 delegates, so both counts fit in 16 bits.
        let mut own = Cursor { above: 0, level: 0 };
        #[unroll]
        for item in 0..items {
            own.place::<K>(held.keys[item], &threshold, quota);
        }
        let packed = own.above + (own.level << 16);
        let before = with.crew.sums(packed).before;
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
pub(super) fn choose<K: Int, D: Size>(
    delegates: &[Vector<K, D>],
    groups: ComptimeOption<&[Vector<K, D>]>,
    places: &mut Shared<[u32]>,
    cut: &Subranges,
    with: &Workplace<K>,
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
        spacing: blueprint.spacing,
    };
    #[comptime]
    match groups {
        ComptimeOption::Some(groups) => {
            let mut chosen = Shared::<[u32]>::new_slice(members);
            let known = held.best::<K, D>(groups, &all, &mut chosen, with, members);
            sync_cube();
            let grouped = Choice {
                groups: chosen,
                count: cut.count,
                k: cut.k,
                group: blueprint.group,
                items: blueprint.grouped,
                spacing: blueprint.spacing,
            };
            grouped.best::<K, D>(delegates, &known, places, with, members)
        }
        ComptimeOption::None => held.best::<K, D>(delegates, &all, places, with, members),
    }
}

/// [`choose`], where the best delegates and their places have been found before.
#[cube]
pub(super) fn take<K: Int, D: Size>(
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
