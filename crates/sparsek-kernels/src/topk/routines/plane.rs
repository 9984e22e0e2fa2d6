//! Rows in the registers of a plane (RTop-K, Fig. 3, with several rows to a plane, vector loads, a
//! guessed threshold, and a search on keys where the guess is wrong), or of all planes of a cube.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    guess::Normal,
    held::Choice,
    layout::RowLayout,
    members::Members,
    order::Order,
    output::Output,
    ragged::{Request, normal as normal_of},
    registers::{Loaded, TeamRow},
    team::{Shape, Team},
};
use crate::topk::{
    element::Element,
    options::{MethodKind, Search},
    search::{SearchParams, find_threshold},
};

/// What a plane kernel is compiled for, besides the dtypes and the vector sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlaneBlueprint {
    pub search: Search,
    pub shape: Shape,
    /// Whether rows are searched as floats first: all methods but `Precision`, floats of at most 32
    /// bits.
    pub floats: bool,
    /// Whether neighbouring elements of a row are `col_stride` apart instead of 1.
    pub strided: bool,
    pub values: bool,
    pub indices: bool,
    /// Whether the dense row is written, with everything but the members set to zero.
    pub dense: bool,
    /// Whether rows have lengths of their own.
    pub ragged: bool,
    /// Members of a row listed in shared memory before they are written, 0 to write from registers.
    pub listed: usize,
    /// Midpoints of early stop that are compared by codes.
    pub coded: u32,
    /// How listed members are put in order, none for index order.
    pub order: Option<Order>,
    /// Rows of a plane, 1 where a row takes several planes.
    pub rows: usize,
    /// Rows of a cube.
    pub cube_rows: usize,
}

impl PlaneBlueprint {
    /// Words of the list of a row.
    pub fn list_length(&self) -> usize {
        let spaces = self.order.map_or(0, |_| self.shape.plane_lanes() as usize);
        self.listed + spaces
    }
}

/// Values and indices of the members in index order, or by value, or the dense row. Of members, `V` values and `W`
/// indices are written at a time; `V` is `N` and `W` is 1 for the dense row; `elements` are those of `input`.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn plane_select<E: Element, I: Numeric, N: Size, V: Size, W: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    values: &mut [Vector<E, V>],
    indices: &mut [Vector<I, W>],
    lengths: ComptimeOption<&[u32]>,
    layout: RowLayout,
    params: SearchParams,
    normal: Normal,
    #[comptime] blueprint: PlaneBlueprint,
    #[define(I)] _index: ElemType,
) {
    let plane = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    let own = UNIT_POS_X / comptime!(blueprint.shape.lanes);
    let row = if comptime!(blueprint.shape.planes > 1) {
        CUBE_POS
    } else {
        plane * comptime!(blueprint.rows) + own as usize
    };
    // Whole planes leave, never a part of one; spare teams search the last row and write it again.
    if plane_all(row >= layout.rows) {
        terminate!();
    }
    let row = min(row, layout.rows - 1);
    select_row::<E, I, N, V, W>(
        input, elements, values, indices, lengths, row, layout, params, normal, blueprint,
    );
}

