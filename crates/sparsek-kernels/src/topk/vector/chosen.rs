//! The elements of chosen subranges, as one cube goes through them.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::{
    candidates::Candidates,
    crew::{Crew, Keys, KeysExpand, tally},
    finish::FinishBlueprint,
};
use crate::topk::{
    key::{Element, ordered_key, ordered_refined, ordered_rough},
    threshold::search::{Cursor, KeyRange, Threshold},
};

/// What a vector was cut into.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Subranges {
    pub length: usize,
    /// Delegates, and those of groups, or all, that a cube holds.
    pub count: u32,
    pub held: u32,
    pub k: u32,
    /// Subranges have `2^exponent` elements.
    pub exponent: u32,
}

/// The elements of chosen subranges.
#[derive(CubeType)]
pub(super) struct Chosen<'a, E: Element, N: Size> {
    input: &'a [Vector<E, N>],
    pub elements: &'a [E],
    /// Of the k best delegates, in order.
    places: Shared<[u32]>,
    /// The ranks of the last delegates of subranges all of whose delegates are among the best.
    whole: Shared<[u32]>,
    pub cut: Subranges,
    #[cube(comptime)]
    pub blueprint: FinishBlueprint,
}

/// A load of a chosen subrange: its first element and slot, and how many elements are there.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Load {
    at: usize,
    slot: u32,
    items: u32,
}

#[cube]
impl<'a, E: Element, N: Size> Chosen<'a, E, N> {
    pub fn new(
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
    pub fn origin(&self, slot: u32) -> usize {
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
                first = self.places[rank as usize].is_multiple_of(delegates);
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

    /// What load number `load` of whole subranges holds; behind the end of the vector anything.
    fn whole(&self, load: u32) -> Vector<E, N> {
        let width = comptime!(self.blueprint.shape.width);
        if comptime!(self.blueprint.delegates > 1) {
            self.items(&self.load(load, false))
        } else {
            let per_subrange = self.cut.exponent - comptime!(width.ilog2());
            let subrange = self.places[(load >> per_subrange) as usize] as usize;
            let inside = (load & ((1u32 << per_subrange) - 1)) as usize;
            let last = self.cut.length / width - 1;
            self.input[min((subrange << per_subrange as usize) + inside, last)]
        }
    }

    /// What a load holds; behind the end of the vector anything.
    fn items(&self, load: &Load) -> Vector<E, N> {
        let width = comptime!(self.blueprint.shape.width);
        let last = self.cut.length / width - 1;
        self.input[min(load.at / width, last)]
    }

    /// Whether the end of the vector may lie in a load of `loads`, those of whole subranges.
    fn may_end(&self, load: u32, loads: u32) -> bool {
        let width = comptime!(self.blueprint.shape.width);
        if comptime!(self.blueprint.delegates > 1) {
            self.load(min(load, loads - 1), false).at / width >= self.cut.length / width
        } else {
            // Subranges are in order.
            load + self.loads(1u32) >= loads
        }
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
    pub fn collect(&self, least: E::Key, loads: u32, candidates: &Candidates<E::Key>) {
        let units = comptime!(self.blueprint.shape.lanes);
        let width = comptime!(self.blueprint.shape.width);
        let flight = comptime!(self.blueprint.flight);
        let mut at = UNIT_POS;
        let mut room = true.runtime();
        while at < loads && room {
            let mut found = Sequence::<Vector<E, N>>::new();
            #[unroll]
            for step in 0..flight {
                found.push(self.whole(min(at + comptime!(step as u32 * units), loads - 1)));
            }
            #[unroll]
            for step in 0..flight {
                let number = at + comptime!(step as u32 * units);
                let items = found[step];
                let mut greatest = E::Key::min_value();
                #[unroll]
                for item in 0..width {
                    let item = items.extract(item);
                    let key = ordered_rough::<E>(item, false, self.blueprint.largest);
                    greatest = max(greatest, key);
                }
                let greatest = ordered_refined::<E>(greatest, false, self.blueprint.largest);
                // Few loads hold a candidate; what the last elements of the vector hold is not known yet.
                if greatest >= least || self.may_end(number, loads) {
                    let load = self.load(min(number, loads - 1), false);
                    let items = self.rest(&load, items);
                    let count = select(number < loads, load.items, 0u32);
                    let kept = self.keep(items, count, load.slot, least, candidates);
                    room = room && kept;
                }
            }
            at += comptime!(flight as u32 * units);
        }
    }

    /// Notes the elements of a load that are at least `least`; whether there was room.
    fn keep(
        &self,
        items: Vector<E, N>,
        count: u32,
        slot: u32,
        least: E::Key,
        candidates: &Candidates<E::Key>,
    ) -> bool {
        let width = comptime!(self.blueprint.shape.width);
        let mut reaching = 0u32;
        #[unroll]
        for item in 0..width {
            let key = ordered_key::<E>(items.extract(item), self.blueprint.largest);
            let reaches = key >= least && comptime!(item as u32) < count;
            reaching += select(reaches, 1u32, 0u32);
        }
        let mut room = true.runtime();
        if reaching > 0 {
            let mut place = candidates.claim(reaching);
            room = place <= comptime!(self.blueprint.room as u32);
            #[unroll]
            for item in 0..width {
                let key = ordered_key::<E>(items.extract(item), self.blueprint.largest);
                if key >= least && comptime!(item as u32) < count {
                    candidates.put(place, key, slot + comptime!(item as u32));
                    place += 1;
                }
            }
        }
        room
    }

    /// Loads of `ranks` subranges.
    pub fn loads(&self, ranks: u32) -> u32 {
        ranks << (self.cut.exponent - comptime!(self.blueprint.shape.width.ilog2()))
    }

    /// Writes the members, where there were too many candidates for shared memory: the elements of all chosen subranges
    /// in index order.
    pub fn list<I: Numeric>(
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
            // The last sums have been read.
            sync_cube();
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
