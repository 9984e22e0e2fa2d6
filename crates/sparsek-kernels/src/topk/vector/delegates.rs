//! Delegates: the best element of each subrange of a vector, and the elements of subranges that were chosen by
//! theirs.

use cubecl::{ir::ElemType, prelude::*};

use crate::topk::{
    element::{Element, ordered_key},
    routines::team::{Shape, Team},
};

/// How subranges lie in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DelegateBlueprint {
    /// The units that share a subrange.
    pub team: Shape,
    /// Loads of a unit that are under way at a time.
    pub flight: usize,
    pub largest: bool,
}

/// The greatest key of each subrange of `2^exponent` elements, the last of which may be shorter.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn find_delegates<E: Element, N: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    keys: &mut [E::Key],
    length: usize,
    exponent: u32,
    #[comptime] blueprint: DelegateBlueprint,
) {
    let width = comptime!(blueprint.team.width);
    let lanes = comptime!(blueprint.team.lanes);
    let plane = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    let subrange = plane * (CUBE_DIM_X / lanes) as usize + (UNIT_POS_X / lanes) as usize;
    let start = subrange << exponent as usize;
    let team = Team::new(0u32, blueprint.team);
    let mut best = E::Key::min_value();
    let end = min(start + (1usize << exponent as usize), length);
    if start < length && end - start == 1usize << exponent as usize {
        let flight = comptime!(blueprint.flight);
        let mut load = start / width + team.lane as usize;
        let last = end / width;
        while load < last {
            let mut loads = Sequence::<Vector<E, N>>::new();
            #[unroll]
            for step in 0..flight {
                loads.push(input[load + comptime!(step * lanes as usize)]);
            }
            #[unroll]
            for step in 0..flight {
                let items = loads[step];
                #[unroll]
                for item in 0..width {
                    best = max(
                        best,
                        ordered_key::<E>(items.extract(item), blueprint.largest),
                    );
                }
            }
            load += comptime!(flight * lanes as usize);
        }
    } else {
        let mut at = start + team.lane as usize;
        while at < end {
            best = max(best, ordered_key::<E>(elements[at], blueprint.largest));
            at += lanes as usize;
        }
    }
    let best = team.max::<E::Key>(best);
    if team.lane == 0 && start < length {
        keys[subrange] = best;
    }
}

/// Keys of the elements of chosen subranges, one after the other. Slots behind the end of the vector get the least.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn gather_candidates<E: Element>(
    elements: &[E],
    chosen: &[u32],
    keys: &mut [E::Key],
    length: usize,
    slots: usize,
    exponent: u32,
    #[comptime] largest: bool,
) {
    let slot = ABSOLUTE_POS;
    if slot >= slots {
        terminate!();
    }
    let at = origin(chosen, slot, exponent);
    let mut key = E::Key::min_value();
    if at < length {
        key = ordered_key::<E>(elements[at], largest);
    }
    keys[slot] = key;
}

/// The element that stands in a slot.
#[cube]
fn origin(chosen: &[u32], slot: usize, exponent: u32) -> usize {
    let exponent = exponent as usize;
    let subrange = chosen[slot >> exponent] as usize;
    (subrange << exponent) + (slot & ((1usize << exponent) - 1))
}

/// How the places of members are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Places {
    /// In the vector.
    Direct,
    /// In the chosen subranges, one after the other.
    Slots,
    /// In a list of such slots.
    Listed,
}

/// Values and indices of members.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn fetch_members<E: Element, I: Numeric>(
    elements: &[E],
    chosen: &[u32],
    listing: &[u32],
    members: &[u32],
    values: &mut [E],
    indices: &mut [I],
    k: usize,
    exponent: u32,
    #[comptime] places: Places,
    #[define(I)] _index: ElemType,
) {
    let member = ABSOLUTE_POS;
    if member >= k {
        terminate!();
    }
    let place = members[member] as usize;
    let at = match comptime!(places) {
        Places::Direct => place,
        Places::Slots => origin(chosen, place, exponent),
        Places::Listed => origin(chosen, listing[place] as usize, exponent),
    };
    values[member] = elements[at];
    indices[member] = I::cast_from(at);
}
