//! Delegates: the best elements of each subrange of a vector.

use cubecl::prelude::*;

use super::crew::Crew;
use crate::primitives::team::{Team, TeamShape as Shape};
use crate::topk::key::{Element, ordered_key, ordered_refined, ordered_rough, short_key};

/// How subranges lie in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DelegateBlueprint {
    /// The units of a cube, and those that share a subrange.
    pub cube: Shape,
    pub team: Shape,
    /// Loads of a unit that are under way at a time.
    pub flight: usize,
    /// Subranges that a team takes at a time, with all of their loads under way.
    pub subranges: usize,
    /// How often a cube does so, where its subranges are a group.
    pub rounds: u32,
    /// Delegates of a subrange.
    pub delegates: usize,
    /// Whether keys are short ones.
    pub short: bool,
    /// Whether elements are two of bf16 each.
    pub pairs: bool,
    pub largest: bool,
}

impl DelegateBlueprint {
    /// Teams of a cube.
    pub fn teams(&self) -> usize {
        (self.cube.lanes / self.team.lanes) as usize
    }

    /// Subranges of a cube.
    pub fn taken(&self) -> usize {
        self.teams() * self.subranges * self.rounds as usize
    }
}

/// The greatest keys of each subrange of `2^exponent` elements, the last of which may be shorter, best first; where there
/// are several, also where in the subrange they stand, of equal ones the first. Where a subrange has fewer elements, the
/// least key of all stands at the place `u32::MAX`. The subranges of a cube are a group, for whose greatest key there may be a place.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn find_delegates<E: Element, W: Numeric, N: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    keys: &mut [W],
    positions: ComptimeOption<&mut [u32]>,
    groups: ComptimeOption<&mut [E::Key]>,
    length: usize,
    exponent: u32,
    #[comptime] blueprint: DelegateBlueprint,
) {
    if comptime!(blueprint.subranges > 1 || groups.is_some()) {
        let greatest = find_short::<E, W, N>(input, elements, keys, length, exponent, blueprint);
        #[comptime]
        match groups {
            ComptimeOption::Some(groups) => {
                let greatest = Crew::new(blueprint.cube).max::<E::Key>(greatest);
                let greatest = refined::<E>(greatest, blueprint);
                let first = CUBE_POS * comptime!(blueprint.taken());
                if UNIT_POS == 0 && first << (exponent as usize) < length {
                    groups[CUBE_POS] = greatest;
                }
            }
            ComptimeOption::None => {}
        }
    } else {
        find_long::<E, W, N>(
            input, elements, keys, positions, length, exponent, blueprint,
        );
    }
}

/// [`find_delegates`] of one subrange at a time.
#[cube]
fn find_long<E: Element, W: Numeric, N: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    keys: &mut [W],
    positions: ComptimeOption<&mut [u32]>,
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
    let delegates = comptime!(blueprint.delegates);
    let mut best = Best::<E::Key>::new(delegates);
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
                let first = (load + comptime!(step * lanes as usize)) * width - start;
                #[unroll]
                for item in 0..width {
                    best.offer(
                        offered::<E>(items.extract(item), blueprint),
                        first as u32 + comptime!(item as u32),
                    );
                }
            }
            load += comptime!(flight * lanes as usize);
        }
    } else {
        let mut at = start + team.lane as usize;
        while at < end {
            best.offer(offered::<E>(elements[at], blueprint), (at - start) as u32);
            at += lanes as usize;
        }
    }
    let mut places = Array::<u32>::new(delegates);
    #[unroll]
    for rank in 0..delegates {
        let key = team.max::<E::Key>(best.keys[0]);
        let writes = team.lane == 0 && start < length;
        if writes {
            keys[subrange * delegates + comptime!(rank)] = if comptime!(delegates > 1) {
                W::cast_from(key)
            } else {
                told::<E, W>(key, blueprint)
            };
        }
        if comptime!(delegates > 1) {
            let own = select(best.keys[0] == key, best.positions[0], u32::MAX);
            let position = team.min::<u32>(own);
            places[rank] = position;
            if own == position {
                best.drop_first();
            }
        }
    }
    #[comptime]
    match positions {
        ComptimeOption::Some(positions) => {
            if team.lane == 0 && start < length {
                #[unroll]
                for rank in 0..delegates {
                    positions[subrange * delegates + comptime!(rank)] = places[rank];
                }
            }
        }
        ComptimeOption::None => {}
    }
}

