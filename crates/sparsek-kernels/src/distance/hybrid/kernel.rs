use cubecl::{ir::ElemType, prelude::*};

use super::{
    sums::{Part, Sink, identity, term},
    table::{ABSENT, Table},
    types::{HybridConfig, HybridShape, NONE, Pass, PlaneRange},
};
use crate::{
    distance::{
        merge::pair::{Matrices, RowPair, Sparse},
        semiring::{Parameter, Semiring},
    },
    primitives::csr::row_of,
};

/// Entries per sum, against rounding.
const LANE_PART: u32 = 128;

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn scan_kernel<M: Semiring, S: Float>(
    held: Sparse<S>,
    scanned: Sparse<S>,
    rows: &[i32],
    totals: &mut [S],
    others: &mut [S],
    parameter: Parameter,
    shape: HybridShape,
    #[comptime] config: HybridConfig,
    #[define(S)] _dtype: ElemType,
) {
    if CUBE_POS >= shape.held_rows {
        terminate!();
    }
    let begin = held.start(shape.held + CUBE_POS);
    let end = held.start(shape.held + CUBE_POS + 1);
    if comptime!(config.pass == Pass::Both) {
        if begin == end {
            terminate!();
        }
    }
    let plane = comptime!(config.plane as usize);
    let first = scanned.start(shape.scanned);
    let last = scanned.start(shape.scanned + shape.scanned_rows);
    let range = PlaneRange::new(rows, first, last, &shape, config.plane);
    let mut sink = Sink::<S>::new(totals, others, &range, &shape, config);
    let p = parameter.value::<S>();
    let mut table = Table::<S>::new(config.layout);
    for block in 0..table.blocks(end - begin) {
        table.fill(&held, begin, end, block, shape.units);
        let mut current = NONE.runtime();
        let mut total = identity::<M, S>();
        let mut other = S::new(0.0);
        let mut whole_total = identity::<M, S>();
        let mut whole_other = S::new(0.0);
        let mut added_count = 0u32;
        let mut done = range.start;
        while done < range.stop {
            let position = done + UNIT_POS_X as usize;
            let mut row = NONE.runtime();
            let mut added = Part::<S> { total: identity::<M, S>(), other: S::new(0.0) };
            if position < range.stop {
                row = rows[position] - shape.scanned as i32;
                let entry = visit::<M, S>(&table, &scanned, position, p, config.pass);
                added.total = entry.total;
                added.other = entry.other;
            }
            reconverge(config.plane);
            let mut from = row;
            let mut to = row;
            if comptime!(plane > 1) {
                from = plane_shuffle(row, 0u32);
                to = plane_shuffle(row, comptime!(config.plane - 1));
            }
            let sums = Part::<S> { total, other };
            let whole = Part::<S> { total: whole_total, other: whole_other };
            if from == current && to == current {
                let sums = sums.with::<M>(&added);
                total = sums.total;
                other = sums.other;
                added_count += 1;
                if added_count == LANE_PART {
                    let whole = whole.with::<M>(&sums);
                    whole_total = whole.total;
                    whole_other = whole.other;
                    total = identity::<M, S>();
                    other = S::new(0.0);
                    added_count = 0;
                }
            } else {
                let sums = whole.with::<M>(&sums);
                let so_far = sums.of_plane::<M>(config.plane);
                if UNIT_POS_X == 0 && current != NONE && from != current {
                    sink.write::<M>(current, &so_far);
                }
                reconverge(config.plane);
                let running = added.running::<M>(row, config.plane);
                let goes_on = row == current;
                let joined = so_far.with::<M>(&running);
                let sum = select(goes_on, joined.total, running.total);
                let second = select(goes_on, joined.other, running.other);
                if comptime!(plane > 1) {
                    let next = plane_shuffle_down(row, 1u32);
                    let ends = UNIT_POS_X < comptime!(config.plane - 1) && next != row;
                    if ends && row != NONE {
                        let part = Part::<S> { total: sum, other: second };
                        sink.write::<M>(row, &part);
                    }
                    reconverge(config.plane);
                }
                let is_last = UNIT_POS_X == comptime!(config.plane - 1);
                total = select(is_last, sum, identity::<M, S>());
                other = select(is_last, second, S::new(0.0));
                whole_total = identity::<M, S>();
                whole_other = S::new(0.0);
                added_count = 0;
                current = to;
            }
            done += plane;
        }
        reconverge(config.plane);
        let sums = Part::<S> { total, other };
        let whole = Part::<S> { total: whole_total, other: whole_other };
        let sums = whole.with::<M>(&sums);
        let so_far = sums.of_plane::<M>(config.plane);
        if UNIT_POS_X == 0 && current != NONE {
            sink.write::<M>(current, &so_far);
        }
        sink.collect::<M>();
    }
}

#[cube]
fn reconverge(#[comptime] plane: u32) {
    if comptime!(plane > 1) {
        sync_plane();
    }
}

#[cube]
fn visit<M: Semiring, S: Float>(
    table: &Table<S>,
    scanned: &Sparse<S>,
    entry: usize,
    p: S,
    #[comptime] pass: Pass,
) -> Part<S> {
    let mut total = identity::<M, S>();
    let mut other = S::new(0.0);
    let column = scanned.column(entry) as u32;
    if table.covers(column) {
        let place = table.find(column);
        let value = scanned.value(entry);
        if comptime!(pass == Pass::Lacking) {
            if place == ABSENT {
                total = term::<M, S>(value, S::new(0.0), p);
            }
        } else {
            let mut held_value = S::new(0.0);
            if place != ABSENT {
                held_value = table.value(place);
                if comptime!(M::ALGEBRA.other && M::ALGEBRA.annihilates) {
                    other = M::other::<S>(held_value, value);
                }
                if comptime!(pass == Pass::Both) {
                    total = term::<M, S>(held_value, value, p);
                }
            }
            if comptime!(pass == Pass::Either) {
                total = term::<M, S>(held_value, value, p);
            }
        }
    }
    Part::<S> { total, other }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn rows_kernel(indptr: &[i32], rows: &mut [i32], count: u32) {
    if ABSOLUTE_POS >= rows.len() {
        terminate!();
    }
    let row = row_of(indptr, count, i32::cast_from(ABSOLUTE_POS));
    rows[ABSOLUTE_POS] = i32::cast_from(row);
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn begin_kernel<M: Semiring, S: Float>(
    totals: &mut [S],
    others: &mut [S],
    #[define(S)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= totals.len() {
        terminate!();
    }
    totals[ABSOLUTE_POS] = identity::<M, S>();
    if comptime!(M::ALGEBRA.other) {
        others[ABSOLUTE_POS] = S::new(0.0);
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn finish_kernel<M: Semiring, S: Float>(
    matrices: Matrices<S>,
    output: &mut [S],
    others: &[S],
    first: usize,
    across: usize,
    #[define(S)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= output.len() {
        terminate!();
    }
    let pair = RowPair::<S>::new(&matrices);
    let i = ABSOLUTE_POS / across;
    let j = ABSOLUTE_POS - i * across;
    let total = output[ABSOLUTE_POS];
    let mut other = S::new(0.0);
    if comptime!(M::ALGEBRA.other) {
        other = others[ABSOLUTE_POS];
    }
    if comptime!(M::STRATEGY.union) {
        output[ABSOLUTE_POS] = pair.finish_core::<M>(first + i, j, total, other);
    } else {
        output[ABSOLUTE_POS] = pair.finish::<M>(first + i, j, total, other);
    }
}
