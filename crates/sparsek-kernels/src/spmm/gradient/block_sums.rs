//! Sums of selected elements over one column block.
//!
//! Planes claim elements of a column, one per unit; teams sum extents.

use cubecl::prelude::*;

use super::column_blocks::{LOADS_BITS, LONG};
use crate::spmm::{
    sizes::{BANKS, EXTENT},
    tuning::{BLOCK_FLIGHT, CUBES_PER_BLOCK, TEAM},
};

pub(super) const WORDS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockConfig {
    pub plane: u32,
    pub units: u32,
    pub columns: usize,
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn sums_kernel<N: Size>(
    selected: &[u32],
    firsts: &[u32],
    extents: &[u32],
    entries: &[Vector<u32, N>],
    columns: &[Vector<f32, N>],
    partials: &mut [f32],
    rows: usize,
    blocks: usize,
    k: u32,
    stride: usize,
    width: u32,
    #[comptime] config: BlockConfig,
) {
    let cubes = CUBES_PER_BLOCK;
    let block = CUBE_POS / cubes;
    let share = CUBE_POS - block * cubes;
    if block >= blocks {
        terminate!();
    }
    let total = selected.len();
    let each = (total + cubes - 1) / cubes;
    let mut from = min(share * each, total);
    let end = min(from + each, total);
    let mut values = Shared::<[f32]>::new_slice(comptime!(config.columns + BANKS));
    let taken = Shared::<[Atomic<u32>]>::new_slice(4usize);
    let mut number = column_of(firsts, from, width);
    while from < end {
        let upto = min(end, firsts[(number + 1) as usize] as usize);
        if from < upto {
            let first = number as usize * stride + block * comptime!(config.columns);
            let mut load = UNIT_POS as usize;
            while load < comptime!(config.columns / WORDS) {
                let loaded = columns[first / WORDS + load];
                #[unroll]
                for i in 0..WORDS {
                    values[load * WORDS + i] = loaded.extract(i);
                }
                load += comptime!(config.units as usize);
            }
            if UNIT_POS < comptime!(BANKS as u32) {
                values[comptime!(config.columns) + UNIT_POS as usize] = 0.0f32;
            }
            if UNIT_POS == 0 {
                taken[0].store(0u32);
            }
            sync_cube();
            let mut begin = from + claim(&taken, config.plane);
            while begin < upto {
                let place = begin + UNIT_POS_X as usize;
                let mut extent = EXTENT * block * rows;
                let mut packed = 0u32;
                if place < upto {
                    extent += EXTENT * (selected[place] / k) as usize;
                    packed = extents[extent];
                }
                let mut sum = sum_extents::<N>(&values, entries, packed, config.plane);
                if plane_any(packed & LONG == LONG) {
                    let mut loads = 0u32;
                    if place < upto {
                        loads = extents[extent + 1];
                    }
                    sync_plane();
                    sum += sum_long_extents::<N>(&values, entries, packed, loads, config.plane);
                }
                if place < upto {
                    partials[block * total + place] = sum;
                }
                begin = from + claim(&taken, config.plane);
            }
            sync_cube();
        }
        from = upto;
        number += 1u32;
    }
}

#[cube]
fn column_of(firsts: &[u32], place: usize, width: u32) -> u32 {
    let mut low = 0u32.runtime();
    let mut high = width + 0;
    while high - low > 1 {
        let middle = (low + high) / 2;
        if firsts[middle as usize] as usize <= place {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cube]
fn claim(taken: &Shared<[Atomic<u32>]>, #[comptime] plane: u32) -> usize {
    let mut claimed = 0u32;
    if UNIT_POS_X == 0 {
        claimed = taken[0].fetch_add(plane);
    }
    sync_plane();
    plane_shuffle(claimed, 0u32) as usize
}

/// Sums up to [`LONG`] loads per extent.
#[cube]
fn sum_extents<N: Size>(
    values: &Shared<[f32]>,
    entries: &[Vector<u32, N>],
    packed: u32,
    #[comptime] plane: u32,
) -> f32 {
    let turn = UNIT_POS_X / TEAM;
    let team = turn * TEAM;
    let lane = UNIT_POS_X - team;
    let mut steps = max(((packed & LONG) + comptime!(BLOCK_FLIGHT - 1)) / BLOCK_FLIGHT, 1u32);
    let mut mask = 1u32.runtime();
    while mask < TEAM {
        steps += plane_shuffle_xor(steps, mask);
        mask *= 2;
    }
    while mask < plane {
        steps = max(steps, plane_shuffle_xor(steps, mask));
        mask *= 2;
    }
    let mut own = 0.0f32;
    let mut sum = 0.0f32;
    let mut unit = 0u32.runtime();
    let mut at = 0u32.runtime();
    let mut current = plane_shuffle(packed, team);
    let mut next = Array::<Vector<u32, N>>::new(BLOCK_FLIGHT as usize);
    read::<N>(&mut next, entries, current, at, lane);
    for _ in 0..steps {
        let mut now = Array::<Vector<u32, N>>::new(BLOCK_FLIGHT as usize);
        #[unroll]
        for n in 0..BLOCK_FLIGHT as usize {
            now[n] = next[n];
        }
        let (before, loads, owner) = (at + 0, current & LONG, unit + 0);
        let last = at + BLOCK_FLIGHT >= loads;
        at = select(last, 0u32, at + BLOCK_FLIGHT);
        unit += u32::cast_from(last);
        current = plane_shuffle(packed, team + min(unit, comptime!(TEAM - 1)));
        current = select(unit < TEAM, current, 0u32);
        read::<N>(&mut next, entries, current, at, lane);
        #[unroll]
        for n in 0..BLOCK_FLIGHT {
            if before + n < loads {
                sum += sum_load::<N>(values, now[n as usize], turn);
            }
        }
        sync_plane();
        let mut all = sum;
        all += plane_shuffle_xor(all, 4u32);
        all += plane_shuffle_xor(all, 2u32);
        all += plane_shuffle_xor(all, 1u32);
        own = select(last && lane == owner, all, own);
        sum = select(last, 0.0f32, sum);
    }
    own
}

#[cube]
fn read<N: Size>(
    next: &mut Array<Vector<u32, N>>,
    entries: &[Vector<u32, N>],
    packed: u32,
    at: u32,
    lane: u32,
) {
    let first = (packed >> LOADS_BITS) as usize * comptime!(TEAM as usize) + lane as usize;
    #[unroll]
    for n in 0..BLOCK_FLIGHT {
        if at + n < packed & LONG {
            next[n as usize] = entries[first + (at + n) as usize * comptime!(TEAM as usize)];
        }
    }
}

#[cube]
fn sum_long_extents<N: Size>(
    values: &Shared<[f32]>,
    entries: &[Vector<u32, N>],
    packed: u32,
    loads: u32,
    #[comptime] plane: u32,
) -> f32 {
    let turn = UNIT_POS_X / TEAM;
    let lane = UNIT_POS_X - turn * TEAM;
    let mut own = 0.0f32;
    for unit in 0..plane {
        let theirs = plane_shuffle(loads, unit);
        if theirs > LONG {
            let start = plane_shuffle(packed, unit) >> LOADS_BITS;
            let first = start as usize * comptime!(TEAM as usize) + lane as usize;
            let mut sum = 0.0f32;
            let mut load = LONG + turn;
            while load < theirs {
                let words = entries[first + load as usize * comptime!(TEAM as usize)];
                sum += sum_load::<N>(values, words, turn);
                load += comptime!(plane / TEAM);
            }
            sync_plane();
            sum = plane_sum(sum);
            own = select(UNIT_POS_X == unit, sum, own);
        }
    }
    own
}

/// Neighboring teams begin with different banks; all add in one order.
#[cube]
fn sum_load<N: Size>(column: &Shared<[f32]>, load: Vector<u32, N>, turn: u32) -> f32 {
    let odd = turn & 1 == 1;
    let far = turn & 2 == 2;
    let first = load.extract(0usize);
    let second = load.extract(1usize);
    let third = load.extract(2usize);
    let fourth = load.extract(3usize);
    let a = select(odd, second, first);
    let b = select(odd, third, second);
    let c = select(odd, fourth, third);
    let d = select(odd, first, fourth);
    let e = sum_word(column, select(far, c, a));
    let f = sum_word(column, select(far, d, b));
    let g = sum_word(column, select(far, a, c));
    let h = sum_word(column, select(far, b, d));
    (e + g) + (f + h)
}

#[cube]
fn sum_word(column: &Shared<[f32]>, word: u32) -> f32 {
    column[(word & 0xffff) as usize] + column[(word >> 16) as usize]
}
