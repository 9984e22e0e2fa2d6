//! Second top-k of one cube. Few candidates compare in pairs; else histograms select keys, then
//! tied slots.

use cubecl::prelude::*;

use super::selected_subranges::{Candidates, SelectedSubranges};
use crate::topk::{
    key::Element,
    threshold::{
        cube_reduce::CubeReduce,
        histogram::{KeySet, KeySetExpand, count_key, histogram_threshold, key_range},
        search::KeyRange,
    },
};

#[derive(CubeType)]
pub(super) struct Workspace<K: Int> {
    pub candidates: Candidates<K>,
    pub selected: SelectedSlots,
    pub bins: Shared<[Atomic<u32>]>,
    pub reduce: CubeReduce,
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct AllPairs {
    item: u32,
    step: u32,
    from: u32,
    to: u32,
}

#[cube]
impl AllPairs {
    fn new(count: u32, reduce: &CubeReduce) -> AllPairs {
        let plane = comptime!(reduce.shape.plane_lanes());
        let units = comptime!(reduce.shape.lanes);
        let step = min(count.div_ceil(plane) * plane, units);
        let parts = units / step;
        let part = UNIT_POS / step;
        let per_part = count.div_ceil(parts);
        let from = min(part * per_part, count);
        let item = UNIT_POS % step;
        AllPairs {
            item: select(part < parts, item, count),
            step,
            from,
            to: min(from + per_part, count),
        }
    }
}

#[derive(CubeType)]
pub(super) struct SelectedSlots {
    pub found: Shared<[u32]>,
    pub ordered: Shared<[u32]>,
}

#[cube]
impl SelectedSlots {
    pub fn new(#[comptime] max_k: usize) -> SelectedSlots {
        SelectedSlots {
            found: Shared::<[u32]>::new_slice(max_k),
            ordered: Shared::<[u32]>::new_slice(max_k),
        }
    }

    /// `counts` must be zero.
    pub fn sort(&self, k: u32, counts: &Shared<[Atomic<u32>]>, reduce: &CubeReduce) {
        let mut ordered = self.ordered.clone();
        let pairs = AllPairs::new(k, reduce);
        let mut item = pairs.item;
        while item < k {
            let own = self.found[item as usize];
            let mut less = 0u32;
            for other in pairs.from..pairs.to {
                less += select(self.found[other as usize] < own, 1u32, 0u32);
            }
            counts[item as usize].fetch_add(less);
            item += pairs.step;
        }
        sync_cube();
        let mut rank = UNIT_POS;
        while rank < k {
            let place = counts[rank as usize].load();
            ordered[place as usize] = self.found[rank as usize];
            rank += comptime!(reduce.shape.lanes);
        }
        sync_cube();
    }
}

/// `counts` must be zero.
#[cube]
pub(super) fn select_by_rank<K: Int>(
    candidates: &Candidates<K>,
    count: u32,
    k: u32,
    selected: &SelectedSlots,
    counts: &Shared<[Atomic<u32>]>,
    reduce: &CubeReduce,
) {
    let pairs = AllPairs::new(count, reduce);
    let mut item = pairs.item;
    while item < count {
        let key = candidates.keys[item as usize];
        let slot = candidates.slots[item as usize];
        let mut ahead = 0u32;
        for other in pairs.from..pairs.to {
            let rival = candidates.keys[other as usize];
            let before = rival > key || (rival == key && candidates.slots[other as usize] < slot);
            ahead += select(before, 1u32, 0u32);
        }
        counts[item as usize].fetch_add(ahead);
        item += pairs.step;
    }
    sync_cube();
    let mut found = selected.found.clone();
    let mut candidate = UNIT_POS;
    while candidate < count {
        let place = counts[candidate as usize].load();
        counts[candidate as usize].store(0u32);
        if place < k {
            found[place as usize] = candidates.slots[candidate as usize];
        }
        candidate += comptime!(reduce.shape.lanes);
    }
    sync_cube();
    selected.sort(k, counts, reduce);
}

/// Inverted slots: the first is greatest.
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
impl<K: Int> KeySet<u32> for Ties<K> {
    fn count_keys(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<u32>, shift: u32) {
        let mut at = UNIT_POS;
        while at < self.count {
            let key = self.keys[at as usize];
            if key >= self.range.low && key <= self.range.high {
                count_key::<u32>(bins, !self.slots[at as usize], range, shift);
            }
            at += self.units;
        }
    }
}

/// No key exceeds `range`.
#[cube]
pub(super) fn select_by_histogram<E: Element, I: Numeric, N: Size>(
    elements: &SelectedSubranges<E, N>,
    range: &KeyRange<E::Key>,
    values: &mut [E],
    indices: &mut [I],
    workspace: &Workspace<E::Key>,
) {
    let candidates = &workspace.candidates;
    let k = elements.k;
    let threshold = histogram_threshold::<E::Key, Candidates<E::Key>>(
        candidates,
        range,
        k,
        &workspace.bins,
        &workspace.reduce,
        comptime!(elements.config.spacing),
    );
    let quota = k - threshold.above;
    let units = candidates.units;
    let mut slots = workspace.selected.found.clone();
    let mut last = u32::MAX.runtime();
    if quota > 0 {
        let ties = Ties::<E::Key> {
            keys: candidates.keys.clone(),
            slots: candidates.slots.clone(),
            count: candidates.filled[0].load(),
            units,
            range: KeyRange::<E::Key> { low: threshold.low, high: threshold.high },
        };
        let all = key_range::<u32>(!(k << elements.vector.exponent), u32::MAX.runtime());
        let first = histogram_threshold::<u32, Ties<E::Key>>(
            &ties,
            &all,
            quota,
            &workspace.bins,
            &workspace.reduce,
            0u32,
        );
        last = !first.low;
    }
    let count = candidates.filled[0].load();
    let mut at = UNIT_POS;
    while at < count {
        let key = candidates.keys[at as usize];
        let slot = candidates.slots[at as usize];
        let is_selected = key > threshold.high || (key >= threshold.low && slot <= last);
        if is_selected {
            let place = candidates.filled[1].fetch_add(1u32);
            slots[place as usize] = slot;
        }
        at += units;
    }
    sync_cube();
    workspace.selected.sort(k, &workspace.bins, &workspace.reduce);
    write_candidates::<E, I, N>(elements, &workspace.selected.ordered, values, indices);
}

#[cube]
pub(super) fn write_candidates<E: Element, I: Numeric, N: Size>(
    elements: &SelectedSubranges<E, N>,
    ordered: &Shared<[u32]>,
    values: &mut [E],
    indices: &mut [I],
) {
    let mut rank = UNIT_POS;
    while rank < elements.k {
        let at = elements.element_of_slot(ordered[rank as usize]);
        values[rank as usize] = elements.vector.elements[at];
        indices[rank as usize] = I::cast_from(at);
        rank += comptime!(elements.config.shape.lanes);
    }
}
