//! The entries of a matrix gone through by a cube that holds a row of the other.
#![allow(
    clippy::collapsible_if,
    clippy::collapsible_else_if,
    clippy::manual_div_ceil,
    reason = "outer conditions are decided when the kernel is compiled, and kernels round up by hand"
)]

use cubecl::{ir::ElemType, prelude::*};

use super::{
    sink::Sink,
    sums::{Part, identity, term},
    table::{ABSENT, Layout, Table},
};
use crate::distance::{Parameter, pair::Sparse, semiring::Semiring};

/// No row.
pub(super) const NONE: i32 = -1;
/// Entries of a row that a unit adds up before it adds the sum to that of the row, so that rounding stays small in long rows.
const PART: u32 = 128;

/// Which columns add to the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pass {
    /// Those of both rows.
    Both,
    /// All of the row that is scanned, zero being what the other lacks.
    Either,
    /// Those that the row that is held lacks, the matrices being exchanged.
    Lacking,
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Blueprint {
    /// Units of a plane, and planes of a cube.
    pub plane: u32,
    pub planes: u32,
    pub pass: Pass,
    pub layout: Layout,
}

impl Blueprint {
    /// Sums of a plane for others to see, in arrays of whole times 16 bytes.
    pub fn slots(self) -> usize {
        slots(self.planes)
    }
}

fn slots(planes: u32) -> usize {
    planes.next_multiple_of(4) as usize
}

/// Shared memory for the sums of rows that lie in several stretches.
pub(super) fn carried_bytes(planes: u32, size: usize) -> usize {
    slots(planes) * (4 * size + size_of::<i32>())
}

/// Rows that are held and rows that are scanned: the first, how many, and how far they are apart in the output.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Shape {
    held: usize,
    held_rows: usize,
    pub held_step: usize,
    scanned: usize,
    scanned_rows: usize,
    pub scanned_step: usize,
    /// Units of a cube.
    units: usize,
}

/// The entries that a plane goes through. They begin within the row `head` and end within the row `tail`, or in neither.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Stretch {
    start: usize,
    stop: usize,
    pub head: i32,
    pub tail: i32,
}

