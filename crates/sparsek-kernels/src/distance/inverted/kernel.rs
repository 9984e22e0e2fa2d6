use cubecl::{ir::ElemType, prelude::*};

use super::accumulator::{
    Accumulator, Entries, FinishedParts, InvertedConfig, LaneEntries, Visit, broadcast,
};
use crate::distance::{
    merge::pair::{Matrices, RowPair},
    prepare::parts::ONE_PART,
    semiring::Semiring,
    tuning::FINISHED_TOGETHER,
};

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct InvertedShape {
    first: usize,
    rows: usize,
    across: usize,
    cols: usize,
    tile: usize,
    tiles: usize,
    groups: usize,
    end: usize,
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn inverted_kernel<M: Semiring, S: Float, P: Int>(
    matrices: Matrices<S>,
    starts: &[i32],
    ends: &[i32],
    packed: &[Vector<P, Const<2>>],
    output: &mut [S],
    others: &mut [S],
    shape: InvertedShape,
    #[comptime] config: InvertedConfig,
    #[define(S, P)] _dtypes: [ElemType; 2],
) {
    let plane = comptime!(config.plane);
    let pair = RowPair::<S>::new(&matrices);
    let mut accumulator = Accumulator::<S>::new::<M>(pair.p, config);
    let entries = Entries::<P>::new(starts, ends, packed, shape.end);
    let tile = CUBE_POS / shape.groups;
    let group = CUBE_POS - tile * shape.groups;
    let mut slice = 0u32;
    let mut row = group * comptime!(config.planes as usize) + UNIT_POS_Y as usize;
    if comptime!(config.planes_per_row > 1) {
        slice = UNIT_POS_Y;
        row = group + 0;
    }
    let lane = UNIT_POS_X as usize;
    let first = tile * shape.tile;
    // No barrier crosses rows.
    if tile >= shape.tiles || row >= shape.rows {
        terminate!();
    }
    if comptime!(config.half) {
        if row >= first + shape.tile {
            terminate!();
        }
    }
    accumulator.clear::<M>();
    let i = shape.first + row;
    let mut begin = pair.left().start(i);
    let mut count = pair.left().start(i + 1) - begin;
    if comptime!(config.planes_per_row > 1) {
        let width = shape.cols as u32 / comptime!(config.planes_per_row) + 1;
        let before = pair.left().entries_below(begin, count, slice * width, plane);
        count = pair.left().entries_below(begin, count, (slice + 1) * width, plane) - before;
        begin += before;
    }
    let bits = pair.left_parts(i);
    let across = min(shape.tile, shape.across - first);
    let base = row * shape.across + first;
    let mut finished =
        FinishedParts::<S>::new(output, others, base, across, comptime!(plane as usize));
    if comptime!(config.parts) {
        if bits < ONE_PART {
            finished.clear::<M>();
        }
    }
    if comptime!(plane > 1) {
        sync_plane();
    }
    let mut done = 0usize;
    let mut last_column = 0u32;
    let mut first_visit = Visit::<S>::new(config);
    let mut second = Visit::<S>::new(config);
    let mut third = Visit::<S>::new(config);
    while done < count {
        let position = done + lane;
        let active = min(count - done, comptime!(plane as usize)) as u32;
        let mut lanes = LaneEntries::<S> { value: S::new(0.0), start: 0i32, end: 0i32, active };
        let mut column = 0u32;
        if position < count {
            lanes.value = pair.left().value(begin + position);
            column = pair.left().column(begin + position) as u32;
            let counter = tile * shape.cols + column as usize;
            lanes.start = entries.starts[counter];
            lanes.end = entries.ends[counter];
        }
        if comptime!(config.parts) {
            if bits < ONE_PART {
                let first_column = broadcast::<u32>(column, 0, plane);
                let part = first_column >> bits;
                let among = position < count && column >> bits == part;
                lanes.active = plane_total(u32::cast_from(among), plane);
                if done > 0 && part != last_column >> bits {
                    accumulator.flush_parts::<M>(
                        &pair,
                        &mut finished,
                        bits,
                        first,
                        last_column,
                        first_column,
                    );
                }
                last_column = first_column;
            }
        }
        first_visit.begin::<P>(0, &lanes, &entries);
        if comptime!(plane > 1) {
            second.begin::<P>(1, &lanes, &entries);
        }
        let mut turn = 0u32;
        while turn < lanes.active {
            if comptime!(plane > 1) {
                third.begin::<P>(turn + 2, &lanes, &entries);
                accumulator.add::<M, P>(&mut first_visit, &entries);
                first_visit.begin::<P>(turn + 3, &lanes, &entries);
                accumulator.add::<M, P>(&mut second, &entries);
                second.begin::<P>(turn + 4, &lanes, &entries);
                accumulator.add::<M, P>(&mut third, &entries);
            } else {
                accumulator.add::<M, P>(&mut first_visit, &entries);
            }
            turn += 3;
            if comptime!(M::ALGEBRA.covered) {
                if accumulator.none_finite() {
                    turn = lanes.active;
                    done = count;
                }
            }
        }
        done += lanes.active as usize;
    }
    if comptime!(config.parts) {
        if bits < ONE_PART {
            accumulator.add_finished::<M>(&finished);
        }
    }
    // Several, to overlap loads.
    if comptime!(config.planes_per_row > 1) {
        sync_cube();
    }
    let spread = comptime!((config.planes_per_row * plane) as usize);
    let begin = slice as usize * comptime!(plane as usize) + lane;
    let mut again = false.runtime();
    let mut place = begin + 0;
    while place < across {
        let mut distances = Array::<S>::new(FINISHED_TOGETHER);
        #[unroll]
        for n in 0..FINISHED_TOGETHER {
            let at = min(place + comptime!(n * spread), across - 1);
            let other = accumulator.second::<M>(at);
            let draft = pair.draft::<M>(i, first + at, accumulator.total::<M>(at), other);
            distances[n] = draft.distance;
            again = select(draft.decided, again, true);
        }
        #[unroll]
        for n in 0..FINISHED_TOGETHER {
            let at = place + comptime!(n * spread);
            if at < across {
                finished.totals[base + at] = distances[n];
            }
        }
        place += comptime!(FINISHED_TOGETHER * spread);
    }
    if comptime!(M::STRATEGY.direct || M::STRATEGY.rescales_pairs()) {
        if again {
            place = begin + 0;
            while place < across {
                let other = accumulator.second::<M>(place);
                let total = accumulator.total::<M>(place);
                finished.totals[base + place] = pair.finish::<M>(i, first + place, total, other);
                place += spread;
            }
        }
    }
}

#[cube]
fn plane_total(count: u32, #[comptime] plane: u32) -> u32 {
    let mut sum = count;
    if comptime!(plane > 1) {
        sum = plane_sum(count);
    }
    sum
}
