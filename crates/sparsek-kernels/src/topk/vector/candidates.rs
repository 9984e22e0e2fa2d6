//! The elements of chosen subranges that reach the least of the best delegates, in the shared memory of one cube.

use cubecl::prelude::*;

use super::{
    chosen::Chosen,
    crew::{Crew, Keys, KeysExpand, between, narrow, tally},
};
use crate::topk::{
    element::Element,
    search::{KeyRange, Threshold},
};

/// Elements that reach the least chosen delegate: keys, and slots in the chosen subranges.
#[derive(CubeType)]
pub(super) struct Candidates<K: Int> {
    pub keys: Shared<[K]>,
    pub slots: Shared<[u32]>,
    /// How many there are, which may be more than there is room for; how many members were listed.
    pub filled: Shared<[Atomic<u32>]>,
    #[cube(comptime)]
    pub room: usize,
    #[cube(comptime)]
    pub units: u32,
}

#[cube]
impl<K: Int> Candidates<K> {
    /// Room for some more: one call for many, since calls wait for each other.
    pub fn claim(&self, count: u32) -> u32 {
        self.filled[0].fetch_add(count)
    }

    pub fn put(&self, at: u32, key: K, slot: u32) {
        let (mut keys, mut slots) = (self.keys.clone(), self.slots.clone());
        if at < comptime!(self.room as u32) {
            keys[at as usize] = key;
            slots[at as usize] = slot;
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

/// Slots of the candidates within a range of keys, as keys: the first slot is the greatest.
#[derive(CubeType)]
struct Ties<K: Int> {
    keys: Shared<[K]>,
    slots: Shared<[u32]>,
    count: u32,
    range: KeyRange<K>,
    #[cube(comptime)]
    units: u32,
}

#[cube]
impl<K: Int> Keys<u32> for Ties<K> {
    fn count(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<u32>, shift: u32) {
        let mut at = UNIT_POS;
        while at < self.count {
            let key = self.keys[at as usize];
            if key >= self.range.low && key <= self.range.high {
                tally::<u32>(bins, !self.slots[at as usize], range, shift);
            }
            at += self.units;
        }
    }
}

/// Writes the members among the candidates in index order.
#[cube]
pub(super) fn order<E: Element, I: Numeric, N: Size>(
    elements: &Chosen<E, N>,
    candidates: &Candidates<E::Key>,
    threshold: &Threshold<E::Key>,
    values: &mut [E],
    indices: &mut [I],
    bins: &Shared<[Atomic<u32>]>,
    crew: &Crew,
) {
    let k = elements.cut.k;
    let quota = k - threshold.above;
    let units = candidates.units;
    let mut members = Shared::<[u32]>::new_slice(comptime!(elements.blueprint.members));
    // Of those within the range the first.
    let mut last = u32::MAX.runtime();
    if quota > 0 {
        let ties = Ties::<E::Key> {
            keys: candidates.keys.clone(),
            slots: candidates.slots.clone(),
            count: candidates.filled[0].load(),
            units,
            range: KeyRange::<E::Key> {
                low: threshold.low,
                high: threshold.high,
            },
        };
        let all = between::<u32>(!(k << elements.cut.exponent), u32::MAX.runtime());
        let first = narrow::<u32, Ties<E::Key>>(&ties, &all, quota, bins, crew);
        last = !first.low;
    }
    let count = candidates.filled[0].load();
    let mut at = UNIT_POS;
    while at < count {
        let key = candidates.keys[at as usize];
        let slot = candidates.slots[at as usize];
        let member = key > threshold.high || (key >= threshold.low && slot <= last);
        if member {
            let place = candidates.filled[1].fetch_add(1u32);
            members[place as usize] = slot;
        }
        at += units;
    }
    sync_cube();
    let mut ordered = Shared::<[u32]>::new_slice(comptime!(elements.blueprint.members));
    // A plane at a time, of which each unit looks at some of the others.
    let mut member = UNIT_POS_Y;
    while member < k {
        let slot = members[member as usize];
        let rank = crew.less(&members, k, slot);
        if UNIT_POS_X == 0 {
            ordered[rank as usize] = slot;
        }
        member += comptime!(crew.shape.planes);
    }
    sync_cube();
    let mut rank = UNIT_POS;
    while rank < k {
        let at = elements.origin(ordered[rank as usize]);
        values[rank as usize] = elements.elements[at];
        indices[rank as usize] = I::cast_from(at);
        rank += units;
    }
}