#[cube]
impl Stretch {
    /// The share of the plane of the entries from `first` to `last`.
    fn new(
        rows: &[i32],
        first: usize,
        last: usize,
        shape: &Shape,
        #[comptime] plane: u32,
    ) -> Stretch {
        let windows = (last - first + shape.units - 1) / shape.units;
        let entries = windows * comptime!(plane as usize);
        let start = min(first + UNIT_POS_Y as usize * entries, last);
        let stop = min(start + entries, last);
        let offset = shape.scanned as i32;
        let mut head = NONE.runtime();
        let mut tail = NONE.runtime();
        if start < stop {
            if start > first {
                if rows[start - 1] == rows[start] {
                    head = rows[start] - offset;
                }
            }
            if stop < last {
                if rows[stop - 1] == rows[stop] {
                    tail = rows[stop] - offset;
                }
            }
        }
        Stretch {
            start,
            stop,
            head,
            tail,
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "two matrices of four buffers")]
pub(super) fn scan_kernel<M: Semiring, S: Float>(
    held_indptr: &[i32],
    held_indices: &[i32],
    held_values: &[S],
    held_norms: &[S],
    indptr: &[i32],
    indices: &[i32],
    values: &[S],
    norms: &[S],
    rows: &[i32],
    totals: &mut [S],
    others: &mut [S],
    parameter: Parameter,
    shape: Shape,
    #[comptime] blueprint: Blueprint,
    #[define(S)] _dtype: ElemType,
) {
    if CUBE_POS >= shape.held_rows {
        terminate!();
    }
    let held = Sparse::<S>::new(held_indptr, held_indices, held_values, held_norms);
    let scanned = Sparse::<S>::new(indptr, indices, values, norms);
    let begin = held.start(shape.held + CUBE_POS);
    let end = held.start(shape.held + CUBE_POS + 1);
    if comptime!(blueprint.pass == Pass::Both) {
        if begin == end {
            terminate!();
        }
    }
    let plane = comptime!(blueprint.plane as usize);
    let first = scanned.start(shape.scanned);
    let last = scanned.start(shape.scanned + shape.scanned_rows);
    let stretch = Stretch::new(rows, first, last, &shape, blueprint.plane);
    let mut sink = Sink::<S>::new(totals, others, &stretch, &shape, blueprint);
    let p = parameter.value::<S>();
    let mut table = Table::<S>::new(blueprint.layout);
    for block in 0..table.blocks(end - begin) {
        table.fill(&held, begin, end, block, shape.units);
        // The row that the units' sums belong to.
        let mut current = NONE.runtime();
        let mut total = identity::<M, S>();
        let mut other = S::new(0.0);
        // Of parts of it that are whole.
        let mut whole_total = identity::<M, S>();
        let mut whole_other = S::new(0.0);
        let mut added_up = 0u32;
        let mut done = stretch.start;
        while done < stretch.stop {
            let mine = done + UNIT_POS_X as usize;
            let mut row = NONE.runtime();
            let mut added = Part::<S> {
                total: identity::<M, S>(),
                other: S::new(0.0),
            };
            if mine < stretch.stop {
                row = rows[mine] - shape.scanned as i32;
                let entry = visit::<M, S>(&table, &scanned, mine, p, blueprint.pass);
                added.total = entry.total;
                added.other = entry.other;
            }
            together(blueprint.plane);
            let mut from = row;
            let mut to = row;
            if comptime!(plane > 1) {
                from = plane_shuffle(row, 0u32);
                to = plane_shuffle(row, comptime!(blueprint.plane - 1));
            }
            let sums = Part::<S> { total, other };
            let whole = Part::<S> {
                total: whole_total,
                other: whole_other,
            };
            if from == current && to == current {
                let sums = sums.joined::<M>(&added);
                total = sums.total;
                other = sums.other;
                added_up += 1;
                if added_up == PART {
                    let whole = whole.joined::<M>(&sums);
                    whole_total = whole.total;
                    whole_other = whole.other;
                    total = identity::<M, S>();
                    other = S::new(0.0);
                    added_up = 0;
                }
            } else {
                let sums = whole.joined::<M>(&sums);
                let so_far = sums.of_plane::<M>(blueprint.plane);
                if UNIT_POS_X == 0 && current != NONE && from != current {
                    sink.write::<M>(current, &so_far);
                }
                together(blueprint.plane);
                let running = added.running::<M>(row, blueprint.plane);
                let goes_on = row == current;
                let joined = so_far.joined::<M>(&running);
                let sum = select(goes_on, joined.total, running.total);
                let second = select(goes_on, joined.other, running.other);
                if comptime!(plane > 1) {
                    let next = plane_shuffle_down(row, 1u32);
                    let ends = UNIT_POS_X < comptime!(blueprint.plane - 1) && next != row;
                    if ends && row != NONE {
                        let part = Part::<S> {
                            total: sum,
                            other: second,
                        };
                        sink.write::<M>(row, &part);
                    }
                    together(blueprint.plane);
                }
                let is_last = UNIT_POS_X == comptime!(blueprint.plane - 1);
                total = select(is_last, sum, identity::<M, S>());
                other = select(is_last, second, S::new(0.0));
                whole_total = identity::<M, S>();
                whole_other = S::new(0.0);
                added_up = 0;
                current = to;
            }
            done += plane;
        }
        together(blueprint.plane);
        let sums = Part::<S> { total, other };
        let whole = Part::<S> {
            total: whole_total,
            other: whole_other,
        };
        let sums = whole.joined::<M>(&sums);
        let so_far = sums.of_plane::<M>(blueprint.plane);
        if UNIT_POS_X == 0 && current != NONE {
            sink.write::<M>(current, &so_far);
        }
        sink.collect::<M>();
    }
}

/// The units of a plane go on together: those that have parted do not see each other's values.
#[cube]
fn together(#[comptime] plane: u32) {
    if comptime!(plane > 1) {
        sync_plane();
    }
}

/// What an entry adds to the sums of its row.
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
            let mut own = S::new(0.0);
            if place != ABSENT {
                own = table.value(place);
                if comptime!(M::NEEDS.other && M::NEEDS.annihilates) {
                    other = M::other::<S>(own, value);
                }
                if comptime!(pass == Pass::Both) {
                    total = term::<M, S>(own, value, p);
                }
            }
            if comptime!(pass == Pass::Either) {
                total = term::<M, S>(own, value, p);
            }
        }
    }
    Part::<S> { total, other }
}
