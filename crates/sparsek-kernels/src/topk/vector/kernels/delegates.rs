//! Delegate vector: β greatest keys of each subrange of 2^α elements.
//!
//! ```text
//! each team of units (up to a plane), for its subrange:
//!     local <- β greatest keys of each unit
//!     for rank in 0..β:
//!         delegate[rank] <- greatest local[0], ties by position
//!         its unit drops local[0]
//! ```
//!
//! For β = 1, units compare rough keys: fewer instructions. [`build_delegates_staged`] (Section
//! 5.3) is for `Construction::Staged`.

use cubecl::prelude::*;

use super::types::CutVector;
use crate::{
    primitives::team::{Team, TeamShape},
    topk::{
        key::{Element, ordered_key, ordered_refined, ordered_rough, short_key},
        threshold::cube_reduce::CubeReduce,
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DelegateVectorConfig {
    pub cube: TeamShape,
    pub team: TeamShape,
    pub loads_in_flight: usize,
    /// Short subranges per team.
    pub concurrent_subranges: usize,
    /// For groups.
    pub rounds: u32,
    pub beta: usize,
    pub short_keys: bool,
    /// Words of two bf16.
    pub packed_bf16: bool,
    pub largest: bool,
}

impl DelegateVectorConfig {
    pub fn teams(&self) -> usize {
        (self.cube.lanes / self.team.lanes) as usize
    }

    pub fn subranges_per_cube(&self) -> usize {
        self.teams() * self.concurrent_subranges * self.rounds as usize
    }
}

/// Missing elements have the least key at `u32::MAX`.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn build_delegates<E: Element, W: Numeric, N: Size>(
    vector: &CutVector<E, N>,
    keys: &mut [W],
    positions: ComptimeOption<&mut [u32]>,
    groups: ComptimeOption<&mut [E::Key]>,
    #[comptime] config: DelegateVectorConfig,
) {
    if comptime!(config.concurrent_subranges > 1 || groups.is_some()) {
        let greatest = short_subranges::<E, W, N>(vector, keys, config);
        #[comptime]
        match groups {
            ComptimeOption::Some(groups) => {
                let greatest = CubeReduce::new(config.cube).max::<E::Key>(greatest);
                let greatest = refined::<E>(greatest, config);
                let first = CUBE_POS * comptime!(config.subranges_per_cube());
                if UNIT_POS == 0 && first << (vector.exponent as usize) < vector.length {
                    groups[CUBE_POS] = greatest;
                }
            }
            ComptimeOption::None => {}
        }
    } else {
        one_subrange::<E, W, N>(vector, keys, positions, config);
    }
}

#[cube]
fn one_subrange<E: Element, W: Numeric, N: Size>(
    vector: &CutVector<E, N>,
    keys: &mut [W],
    positions: ComptimeOption<&mut [u32]>,
    #[comptime] config: DelegateVectorConfig,
) {
    let (length, exponent) = (vector.length, vector.exponent);
    let width = comptime!(config.team.width);
    let lanes = comptime!(config.team.lanes);
    let plane = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    let subrange = plane * (CUBE_DIM_X / lanes) as usize + (UNIT_POS_X / lanes) as usize;
    let start = subrange << exponent as usize;
    let team = Team::new(0u32, config.team);
    let beta = comptime!(config.beta);
    let mut best = UnitBest::<E::Key>::new(beta);
    let end = min(start + (1usize << exponent as usize), length);
    if start < length && end - start == 1usize << exponent as usize {
        let loads_in_flight = comptime!(config.loads_in_flight);
        let mut load = start / width + team.lane as usize;
        let last = end / width;
        while load < last {
            let mut loads = Sequence::<Vector<E, N>>::new();
            #[unroll]
            for step in 0..loads_in_flight {
                loads.push(vector.input[load + comptime!(step * lanes as usize)]);
            }
            #[unroll]
            for step in 0..loads_in_flight {
                let items = loads[step];
                let first = (load + comptime!(step * lanes as usize)) * width - start;
                #[unroll]
                for item in 0..width {
                    best.offer(
                        delegate_key::<E>(items.extract(item), config),
                        first as u32 + comptime!(item as u32),
                    );
                }
            }
            load += comptime!(loads_in_flight * lanes as usize);
        }
    } else {
        let mut at = start + team.lane as usize;
        while at < end {
            best.offer(delegate_key::<E>(vector.elements[at], config), (at - start) as u32);
            at += lanes as usize;
        }
    }
    let mut places = Array::<u32>::new(beta);
    #[unroll]
    for rank in 0..beta {
        let key = team.max::<E::Key>(best.keys[0]);
        let writes = team.lane == 0 && start < length;
        if writes {
            keys[subrange * beta + comptime!(rank)] = if comptime!(beta > 1) {
                W::cast_from(key)
            } else {
                output_key::<E, W>(key, config)
            };
        }
        if comptime!(beta > 1) {
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
                for rank in 0..beta {
                    positions[subrange * beta + comptime!(rank)] = places[rank];
                }
            }
        }
        ComptimeOption::None => {}
    }
}

