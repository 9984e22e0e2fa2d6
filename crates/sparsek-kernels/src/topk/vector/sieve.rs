//! Candidates for very many members, found by many cubes: of chosen subranges the elements that reach the least of the best delegates
//! (Rule 2), and of subranges not all of whose delegates are among the best those delegates alone (Rule 3). They stand in index order;
//! how many there are stays on the device.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::{chosen::Subranges, crew::Crew};
use crate::primitives::team::TeamShape as Shape;
use crate::topk::key::{Element, ordered_key};

/// Candidates are filled up with least keys to a multiple of this, whole loads of any width.
pub(crate) const LOAD: usize = 16;

/// How candidates are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SieveBlueprint {
    /// The units of a cube.
    pub shape: Shape,
    /// Delegates of a subrange, β.
    pub delegates: u32,
    /// Whether elements have to reach the least of the best delegates.
    pub filtered: bool,
    pub largest: bool,
}

/// The elements of chosen subranges. Each of the k best delegates has a slot for every element of a subrange.
#[derive(CubeType)]
struct Sieve<'a, E: Element> {
    elements: &'a [E],
    /// The places of the best delegates, in order.
    chosen: &'a [u32],
    /// Where in their subranges delegates stand, if there are several of each.
    positions: &'a [u32],
    least: E::Key,
    cut: Subranges,
    #[cube(comptime)]
    blueprint: SieveBlueprint,
}

/// What a slot holds: an element, at a slot of its own.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Found<K: Int> {
    key: K,
    slot: u32,
    there: bool,
    /// It is the first of a subrange that is looked through.
    opens: bool,
}

#[cube]
impl<'a, E: Element> Sieve<'a, E> {
    fn new(
        elements: &'a [E],
        chosen: &'a [u32],
        positions: &'a [u32],
        least: E::Key,
        cut: Subranges,
        #[comptime] blueprint: SieveBlueprint,
    ) -> Sieve<'a, E> {
        Sieve::<'a, E> {
            elements,
            chosen,
            positions,
            least,
            cut,
            blueprint,
        }
    }

    fn slots(&self) -> usize {
        (self.cut.k as usize) << self.cut.exponent as usize
    }

    /// How many delegates of a subrange are among the best, given the rank and the place of the first: always its best ones.
    fn among(&self, rank: u32, place: u32) -> u32 {
        let mut count = 0u32;
        #[unroll]
        for order in 0..comptime!(self.blueprint.delegates) {
            let other = min(rank + order, self.cut.k - 1);
            // The last one stands for those behind it, and is not where they would be.
            let same = self.chosen[other as usize] == place + order;
            count += select(same, 1u32, 0u32);
        }
        count
    }

    /// Of the first `count` delegates of a subrange, from `place` on, where that one stands before which so many others do.
    fn position(&self, place: u32, count: u32, order: u32) -> u32 {
        let delegates = comptime!(self.blueprint.delegates);
        let mut found = 0u32;
        #[unroll]
        for one in 0..delegates {
            let position = self.positions[(place + one) as usize];
            let mut before = 0u32;
            #[unroll]
            for other in 0..delegates {
                let earlier = self.positions[(place + other) as usize] < position;
                before += select(other < count && earlier, 1u32, 0u32);
            }
            found = select(one < count && before == order, position, found);
        }
        found
    }

    fn look(&self, slot: u32) -> Found<E::Key> {
        let delegates = comptime!(self.blueprint.delegates);
        let exponent = self.cut.exponent;
        let rank = slot >> exponent;
        let place = self.chosen[rank as usize];
        let mut inside = slot & ((1u32 << exponent) - 1);
        let mut there = true.runtime();
        let mut whole = true.runtime();
        let opens = inside == 0;
        if comptime!(delegates > 1) {
            let order = place % delegates;
            let count = self.among(rank - order, place - order);
            whole = count == delegates;
            if whole {
                there = order == 0;
            } else {
                there = inside == 0;
                inside = self.position(place - order, count, order);
            }
        }
        let at = (((place / delegates) as usize) << exponent as usize) + inside as usize;
        let mut key = E::Key::min_value();
        there = there && at < self.cut.length;
        if there {
            key = ordered_key::<E>(self.elements[at], self.blueprint.largest);
        }
        let opens = opens && whole && there;
        if comptime!(self.blueprint.filtered) {
            there = there && key >= self.least;
        }
        Found::<E::Key> {
            key,
            slot: (rank << exponent) + inside,
            there,
            opens,
        }
    }
}