/// [`find_delegates`] of several short subranges at a time, one delegate each; the greatest rough key that a unit has seen.
#[cube]
pub(super) fn find_short<E: Element, W: Numeric, N: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    keys: &mut [W],
    length: usize,
    exponent: u32,
    #[comptime] blueprint: DelegateBlueprint,
) -> E::Key {
    let width = comptime!(blueprint.team.width);
    let lanes = comptime!(blueprint.team.lanes);
    let several = comptime!(blueprint.subranges);
    let flight = comptime!(blueprint.flight);
    let exponent = exponent as usize;
    let team = Team::new(0u32, blueprint.team);
    // The teams of a cube take neighbouring subranges, then those behind them.
    let teams = comptime!(blueprint.teams());
    let own = UNIT_POS_Y as usize * (CUBE_DIM_X / lanes) as usize + (UNIT_POS_X / lanes) as usize;
    let mut first = CUBE_POS * comptime!(blueprint.taken()) + own;
    let mut greatest = E::Key::min_value();
    for _ in 0..comptime!(blueprint.rounds) {
        let mut best = Array::<E::Key>::new(several);
        if (first + (several - 1) * teams + 1) << exponent <= length {
            let mut loads = Sequence::<Vector<E, N>>::new();
            #[unroll]
            for subrange in 0..several {
                let start = ((first + subrange * teams) << exponent) / width + team.lane as usize;
                #[unroll]
                for step in 0..flight {
                    loads.push(input[start + comptime!(step * lanes as usize)]);
                }
            }
            #[unroll]
            for subrange in 0..several {
                best[subrange] = E::Key::min_value();
                #[unroll]
                for step in 0..flight {
                    let items = loads[comptime!(subrange * flight + step)];
                    #[unroll]
                    for item in 0..width {
                        let key = rough::<E>(items.extract(item), blueprint);
                        best[subrange] = max(best[subrange], key);
                    }
                }
            }
        } else {
            #[unroll]
            for subrange in 0..several {
                let start = (first + subrange * teams) << exponent;
                let end = min(start + (1usize << exponent), length);
                best[subrange] = E::Key::min_value();
                let mut at = start + team.lane as usize;
                while at < end {
                    let key = rough::<E>(elements[at], blueprint);
                    best[subrange] = max(best[subrange], key);
                    at += lanes as usize;
                }
            }
        }
        #[unroll]
        for subrange in 0..several {
            greatest = max(greatest, best[subrange]);
            let of_team = team.max::<E::Key>(best[subrange]);
            let number = first + subrange * teams;
            if team.lane == 0 && number << exponent < length {
                keys[number] = told::<E, W>(of_team, blueprint);
            }
        }
        first += comptime!(teams * several);
    }
    greatest
}

/// What the delegates of a subrange are found by: keys, or rough ones where there is one, so that its place among equals does not count.
#[cube]
fn offered<E: Element>(value: E, #[comptime] blueprint: DelegateBlueprint) -> E::Key {
    if comptime!(blueprint.delegates > 1) {
        ordered_key::<E>(value, blueprint.largest)
    } else {
        rough::<E>(value, blueprint)
    }
}

/// A rough key; the greater one of two elements.
#[cube]
fn rough<E: Element>(value: E, #[comptime] blueprint: DelegateBlueprint) -> E::Key {
    if comptime!(blueprint.pairs) {
        let word = u32::cast_from(value);
        let first = f32::reinterpret(word << 16);
        let second = f32::reinterpret(word & 0xffff_0000);
        let first = ordered_rough::<f32>(first, false, blueprint.largest);
        let second = ordered_rough::<f32>(second, false, blueprint.largest);
        E::Key::cast_from(max(first, second))
    } else {
        ordered_rough::<E>(value, blueprint.short, blueprint.largest)
    }
}

/// The key that follows from a rough one.
#[cube]
fn refined<E: Element>(rough: E::Key, #[comptime] blueprint: DelegateBlueprint) -> E::Key {
    if comptime!(blueprint.pairs) {
        let rough = u32::cast_from(rough);
        E::Key::cast_from(ordered_refined::<f32>(rough, false, blueprint.largest))
    } else {
        ordered_refined::<E>(rough, blueprint.short, blueprint.largest)
    }
}

/// What is written of a rough key.
#[cube]
fn told<E: Element, W: Numeric>(rough: E::Key, #[comptime] blueprint: DelegateBlueprint) -> W {
    let key = refined::<E>(rough, blueprint);
    if comptime!(blueprint.short) {
        W::cast_from(short_key::<E::Key>(key, blueprint.largest))
    } else {
        W::cast_from(key)
    }
}

/// The best keys that a unit has seen, and where they stand.
#[derive(CubeType)]
struct Best<K: Int> {
    keys: Array<K>,
    positions: Array<u32>,
    #[cube(comptime)]
    count: usize,
}

#[cube]
impl<K: Int> Best<K> {
    fn new(#[comptime] count: usize) -> Best<K> {
        let mut keys = Array::<K>::new(count);
        let mut positions = Array::<u32>::new(count);
        #[unroll]
        for rank in 0..count {
            keys[rank] = K::min_value();
            positions[rank] = u32::MAX.runtime();
        }
        Best::<K> {
            keys,
            positions,
            count,
        }
    }

    fn offer(&mut self, key: K, position: u32) {
        if comptime!(self.count == 1) {
            self.keys[0] = max(self.keys[0], key);
        } else {
            let mut key = key;
            let mut position = position;
            #[unroll]
            for rank in 0..self.count {
                let other = self.keys[rank];
                let place = self.positions[rank];
                let better = key > other || (key == other && position < place);
                self.keys[rank] = select(better, key, other);
                self.positions[rank] = select(better, position, place);
                key = select(better, other, key);
                position = select(better, place, position);
            }
        }
    }

    fn drop_first(&mut self) {
        #[unroll]
        for rank in 1..self.count {
            self.keys[comptime!(rank - 1)] = self.keys[rank];
            self.positions[comptime!(rank - 1)] = self.positions[rank];
        }
        self.keys[comptime!(self.count - 1)] = K::min_value();
        self.positions[comptime!(self.count - 1)] = u32::MAX.runtime();
    }
}
