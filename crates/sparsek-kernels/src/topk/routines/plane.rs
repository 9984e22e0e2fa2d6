//! One plane per row, the row in registers (RTop-K, Fig. 3, with keys instead of floats, vector
//! loads, counts by ballot, and a search by interpolation).
//!
//! A row of `cols` elements is cut into chunks of `PLANE_DIM × N` elements; in each, a unit holds N
//! neighbouring elements. Chunk, unit and element in this order are the index order.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::{ir::ElemType, prelude::*};

use super::{
    ballot::plane_tally,
    layout::RowLayout,
    registers::{Loaded, RegisterRow, first_column, load_row},
};
use crate::topk::{
    element::Element,
    options::{MethodKind, Search},
    search::{Cursor, Placement, Row, RowExpand, SearchParams, Threshold, find_threshold},
};

/// What a plane kernel is compiled for, besides the dtypes and the vector size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlaneBlueprint {
    pub search: Search,
    /// Chunks of a row, 1 to `MAX_PLANE_ITEMS / N`.
    pub chunks: usize,
    /// Whether the chunks cover the row exactly.
    pub exact_fit: bool,
    /// Whether neighbouring elements of a row are `col_stride` apart instead of 1.
    pub strided: bool,
    pub indices: bool,
    pub values: bool,
    /// 32-bit words of a ballot.
    pub words: usize,
}

/// Where this unit's items of a chunk begin in the selection; moves `totals` past the chunk.
#[cube]
fn chunk_cursor<E: Element>(
    row: &RegisterRow<E>,
    threshold: &Threshold<E::Key>,
    totals: &mut Cursor,
    #[comptime] first: usize,
    #[comptime] plain: bool,
) -> Cursor {
    let mut above_before = 0u32;
    let mut above_total = 0u32;
    let mut level_before = 0u32;
    let mut level_total = 0u32;
    #[unroll]
    for i in 0..row.width {
        let key = row.keys[comptime!(first + i)];
        let mut level = key >= threshold.low;
        if comptime!(!plain) {
            let above = key > threshold.high;
            let tally = plane_tally(above, row.words);
            above_total += tally.total;
            above_before += tally.before;
            level = level && !above;
        }
        let tally = plane_tally(level, row.words);
        level_total += tally.total;
        level_before += tally.before;
    }
    let cursor = Cursor {
        above: totals.above + above_before,
        level: totals.level + level_before,
    };
    totals.above += above_total;
    totals.level += level_total;
    cursor
}

/// How the members of a row are told: whether no key is above the threshold, and whether all keys at
/// or above its lower end are members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Members {
    plain: bool,
    all: bool,
}

/// Judges the next item of a chunk.
#[cube]
fn place<K: Int>(
    cursor: &mut Cursor,
    key: K,
    threshold: &Threshold<K>,
    quota: u32,
    #[comptime] members: Members,
) -> Placement {
    if members.plain {
        let level = key >= threshold.low;
        let step = select(level, 1u32, 0u32);
        cursor.level += step;
        let position = cursor.level - step;
        Placement {
            member: if members.all {
                level
            } else {
                level && position < quota
            },
            position,
        }
    } else {
        cursor.place::<K>(key, threshold, quota)
    }
}

/// Whether the members are known as simply as [`simple_members`] says.
#[cube]
fn is_simple<E: Element>(
    row: &RegisterRow<E>,
    threshold: &Threshold<E::Key>,
    #[comptime] search: Search,
) -> bool {
    if comptime!(search.method == MethodKind::Exact) {
        row.agreed(threshold.complete)
    } else {
        row.agreed(threshold.high == E::Key::max_value())
    }
}

fn simple_members(search: Search) -> Members {
    Members {
        plain: true,
        all: search.method == MethodKind::Exact,
    }
}

const OTHER_MEMBERS: Members = Members {
    plain: false,
    all: false,
};

/// Values and indices of the members, in index order.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn plane_select<E: Element, I: Numeric, N: Size>(
    input: &[Vector<E, N>],
    values: &mut [E],
    indices: &mut [I],
    layout: RowLayout,
    params: SearchParams,
    #[comptime] blueprint: PlaneBlueprint,
    #[define(I)] _index: ElemType,
) {
    let row = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    // Whole planes leave, never a part of one.
    if plane_all(row >= layout.rows) {
        terminate!();
    }
    let loaded = load_row::<E, N>(input, row, &layout, blueprint);
    let threshold = find_threshold::<E, RegisterRow<E>>(&loaded.row, &params, blueprint.search);
    if is_simple::<E>(&loaded.row, &threshold, blueprint.search) {
        let members = comptime!(simple_members(blueprint.search));
        write_pairs::<E, I, N>(
            &loaded, &threshold, &params, row, values, indices, blueprint, members,
        );
    } else {
        write_pairs::<E, I, N>(
            &loaded,
            &threshold,
            &params,
            row,
            values,
            indices,
            blueprint,
            OTHER_MEMBERS,
        );
    }
}

