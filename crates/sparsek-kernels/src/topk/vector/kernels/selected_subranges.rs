//! Scan of selected subranges; slots as in [`concatenate`](super::concatenate).

#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::types::{CutVector, FinishConfig};
use crate::topk::{
    key::{Element, ordered_key, ordered_refined, ordered_rough},
    threshold::{
        cube_reduce::CubeReduce,
        histogram::{KeySet, KeySetExpand, count_key},
        search::{Cursor, KeyRange, Threshold},
    },
};

#[derive(CubeType)]
pub(super) struct Candidates<K: Int> {
    pub keys: Shared<[K]>,
    pub slots: Shared<[u32]>,
    /// Candidates (may exceed `room`), slots, complete subranges.
    pub filled: Shared<[Atomic<u32>]>,
    #[cube(comptime)]
    pub room: usize,
    #[cube(comptime)]
    pub units: u32,
}

#[cube]
impl<K: Int> Candidates<K> {
    /// Several: atomics serialize.
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
impl<K: Int> KeySet<K> for Candidates<K> {
    fn count_keys(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<K>, shift: u32) {
        let filled = self.filled[0].load();
        let mut at = UNIT_POS;
        while at < filled {
            count_key::<K>(bins, self.keys[at as usize], range, shift);
            at += self.units;
        }
    }
}

#[derive(CubeType)]
pub(super) struct SelectedSubranges<E: Element, N: Size> {
    pub vector: CutVector<E, N>,
    /// Ordered places of delegates.
    pub places: Shared<[u32]>,
    /// Last rank of each complete subrange.
    pub complete_ranks: Shared<[u32]>,
    pub k: u32,
    #[cube(comptime)]
    pub config: FinishConfig,
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Load {
    at: usize,
    slot: u32,
    items: u32,
}

#[cube]
impl<E: Element, N: Size> SelectedSubranges<E, N> {
    pub fn element_of_slot(&self, slot: u32) -> usize {
        let exponent = self.vector.exponent;
        let place = self.places[(slot >> exponent) as usize];
        let subrange = place / comptime!(self.config.beta);
        let inside = slot & ((1u32 << exponent) - 1);
        ((subrange as usize) << exponent as usize) + inside as usize
    }

    /// `all`: of selected subranges, empty but for their first delegate.
    fn load(&self, load: u32, #[comptime] all: bool) -> Load {
        let width = comptime!(self.config.shape.width as u32);
        let beta = comptime!(self.config.beta);
        let per_subrange = self.vector.exponent - comptime!(width.ilog2());
        let mut rank = load >> per_subrange;
        let mut first = true.runtime();
        if comptime!(beta > 1) {
            if comptime!(all) {
                first = self.places[rank as usize].is_multiple_of(beta);
            } else {
                rank = self.complete_ranks[rank as usize] - (beta - 1);
            }
        }
        let inside = (load & ((1u32 << per_subrange) - 1)) * width;
        let slot = (rank << self.vector.exponent) + inside;
        let at = self.element_of_slot(slot);
        let there = at < self.vector.length && first;
        let rest =
            u32::cast_from(min(self.vector.length - min(at, self.vector.length), width as usize));
        Load { at, slot, items: select(there, rest, 0u32) }
    }

    fn complete_items(&self, load: u32) -> Vector<E, N> {
        let width = comptime!(self.config.shape.width);
        if comptime!(self.config.beta > 1) {
            self.items(&self.load(load, false))
        } else {
            let per_subrange = self.vector.exponent - comptime!(width.ilog2());
            let subrange = self.places[(load >> per_subrange) as usize] as usize;
            let inside = (load & ((1u32 << per_subrange) - 1)) as usize;
            let last = self.vector.length / width - 1;
            self.vector.input[min((subrange << per_subrange as usize) + inside, last)]
        }
    }

    /// Arbitrary beyond the vector.
    fn items(&self, load: &Load) -> Vector<E, N> {
        let width = comptime!(self.config.shape.width);
        let last = self.vector.length / width - 1;
        self.vector.input[min(load.at / width, last)]
    }

    fn may_cross_end(&self, load: u32, loads: u32) -> bool {
        let width = comptime!(self.config.shape.width);
        if comptime!(self.config.beta > 1) {
            self.load(min(load, loads - 1), false).at / width >= self.vector.length / width
        } else {
            // Subranges are in order.
            load + self.loads(1u32) >= loads
        }
    }

    fn with_tail(&self, load: &Load, items: Vector<E, N>) -> Vector<E, N> {
        let width = comptime!(self.config.shape.width);
        let mut items = items;
        if comptime!(width > 1) {
            if load.items > 0 && load.items < comptime!(width as u32) {
                #[unroll]
                for item in 0..width {
                    let at = min(load.at + item, self.vector.length - 1);
                    items.insert(item, self.vector.elements[at]);
                }
            }
        }
        items
    }