#[cube]
pub(super) fn short_subranges<E: Element, W: Numeric, N: Size>(
    vector: &CutVector<E, N>,
    keys: &mut [W],
    #[comptime] config: DelegateVectorConfig,
) -> E::Key {
    let width = comptime!(config.team.width);
    let lanes = comptime!(config.team.lanes);
    let several = comptime!(config.concurrent_subranges);
    let loads_in_flight = comptime!(config.loads_in_flight);
    let (length, exponent) = (vector.length, vector.exponent as usize);
    let team = Team::new(0u32, config.team);
    let teams = comptime!(config.teams());
    let own = UNIT_POS_Y as usize * (CUBE_DIM_X / lanes) as usize + (UNIT_POS_X / lanes) as usize;
    let mut first = CUBE_POS * comptime!(config.subranges_per_cube()) + own;
    let mut greatest = E::Key::min_value();
    for _ in 0..comptime!(config.rounds) {
        let mut best = Array::<E::Key>::new(several);
        if (first + (several - 1) * teams + 1) << exponent <= length {
            let mut loads = Sequence::<Vector<E, N>>::new();
            #[unroll]
            for subrange in 0..several {
                let start = ((first + subrange * teams) << exponent) / width + team.lane as usize;
                #[unroll]
                for step in 0..loads_in_flight {
                    loads.push(vector.input[start + comptime!(step * lanes as usize)]);
                }
            }
            #[unroll]
            for subrange in 0..several {
                best[subrange] = E::Key::min_value();
                #[unroll]
                for step in 0..loads_in_flight {
                    let items = loads[comptime!(subrange * loads_in_flight + step)];
                    #[unroll]
                    for item in 0..width {
                        let key = rough::<E>(items.extract(item), config);
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
                    let key = rough::<E>(vector.elements[at], config);
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
                keys[number] = output_key::<E, W>(of_team, config);
            }
        }
        first += comptime!(teams * several);
    }
    greatest
}

#[cube]
fn delegate_key<E: Element>(value: E, #[comptime] config: DelegateVectorConfig) -> E::Key {
    if comptime!(config.beta > 1) {
        ordered_key::<E>(value, config.largest)
    } else {
        rough::<E>(value, config)
    }
}

#[cube]
fn rough<E: Element>(value: E, #[comptime] config: DelegateVectorConfig) -> E::Key {
    if comptime!(config.packed_bf16) {
        let word = u32::cast_from(value);
        let first = f32::reinterpret(word << 16);
        let second = f32::reinterpret(word & 0xffff_0000);
        let first = ordered_rough::<f32>(first, false, config.largest);
        let second = ordered_rough::<f32>(second, false, config.largest);
        E::Key::cast_from(max(first, second))
    } else {
        ordered_rough::<E>(value, config.short_keys, config.largest)
    }
}

#[cube]
fn refined<E: Element>(rough: E::Key, #[comptime] config: DelegateVectorConfig) -> E::Key {
    if comptime!(config.packed_bf16) {
        let rough = u32::cast_from(rough);
        E::Key::cast_from(ordered_refined::<f32>(rough, false, config.largest))
    } else {
        ordered_refined::<E>(rough, config.short_keys, config.largest)
    }
}

#[cube]
fn output_key<E: Element, W: Numeric>(
    rough: E::Key,
    #[comptime] config: DelegateVectorConfig,
) -> W {
    stored_key::<E::Key, W>(refined::<E>(rough, config), config.short_keys, config.largest)
}

#[cube]
pub(super) fn stored_key<K: Int, W: Numeric>(
    key: K,
    #[comptime] short: bool,
    #[comptime] largest: bool,
) -> W {
    if short { W::cast_from(short_key::<K>(key, largest)) } else { W::cast_from(key) }
}

#[derive(CubeType)]
struct UnitBest<K: Int> {
    keys: Array<K>,
    positions: Array<u32>,
    #[cube(comptime)]
    count: usize,
}

#[cube]
impl<K: Int> UnitBest<K> {
    fn new(#[comptime] count: usize) -> UnitBest<K> {
        let mut keys = Array::<K>::new(count);
        let mut positions = Array::<u32>::new(count);
        #[unroll]
        for rank in 0..count {
            keys[rank] = K::min_value();
            positions[rank] = u32::MAX.runtime();
        }
        UnitBest::<K> { keys, positions, count }
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StagedConfig {
    pub exponent: u32,
    pub width: usize,
    pub units: u32,
    pub largest: bool,
}

impl StagedConfig {
    /// Spare keys avoid bank conflicts.
    pub fn keys(&self) -> usize {
        self.units as usize * self.stride()
    }

    fn stride(&self) -> usize {
        (1 << self.exponent) + 1
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn build_delegates_staged<E: Element, N: Size>(
    vector: &CutVector<E, N>,
    keys: &mut [E::Key],
    #[comptime] config: StagedConfig,
) {
    let width = comptime!(config.width);
    let units = comptime!(config.units);
    let exponent = comptime!(config.exponent);
    let stride = comptime!(config.stride());
    let mut staged = Shared::<[E::Key]>::new_slice(comptime!(config.keys()));
    let first = CUBE_POS * units as usize;
    let start = first << exponent as usize;
    let loads = comptime!((units << exponent) / width as u32);
    let mut load = UNIT_POS;
    while load < loads {
        let inside = load * comptime!(width as u32);
        let at = start + inside as usize;
        let target = (inside >> exponent) as usize * stride
            + (inside & comptime!((1u32 << exponent) - 1)) as usize;
        if at + width <= vector.length {
            let items = vector.input[at / width];
            #[unroll]
            for item in 0..width {
                staged[target + item] =
                    ordered_rough::<E>(items.extract(item), false, config.largest);
            }
        } else {
            #[unroll]
            for item in 0..width {
                let mut key = E::Key::min_value();
                if at + item < vector.length {
                    key = ordered_rough::<E>(vector.elements[at + item], false, config.largest);
                }
                staged[target + item] = key;
            }
        }
        load += units;
    }
    sync_cube();
    let subrange = first + UNIT_POS as usize;
    if subrange << (exponent as usize) < vector.length {
        let own = UNIT_POS as usize * stride;
        let mut best = staged[own];
        for item in 1..comptime!(1usize << exponent) {
            best = max(best, staged[own + item]);
        }
        keys[subrange] = ordered_refined::<E>(best, false, config.largest);
    }
}