/// Selects from a row and writes its members.
#[cube]
#[allow(clippy::too_many_arguments)]
pub(super) fn select_row<E: Element, I: Numeric, N: Size, V: Size, W: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    values: &mut [Vector<E, V>],
    indices: &mut [Vector<I, W>],
    lengths: ComptimeOption<&[u32]>,
    row: usize,
    layout: RowLayout,
    params: SearchParams,
    normal: Normal,
    #[comptime] blueprint: PlaneBlueprint,
) {
    let request = Request::new(lengths, row, layout, params);
    let team = Team::of(request.layout.cols, blueprint.shape, blueprint.ragged);
    let loaded = Loaded::<E, N>::new(
        input,
        row * layout.row_stride,
        &layout,
        team,
        blueprint.strided,
        blueprint.search,
    );

    // Rows without elements search like the others of their plane, for nothing.
    let params = if comptime!(blueprint.ragged) {
        request.search()
    } else {
        params
    };
    let choice = if comptime!(blueprint.floats) {
        let singles = loaded.singles();
        let choice = if comptime!(blueprint.search.method == MethodKind::Exact) {
            let normal = if comptime!(blueprint.ragged) {
                normal_of(params.k, max(team.cols, 1))
            } else {
                normal
            };
            singles.guess(params.k, &normal, blueprint.search.largest)
        } else {
            singles.halve(params.k, params.max_iter, blueprint.coded)
        };
        let mut valid = choice.valid;
        if plane_any(choice.near_zero) {
            // Halves are read again: their bits would take registers until here.
            let unsure = if comptime!(size_of::<E>() < size_of::<f32>()) {
                let again = reload(input, row, &layout, team, blueprint);
                again.singles().has_unsure()
            } else {
                singles.has_unsure()
            };
            valid = valid && !(choice.near_zero && unsure);
        }
        Choice {
            bits: choice.bits,
            valid,
            near_zero: choice.near_zero,
        }
    } else {
        Choice {
            bits: 0u32.runtime(),
            valid: false.runtime(),
            near_zero: false.runtime(),
        }
    };
    // Shuffled with itself: a compiler would keep what it knows of each item until it is written.
    let bits = plane_shuffle(choice.bits, UNIT_POS_X);
    let found = if comptime!(blueprint.ragged) {
        plane_all(choice.valid || team.cols == 0)
    } else {
        plane_all(choice.valid)
    };
    if comptime!(blueprint.listed > 0) {
        let mut bits = bits;
        if !found {
            bits = if comptime!(blueprint.floats) {
                let again = reload(input, row, &layout, team, blueprint);
                by_keys(&again, &params, blueprint)
            } else {
                by_keys(&loaded, &params, blueprint)
            };
        }
        write::<E, I, N, V, W>(
            elements, values, indices, &loaded, bits, row, &request, blueprint,
        );
    } else if found {
        write::<E, I, N, V, W>(
            elements, values, indices, &loaded, bits, row, &request, blueprint,
        );
    } else {
        let bits = by_keys(&loaded, &params, blueprint);
        // Not before: elements would lie in registers beside their keys.
        let again = reload(input, row, &layout, team, blueprint);
        write::<E, I, N, V, W>(
            elements, values, indices, &again, bits, row, &request, blueprint,
        );
    }
}

/// Reads the row again: a shuffled row number keeps the compiler from holding the elements in registers
/// beside what is made of them.
#[cube]
fn reload<E: Element, N: Size>(
    input: &[Vector<E, N>],
    row: usize,
    layout: &RowLayout,
    team: Team,
    #[comptime] blueprint: PlaneBlueprint,
) -> Loaded<E, N> {
    let low = plane_shuffle(row as u32, UNIT_POS_X) as usize;
    Loaded::<E, N>::new(
        input,
        ((row - row as u32 as usize) + low) * layout.row_stride,
        layout,
        team,
        blueprint.strided,
        blueprint.search,
    )
}

/// The members by the search on keys.
#[cube]
fn by_keys<E: Element, N: Size>(
    loaded: &Loaded<E, N>,
    params: &SearchParams,
    #[comptime] blueprint: PlaneBlueprint,
) -> u32 {
    let keys = loaded.keys(blueprint.floats);
    let threshold = find_threshold::<E, TeamRow<E>>(&keys, params, blueprint.search);
    keys.held.choose(threshold.low, threshold.high, params.k)
}

/// Writes what the blueprint asks for.
#[cube]
#[allow(clippy::too_many_arguments)]
fn write<E: Element, I: Numeric, N: Size, V: Size, W: Size>(
    elements: &[E],
    values: &mut [Vector<E, V>],
    indices: &mut [Vector<I, W>],
    loaded: &Loaded<E, N>,
    bits: u32,
    row: usize,
    request: &Request,
    #[comptime] blueprint: PlaneBlueprint,
) {
    // Whoever writes all members whole rows at a time need not know their places.
    let ordered = comptime!(
        !(blueprint.listed > 0 && blueprint.shape.regroups())
            && (blueprint.indices
                || !blueprint.dense
                || blueprint.search.method == MethodKind::EarlyStop)
    );
    let bits = if comptime!(blueprint.ragged) {
        select(loaded.team.cols == 0, 0u32, bits)
    } else {
        bits
    };
    let members = Members::new(bits, loaded.team, ordered);
    let mut output = Output::new(values, indices, row, request, blueprint);
    if comptime!(blueprint.ragged) {
        output.leave(&loaded.team, request.slots);
    }
    if comptime!(blueprint.dense) {
        output.dense::<N>(loaded, &members);
    } else if comptime!(blueprint.listed > 0) {
        let length = comptime!(blueprint.list_length() * blueprint.cube_rows);
        let mut columns = Shared::<[u32]>::new_slice(length);
        output.gather(
            elements,
            row,
            &request.layout,
            &loaded.team,
            &members,
            &mut columns,
        );
    } else {
        output.scatter::<N>(loaded, &members);
    }
}