    /// Elements that reach `least`, up to the room.
    pub fn collect(&self, least: E::Key, loads: u32, candidates: &Candidates<E::Key>) {
        let units = comptime!(self.config.shape.lanes);
        let width = comptime!(self.config.shape.width);
        let loads_in_flight = comptime!(self.config.loads_in_flight);
        let mut at = UNIT_POS;
        let mut room = true.runtime();
        while at < loads && room {
            let mut found = Sequence::<Vector<E, N>>::new();
            #[unroll]
            for step in 0..loads_in_flight {
                found
                    .push(self.complete_items(min(at + comptime!(step as u32 * units), loads - 1)));
            }
            #[unroll]
            for step in 0..loads_in_flight {
                let number = at + comptime!(step as u32 * units);
                let items = found[step];
                let mut greatest = E::Key::min_value();
                #[unroll]
                for item in 0..width {
                    let item = items.extract(item);
                    let key = ordered_rough::<E>(item, false, self.config.largest);
                    greatest = max(greatest, key);
                }
                let greatest = ordered_refined::<E>(greatest, false, self.config.largest);
                if greatest >= least || self.may_cross_end(number, loads) {
                    let load = self.load(min(number, loads - 1), false);
                    let items = self.with_tail(&load, items);
                    let count = select(number < loads, load.items, 0u32);
                    let kept = self.keep_reaching(items, count, load.slot, least, candidates);
                    room = room && kept;
                }
            }
            at += comptime!(loads_in_flight as u32 * units);
        }
    }

    fn keep_reaching(
        &self,
        items: Vector<E, N>,
        count: u32,
        slot: u32,
        least: E::Key,
        candidates: &Candidates<E::Key>,
    ) -> bool {
        let width = comptime!(self.config.shape.width);
        let mut reaching = 0u32;
        #[unroll]
        for item in 0..width {
            let key = ordered_key::<E>(items.extract(item), self.config.largest);
            let reaches = key >= least && comptime!(item as u32) < count;
            reaching += select(reaches, 1u32, 0u32);
        }
        let mut room = true.runtime();
        if reaching > 0 {
            let mut place = candidates.claim(reaching);
            room = place <= comptime!(self.config.room as u32);
            #[unroll]
            for item in 0..width {
                let key = ordered_key::<E>(items.extract(item), self.config.largest);
                if key >= least && comptime!(item as u32) < count {
                    candidates.put(place, key, slot + comptime!(item as u32));
                    place += 1;
                }
            }
        }
        room
    }

    pub fn loads(&self, ranks: u32) -> u32 {
        ranks << (self.vector.exponent - comptime!(self.config.shape.width.ilog2()))
    }

    /// For candidates beyond the room.
    pub fn write_selected<I: Numeric>(
        &self,
        threshold: &Threshold<E::Key>,
        values: &mut [E],
        indices: &mut [I],
        reduce: &CubeReduce,
    ) {
        let units = comptime!(self.config.shape.lanes);
        let width = comptime!(self.config.shape.width);
        let k = self.k;
        let loads = self.loads(k);
        let quota = k - threshold.above;
        let mut totals = Cursor { above: 0, level: 0 };
        let mut tile = 0u32;
        while tile < loads && totals.above + min(totals.level, quota) < k {
            let mut load = self.load(min(tile + UNIT_POS, loads - 1), true);
            if tile + UNIT_POS >= loads {
                load.items = 0u32;
            }
            let items = self.with_tail(&load, self.items(&load));
            let mut own = Cursor { above: 0, level: 0 };
            #[unroll]
            for item in 0..width {
                let key = ordered_key::<E>(items.extract(item), self.config.largest);
                if comptime!(item as u32) < load.items {
                    own.place::<E::Key>(key, threshold, quota);
                }
            }
            sync_cube();
            // Counts ≤ 2^14 fit 16 bits.
            let sums = reduce.prefix_sum(own.packed());
            let mut cursor = totals.after(sums.before);
            #[unroll]
            for item in 0..width {
                let key = ordered_key::<E>(items.extract(item), self.config.largest);
                if comptime!(item as u32) < load.items {
                    let place = cursor.place::<E::Key>(key, threshold, quota);
                    if place.member {
                        values[place.position as usize] = items.extract(item);
                        indices[place.position as usize] = I::cast_from(load.at + comptime!(item));
                    }
                }
            }
            totals.skip(sums.total);
            tile += units;
        }
    }
}

#[cube]
impl<E: Element, N: Size> KeySet<E::Key> for SelectedSubranges<E, N> {
    fn count_keys(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<E::Key>, shift: u32) {
        let loads = self.loads(self.k);
        let mut at = UNIT_POS;
        while at < loads {
            let load = self.load(at, true);
            let items = self.with_tail(&load, self.items(&load));
            #[unroll]
            for item in 0..comptime!(self.config.shape.width) {
                let key = ordered_key::<E>(items.extract(item), self.config.largest);
                if comptime!(item as u32) < load.items {
                    count_key::<E::Key>(bins, key, range, shift);
                }
            }
            at += comptime!(self.config.shape.lanes);
        }
    }
}