#[cube]
#[allow(clippy::too_many_arguments)]
fn write_pairs<E: Element, I: Numeric, N: Size>(
    loaded: &Loaded<E, N>,
    threshold: &Threshold<E::Key>,
    params: &SearchParams,
    row: usize,
    values: &mut [E],
    indices: &mut [I],
    #[comptime] blueprint: PlaneBlueprint,
    #[comptime] members: Members,
) {
    let width = N::value().comptime();
    let quota = params.k - threshold.above;
    let k = params.k as usize;
    let start = row * k;
    let values = &mut values[start..start + k];
    let indices = &mut indices[start..start + k];
    let mut totals = Cursor { above: 0, level: 0 };
    #[unroll]
    for chunk in 0..blueprint.chunks {
        let first = comptime!(chunk * width);
        let mut cursor =
            chunk_cursor::<E>(&loaded.row, threshold, &mut totals, first, members.plain);
        let column = first_column(chunk, width);
        #[unroll]
        for i in 0..width {
            let key = loaded.row.keys[comptime!(first + i)];
            let place = place::<E::Key>(&mut cursor, key, threshold, quota, members);
            if place.member {
                let target = place.position as usize;
                if comptime!(blueprint.values) {
                    values[target] = loaded.vectors[chunk].extract(i);
                }
                if comptime!(blueprint.indices) {
                    indices[target] = I::cast_from(column + comptime!(i as u32));
                }
            }
        }
    }
}

/// The dense row with everything but the members set to zero; the indices of the members beside it
/// when the blueprint asks for them.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn plane_mask<E: Element, I: Numeric, N: Size>(
    input: &[Vector<E, N>],
    output: &mut [Vector<E, N>],
    indices: &mut [I],
    layout: RowLayout,
    params: SearchParams,
    #[comptime] blueprint: PlaneBlueprint,
    #[define(I)] _index: ElemType,
) {
    let row = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    // Whole planes leave, never a part of one.
    if plane_all(row >= layout.rows) {
        terminate!();
    }
    let loaded = load_row::<E, N>(input, row, &layout, blueprint);
    let threshold = find_threshold::<E, RegisterRow<E>>(&loaded.row, &params, blueprint.search);
    if is_simple::<E>(&loaded.row, &threshold, blueprint.search) {
        let members = comptime!(simple_members(blueprint.search));
        write_mask::<E, I, N>(
            &loaded, &threshold, &params, row, output, indices, blueprint, members,
        );
    } else {
        write_mask::<E, I, N>(
            &loaded,
            &threshold,
            &params,
            row,
            output,
            indices,
            blueprint,
            OTHER_MEMBERS,
        );
    }
}

#[cube]
#[allow(clippy::too_many_arguments)]
fn write_mask<E: Element, I: Numeric, N: Size>(
    loaded: &Loaded<E, N>,
    threshold: &Threshold<E::Key>,
    params: &SearchParams,
    row: usize,
    output: &mut [Vector<E, N>],
    indices: &mut [I],
    #[comptime] blueprint: PlaneBlueprint,
    #[comptime] members: Members,
) {
    let width = N::value().comptime();
    let quota = params.k - threshold.above;
    let start = row * params.k as usize;
    let base = row * loaded.row.cols as usize;
    let mut totals = Cursor { above: 0, level: 0 };
    #[unroll]
    for chunk in 0..blueprint.chunks {
        let first = comptime!(chunk * width);
        let mut cursor =
            chunk_cursor::<E>(&loaded.row, threshold, &mut totals, first, members.plain);
        let column = first_column(chunk, width);
        let mut kept = Vector::<E, N>::zeroed();
        #[unroll]
        for i in 0..width {
            let key = loaded.row.keys[comptime!(first + i)];
            let place = place::<E::Key>(&mut cursor, key, threshold, quota, members);
            let value = loaded.vectors[chunk].extract(i);
            kept.insert(i, select(place.member, value, E::from_int(0)));
            if comptime!(blueprint.indices) {
                if place.member {
                    indices[start + place.position as usize] =
                        I::cast_from(column + comptime!(i as u32));
                }
            }
        }
        let inside = comptime!(blueprint.exact_fit) || column < loaded.row.cols;
        if inside {
            output[(base + column as usize) / width] = kept;
        }
    }
}
