//! Rule 2: of the chosen subranges only what reaches the least of their delegates.

use cubecl::prelude::*;

use crate::topk::{
    element::{Element, ordered_key},
    routines::team::{Shape, Team},
};

/// Neighbouring elements of a unit.
const ITEMS: u32 = 16;

/// How pieces of subranges lie in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FilterBlueprint {
    /// The units that share a piece.
    pub team: Shape,
    pub largest: bool,
}

/// What subranges were chosen, and how they are cut: into pieces of `2^piece` elements.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Chosen {
    pub length: usize,
    pub k: u32,
    /// Of the subranges.
    pub exponent: u32,
    pub piece: u32,
}

/// A piece that a team goes through.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Piece<K: Int> {
    /// Which of all it is; spare teams go through the last one again.
    number: u32,
    /// Its first element, and the slot of that.
    start: usize,
    slot: u32,
    /// What elements have to reach.
    least: K,
}

#[cube]
fn piece<E: Element>(
    chosen: &[u32],
    delegates: &[E::Key],
    cut: &Chosen,
    team: &Team,
    #[comptime] blueprint: FilterBlueprint,
) -> Piece<E::Key> {
    let lanes = comptime!(blueprint.team.lanes);
    let plane = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    let number = plane * (CUBE_DIM_X / lanes) as usize + (UNIT_POS_X / lanes) as usize;
    let pieces = cut.k << (cut.exponent - cut.piece);
    let number = min(number, pieces as usize - 1) as u32;
    let slot = number << cut.piece;
    let subrange = chosen[(slot >> cut.exponent) as usize] as usize;
    let inside = slot & ((1u32 << cut.exponent) - 1);
    let mut least = E::Key::max_value();
    let mut at = team.lane;
    while at < cut.k {
        least = min(least, delegates[at as usize]);
        at += lanes;
    }
    Piece::<E::Key> {
        number,
        start: (subrange << cut.exponent as usize) + inside as usize,
        slot,
        least: team.min::<E::Key>(least),
    }
}

/// Which of the neighbouring elements of this unit reach the least delegate, a bit each, the first the lowest.
#[cube]
fn reaching<E: Element>(
    elements: &[E],
    first: u32,
    piece: &Piece<E::Key>,
    cut: &Chosen,
    #[comptime] largest: bool,
) -> u32 {
    let mut bits = 0u32;
    #[unroll]
    for item in 0..ITEMS {
        let inside = first + comptime!(item);
        let at = piece.start + inside as usize;
        if inside < (1u32 << cut.piece) && at < cut.length {
            let key = ordered_key::<E>(elements[at], largest);
            bits |= select(key >= piece.least, comptime!(1u32 << item), 0u32);
        }
    }
    bits
}

/// How many elements of each piece reach the least delegate.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn count_reaching<E: Element>(
    elements: &[E],
    chosen: &[u32],
    delegates: &[E::Key],
    counts: &mut [u32],
    cut: Chosen,
    #[comptime] blueprint: FilterBlueprint,
) {
    let lanes = comptime!(blueprint.team.lanes);
    let team = Team::new(0u32, blueprint.team);
    let piece = piece::<E>(chosen, delegates, &cut, &team, blueprint);
    let mut count = 0u32;
    let mut first = team.lane * ITEMS;
    while first < (1u32 << cut.piece) {
        count += reaching::<E>(elements, first, &piece, &cut, blueprint.largest).count_ones();
        first += comptime!(lanes * ITEMS);
    }
    let count = team.sum::<u32>(count);
    if team.lane == 0 {
        counts[piece.number as usize] = count;
    }
}

/// The keys of those elements in order, their slots, and how many they are.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn list_reaching<E: Element>(
    elements: &[E],
    chosen: &[u32],
    delegates: &[E::Key],
    counts: &[u32],
    keys: &mut [E::Key],
    slots: &mut [u32],
    total: &mut [u32],
    cut: Chosen,
    #[comptime] blueprint: FilterBlueprint,
) {
    let lanes = comptime!(blueprint.team.lanes);
    let team = Team::new(0u32, blueprint.team);
    let piece = piece::<E>(chosen, delegates, &cut, &team, blueprint);
    let mut before = 0u32;
    let mut other = team.lane;
    while other < piece.number {
        before += counts[other as usize];
        other += lanes;
    }
    let mut before = team.sum::<u32>(before);
    let last = (cut.k << (cut.exponent - cut.piece)) - 1;
    if piece.number == last && team.lane == 0 {
        total[0] = before + counts[last as usize];
    }
    // The same for all units of a team.
    let mut step = 0u32;
    while step < (1u32 << cut.piece) {
        let first = step + team.lane * ITEMS;
        let bits = reaching::<E>(elements, first, &piece, &cut, blueprint.largest);
        let count = bits.count_ones();
        let through = team.running_sum(count);
        let mut place = before + through - count;
        let mut rest = bits;
        while rest != 0 {
            let item = rest.find_first_set() - 1;
            let at = piece.start + (first + item) as usize;
            keys[place as usize] = ordered_key::<E>(elements[at], blueprint.largest);
            slots[place as usize] = piece.slot + first + item;
            place += 1;
            rest &= rest - 1;
        }
        before += team.sum::<u32>(count);
        step += comptime!(lanes * ITEMS);
    }
}