/// The least of the best delegates, by one cube.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn find_least<E: Element>(
    delegates: &[E::Key],
    chosen: &[u32],
    least: &mut [E::Key],
    k: u32,
    #[comptime] shape: Shape,
) {
    let crew = Crew::new(shape);
    let mut low = E::Key::max_value();
    let mut rank = UNIT_POS;
    while rank < k {
        low = min(low, delegates[chosen[rank as usize] as usize]);
        rank += comptime!(shape.lanes);
    }
    let range = crew.range::<E::Key>(low, low);
    if UNIT_POS == 0 {
        least[0] = range.low;
    }
}

/// How many candidates there are in each cube's stretch of slots, and how many subranges are looked through.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "buffers")]
pub(crate) fn count_candidates<E: Element>(
    elements: &[E],
    chosen: &[u32],
    positions: &[u32],
    least: &[E::Key],
    counts: &mut [u32],
    cut: Subranges,
    least_at: usize,
    stretch: usize,
    #[comptime] blueprint: SieveBlueprint,
) {
    let crew = Crew::new(blueprint.shape);
    let least = least[least_at];
    let sieve = Sieve::<E>::new(elements, chosen, positions, least, cut, blueprint);
    let end = min((CUBE_POS + 1) * stretch, sieve.slots());
    let mut candidates = 0u32;
    let mut opened = 0u32;
    let mut at = CUBE_POS * stretch + UNIT_POS as usize;
    while at < end {
        let found = sieve.look(at as u32);
        candidates += select(found.there, 1u32, 0u32);
        opened += select(found.opens, 1u32, 0u32);
        at += comptime!(blueprint.shape.lanes as usize);
    }
    let candidates = crew.sums(candidates).total;
    let opened = crew.sums(opened).total;
    if UNIT_POS == 0 {
        counts[2 * CUBE_POS] = candidates;
        counts[2 * CUBE_POS + 1] = opened;
    }
}

/// The keys of the candidates and their slots, in index order, and how many there are, filled up to whole loads.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "buffers")]
pub(crate) fn list_candidates<E: Element>(
    elements: &[E],
    chosen: &[u32],
    positions: &[u32],
    least: &[E::Key],
    counts: &[u32],
    keys: &mut [E::Key],
    slots: &mut [u32],
    filled: &mut [u32],
    stats: ComptimeOption<&mut [u32]>,
    cut: Subranges,
    least_at: usize,
    stretch: usize,
    cubes: usize,
    #[comptime] blueprint: SieveBlueprint,
) {
    let units = comptime!(blueprint.shape.lanes as usize);
    let crew = Crew::new(blueprint.shape);
    let least = least[least_at];
    let sieve = Sieve::<E>::new(elements, chosen, positions, least, cut, blueprint);
    // What the cubes before this one have.
    let mut before = 0u32;
    let mut opened = 0u32;
    let mut cube = UNIT_POS as usize;
    while cube < cubes {
        before += select(cube < CUBE_POS, counts[2 * cube], 0u32);
        opened += counts[2 * cube + 1];
        cube += units;
    }
    let mut before = crew.sums(before).total;
    let opened = crew.sums(opened).total;
    let end = min((CUBE_POS + 1) * stretch, sieve.slots());
    let mut tile = CUBE_POS * stretch;
    while tile < end {
        let at = tile + UNIT_POS as usize;
        let mut found = sieve.look(min(at, end - 1) as u32);
        found.there = found.there && at < end;
        // The last sums have been read.
        sync_cube();
        let sums = crew.sums(select(found.there, 1u32, 0u32));
        if found.there {
            let place = (before + sums.before) as usize;
            keys[place] = found.key;
            slots[place] = found.slot;
        }
        before += sums.total;
        tile += units;
    }
    if CUBE_POS + 1 == cubes {
        let whole = before.div_ceil(comptime!(LOAD as u32)) * comptime!(LOAD as u32);
        let mut behind = before + UNIT_POS;
        while behind < whole {
            keys[behind as usize] = E::Key::min_value();
            behind += units as u32;
        }
        if UNIT_POS == 0 {
            filled[0] = whole;
        }
        #[comptime]
        match stats {
            ComptimeOption::Some(stats) => {
                if UNIT_POS == 0 {
                    stats[0] = opened;
                    stats[1] = before;
                }
            }
            ComptimeOption::None => {}
        };
    }
}
