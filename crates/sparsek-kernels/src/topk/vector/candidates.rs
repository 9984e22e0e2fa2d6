//! The elements of chosen subranges that reach the least of the best delegates, in the shared memory of one cube.

use cubecl::prelude::*;

use super::{
    choice::Workplace,
    chosen::Chosen,
    crew::{Keys, KeysExpand, between, narrow, tally},
};
use crate::topk::{key::Element, threshold::search::KeyRange};

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

/// Writes the members among the candidates, of which none is above a range of keys, in index order.
#[cube]
pub(super) fn order<E: Element, I: Numeric, N: Size>(
    elements: &Chosen<E, N>,
    reached: &KeyRange<E::Key>,
    values: &mut [E],
    indices: &mut [I],
    with: &Workplace<E::Key>,
) {
    let candidates = &with.candidates;
    let k = elements.cut.k;
    let threshold = narrow::<E::Key, Candidates<E::Key>>(
        candidates,
        reached,
        k,
        &with.bins,
        &with.crew,
        comptime!(elements.blueprint.spacing),
    );
    let quota = k - threshold.above;
    let units = candidates.units;
    let mut members = with.lists.found.clone();
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
        let first = narrow::<u32, Ties<E::Key>>(&ties, &all, quota, &with.bins, &with.crew, 0u32);
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
    with.lists.arrange(k, &with.bins, &with.crew);
    write::<E, I, N>(elements, &with.lists.ordered, values, indices);
}

/// Writes the members, given by their slots in order.
#[cube]
pub(super) fn write<E: Element, I: Numeric, N: Size>(
    elements: &Chosen<E, N>,
    ordered: &Shared<[u32]>,
    values: &mut [E],
    indices: &mut [I],
) {
    let mut rank = UNIT_POS;
    while rank < elements.cut.k {
        let at = elements.origin(ordered[rank as usize]);
        values[rank as usize] = elements.elements[at];
        indices[rank as usize] = I::cast_from(at);
        rank += comptime!(elements.blueprint.shape.lanes);
    }
}
