//! Bitonic selection, for small k.
//!
//! ```text
//! each cube: sort runs of a tile in shared memory, alternately reversed
//!            until one is left:
//!                each pair of runs <- better elements at equal positions; merge
//! repeat until one tile is left
//! ```
//!
//! Better elements of two opposite runs are bitonic and hold the best of both.

use cubecl::prelude::*;

use crate::topk::{
    key::{Element, ordered_key},
    vector::tuning::BITONIC_TILE,
};

pub(crate) const MAX_RUN: usize = BITONIC_TILE / 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BitonicConfig {
    /// Power of two ≥ k.
    pub run: usize,
    /// Power of two.
    pub units: u32,
    pub largest: bool,
    pub last: bool,
}

#[derive(CubeType)]
struct Tile<K: Int> {
    keys: Shared<[K]>,
    places: Shared<[u32]>,
    #[cube(comptime)]
    units: u32,
}

#[cube]
impl<K: Int> Tile<K> {
    fn compare(&self, first: u32, second: u32, best_first: bool, #[comptime] by_place: bool) {
        let (mut keys, mut places) = (self.keys.clone(), self.places.clone());
        let (first, second) = (first as usize, second as usize);
        let key = keys[first];
        let other = keys[second];
        let place = places[first];
        let next = places[second];
        let earlier = next < place;
        let better =
            if comptime!(by_place) { earlier } else { other > key || (other == key && earlier) };
        if select(best_first, better, !better) {
            keys[first] = other;
            keys[second] = key;
            places[first] = next;
            places[second] = place;
        }
    }

    /// Every other run in reverse.
    fn merge(&self, half: u32, run: u32, count: u32, #[comptime] by_place: bool) {
        let mut stride = half;
        while stride > 0 {
            sync_cube();
            let mut pair = UNIT_POS;
            while pair < count / 2 {
                let first = 2 * pair - (pair & (stride - 1));
                self.compare(first, first + stride, first & run == 0, by_place);
                pair += self.units;
            }
            stride /= 2;
        }
        sync_cube();
    }

    fn sort(&self, #[comptime] run: u32, count: u32, #[comptime] by_place: bool) {
        let mut size = 2u32;
        while size <= run {
            self.merge(size / 2, size, count, by_place);
            size *= 2;
        }
    }
}

/// Pads runs with least keys at `u32::MAX`.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn keep_best_runs<E: Element>(
    elements: &[E],
    places: ComptimeOption<&[u32]>,
    best: &mut [E::Key],
    kept: &mut [u32],
    length: usize,
    k: u32,
    #[comptime] config: BitonicConfig,
) {
    let units = comptime!(config.units);
    let run = comptime!(config.run as u32);
    let size = comptime!(BITONIC_TILE as u32);
    let start = CUBE_POS * BITONIC_TILE;
    if CUBE_POS >= length.div_ceil(BITONIC_TILE) {
        terminate!();
    }
    let mut keys = Shared::<[E::Key]>::new_slice(BITONIC_TILE);
    let mut own = Shared::<[u32]>::new_slice(BITONIC_TILE);
    let mut at = UNIT_POS;
    while at < size {
        let element = start + at as usize;
        let mut key = E::Key::min_value();
        let mut place = u32::MAX.runtime();
        if element < length {
            key = ordered_key::<E>(elements[element], config.largest);
            place = #[comptime]
            match places {
                ComptimeOption::Some(places) => places[element],
                ComptimeOption::None => element as u32,
            };
        }
        keys[at as usize] = key;
        own[at as usize] = place;
        at += units;
    }
    let tile = Tile::<E::Key> { keys: keys.clone(), places: own.clone(), units };
    tile.sort(run, size, false);
    let mut count = size.runtime();
    while count > run {
        count /= 2;
        let mut at = UNIT_POS;
        let mut item = 0u32;
        while item < comptime!(BITONIC_TILE as u32 / 2 / units) {
            let first = (at / run) * (2 * run) + at % run;
            let mut key = E::Key::min_value();
            let mut place = u32::MAX.runtime();
            if at < count {
                let mine = keys[first as usize];
                let other = keys[(first + run) as usize];
                let own_place = own[first as usize];
                let other_place = own[(first + run) as usize];
                let better = other > mine || (other == mine && other_place < own_place);
                key = select(better, other, mine);
                place = select(better, other_place, own_place);
            }
            sync_cube();
            if at < count {
                keys[at as usize] = key;
                own[at as usize] = place;
            }
            sync_cube();
            at += units;
            item += 1;
        }
        tile.merge(run / 2, run, count, false);
    }
    if comptime!(config.last) {
        let mut at = UNIT_POS;
        while at < run {
            if at >= k {
                own[at as usize] = u32::MAX.runtime();
            }
            at += units;
        }
        tile.sort(run, run.runtime(), true);
        let mut at = UNIT_POS;
        while at < k {
            kept[at as usize] = own[at as usize];
            at += units;
        }
    } else {
        let mut at = UNIT_POS;
        while at < run {
            let target = CUBE_POS * config.run + at as usize;
            best[target] = keys[at as usize];
            kept[target] = own[at as usize];
            at += units;
        }
    }
}
