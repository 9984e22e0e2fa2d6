//! The sums of members over a stretch: planes take members as they come, teams of their units the loads of a row.
#![allow(
    clippy::manual_div_ceil,
    reason = "kernels know no `div_ceil` on runtime integers"
)]
#![allow(
    clippy::identity_op,
    reason = "kernels copy what changes later by an operation"
)]

use cubecl::prelude::*;

use super::{
    super::stretches::{BANKS, LOADS_BITS, LONG, SPAN, TEAM},
    CUBES, Shape, WORDS,
};

/// Loads of a team under way at a time: 1 took 2.24 ms for k = 16 on a graph of Reddit's size, 2 1.87, 3 1.89 and 4 1.95 (NVIDIA H200).
const FLIGHT: u32 = 2;

/// A cube has a share of the members for a stretch, and loads their columns one after the other.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(
    clippy::too_many_arguments,
    reason = "members, entries, values and sizes"
)]
pub(super) fn sums_kernel<N: Size>(
    members: &[u32],
    firsts: &[u32],
    spans: &[u32],
    entries: &[Vector<u32, N>],
    columns: &[Vector<f32, N>],
    partials: &mut [f32],
    rows: usize,
    stretches: usize,
    k: u32,
    stride: usize,
    width: u32,
    #[comptime] shape: Shape,
) {
    let cubes = CUBES;
    let stretch = CUBE_POS / cubes;
    let share = CUBE_POS - stretch * cubes;
    if stretch >= stretches {
        terminate!();
    }
    let total = members.len();
    let each = (total + cubes - 1) / cubes;
    let mut from = min(share * each, total);
    let end = min(from + each, total);
    let mut values = Shared::<[f32]>::new_slice(comptime!(shape.columns + BANKS));
    let taken = Shared::<[Atomic<u32>]>::new_slice(4usize);
    let mut number = column_of(firsts, from, width);
    while from < end {
        let upto = min(end, firsts[(number + 1) as usize] as usize);
        if from < upto {
            let first = number as usize * stride + stretch * comptime!(shape.columns);
            let mut load = UNIT_POS as usize;
            while load < comptime!(shape.columns / WORDS) {
                let loaded = columns[first / WORDS + load];
                #[unroll]
                for i in 0..WORDS {
                    values[load * WORDS + i] = loaded.extract(i);
                }
                load += comptime!(shape.units as usize);
            }
            if UNIT_POS < comptime!(BANKS as u32) {
                values[comptime!(shape.columns) + UNIT_POS as usize] = 0.0f32;
            }
            if UNIT_POS == 0 {
                taken[0].store(0u32);
            }
            sync_cube();
            let mut begin = from + claim(&taken, shape.plane);
            while begin < upto {
                let place = begin + UNIT_POS_X as usize;
                let mut span = SPAN * stretch * rows;
                let mut packed = 0u32;
                if place < upto {
                    span += SPAN * (members[place] / k) as usize;
                    packed = spans[span];
                }
                let mut sum = of_plane::<N>(&values, entries, packed, shape.plane);
                if plane_any(packed & LONG == LONG) {
                    let mut loads = 0u32;
                    if place < upto {
                        loads = spans[span + 1];
                    }
                    sync_plane();
                    sum += of_long::<N>(&values, entries, packed, loads, shape.plane);
                }
                if place < upto {
                    partials[stretch * total + place] = sum;
                }
                begin = from + claim(&taken, shape.plane);
            }
            sync_cube();
        }
        from = upto;
        number += 1u32;
    }
}

/// The number of the column that a place among the members belongs to.
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

/// The next members for a plane, one for each unit.
#[cube]
fn claim(taken: &Shared<[Atomic<u32>]>, #[comptime] plane: u32) -> usize {
    let mut claimed = 0u32;
    if UNIT_POS_X == 0 {
        claimed = taken[0].fetch_add(plane);
    }
    sync_plane();
    plane_shuffle(claimed, 0u32) as usize
}

/// The sums over the loads of a span for each unit, fewer than [`LONG`] or the first of them. Teams go through the spans of their
/// units without waiting for each other, and read the next loads before they add up these.
#[cube]
fn of_plane<N: Size>(
    values: &Shared<[f32]>,
    entries: &[Vector<u32, N>],
    packed: u32,
    #[comptime] plane: u32,
) -> f32 {
    let turn = UNIT_POS_X / TEAM;
    let team = turn * TEAM;
    let lane = UNIT_POS_X - team;
    let mut steps = max(((packed & LONG) + comptime!(FLIGHT - 1)) / FLIGHT, 1u32);
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
    let mut next = Array::<Vector<u32, N>>::new(FLIGHT as usize);
    read::<N>(&mut next, entries, current, at, lane);
    for _ in 0..steps {
        let mut now = Array::<Vector<u32, N>>::new(FLIGHT as usize);
        #[unroll]
        for n in 0..FLIGHT as usize {
            now[n] = next[n];
        }
        let (before, loads, whose) = (at + 0, current & LONG, unit + 0);
        let last = at + FLIGHT >= loads;
        at = select(last, 0u32, at + FLIGHT);
        unit += u32::cast_from(last);
        current = plane_shuffle(packed, team + min(unit, comptime!(TEAM - 1)));
        current = select(unit < TEAM, current, 0u32);
        read::<N>(&mut next, entries, current, at, lane);
        #[unroll]
        for n in 0..FLIGHT {
            if before + n < loads {
                sum += add_up::<N>(values, now[n as usize], turn);
            }
        }
        sync_plane();
        let mut all = sum;
        all += plane_shuffle_xor(all, 4u32);
        all += plane_shuffle_xor(all, 2u32);
        all += plane_shuffle_xor(all, 1u32);
        own = select(last && lane == whose, all, own);
        sum = select(last, 0.0f32, sum);
    }
    own
}

/// Reads what a unit has of the next loads of a span.
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
    for n in 0..FLIGHT {
        if at + n < packed & LONG {
            next[n as usize] = entries[first + (at + n) as usize * comptime!(TEAM as usize)];
        }
    }
}

/// The sums over what [`of_plane`] leaves of long spans, each by the whole plane.
#[cube]
fn of_long<N: Size>(
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
                sum += add_up::<N>(values, words, turn);
                load += comptime!(plane / TEAM);
            }
            sync_plane();
            sum = plane_sum(sum);
            own = select(UNIT_POS_X == unit, sum, own);
        }
    }
    own
}

/// The sum of the values that a unit's part of a load names. Teams begin with words of their own, which are of other banks; the sum is the
/// same whichever is first.
#[cube]
fn add_up<N: Size>(column: &Shared<[f32]>, load: Vector<u32, N>, turn: u32) -> f32 {
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
    let e = two_of(column, select(far, c, a));
    let f = two_of(column, select(far, d, b));
    let g = two_of(column, select(far, a, c));
    let h = two_of(column, select(far, b, d));
    (e + g) + (f + h)
}

#[cube]
fn two_of(column: &Shared<[f32]>, word: u32) -> f32 {
    column[(word & 0xffff) as usize] + column[(word >> 16) as usize]
}
