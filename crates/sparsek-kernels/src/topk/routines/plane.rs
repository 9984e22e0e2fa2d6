//! Rows in the registers of a plane (RTop-K, Fig. 3, with several rows to a plane, vector loads, a
//! guessed threshold, and a search on keys where the guess is wrong), or of all planes of a cube.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    guess::Normal,
    layout::RowLayout,
    members::{Members, Placed, Reached},
    output::Output,
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
    /// Members of a row listed in shared memory before they are written, 0 to write from registers.
    pub listed: usize,
    /// Rows of a plane, 1 where a row takes several planes.
    pub rows: usize,
    /// Rows of a cube.
    pub cube_rows: usize,
}

/// Values and indices of the members in index order, or the dense row. `V` is 1 for the members and
/// `N` for the dense row.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn plane_select<E: Element, I: Numeric, N: Size, V: Size>(
    input: &[Vector<E, N>],
    values: &mut [Vector<E, V>],
    indices: &mut [I],
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
    let team = Team::new(layout.cols, blueprint.shape);
    let loaded = Loaded::<E, N>::new(
        input,
        row,
        &layout,
        team,
        blueprint.strided,
        blueprint.search,
    );

    let mut done = false;
    if comptime!(blueprint.floats) {
        let exact = comptime!(blueprint.search.method == MethodKind::Exact);
        let singles = loaded.values();
        let level = if comptime!(exact) {
            singles.guess(params.k, &normal)
        } else {
            singles.halve(params.k, params.max_iter)
        };
        // Of those that reach a threshold of Algorithm 2 only the first k are wanted.
        let ordered = comptime!(!(exact && blueprint.dense && !blueprint.indices));
        let reached = Reached::new(singles, level, params.k, exact, ordered);
        if reached.hold() {
            write::<E, I, N, V, Reached>(
                input, values, indices, &loaded, &reached, row, &layout, params.k, blueprint,
            );
            done = true.runtime();
        }
    }
    if !done {
        let keys = loaded.keys();
        let threshold = find_threshold::<E, TeamRow<E>>(&keys, &params, blueprint.search);
        let placed = Placed::new(keys, threshold, params.k);
        if comptime!(blueprint.listed > 0) {
            write::<E, I, N, V, Placed<E>>(
                input, values, indices, &loaded, &placed, row, &layout, params.k, blueprint,
            );
        } else {
            // Read again: a shuffled row number keeps the compiler from holding the elements in
            // registers beside their keys until here.
            let low = plane_shuffle(row as u32, UNIT_POS_X) as usize;
            let again = Loaded::<E, N>::new(
                input,
                (row - row as u32 as usize) + low,
                &layout,
                team,
                blueprint.strided,
                blueprint.search,
            );
            write::<E, I, N, V, Placed<E>>(
                input, values, indices, &again, &placed, row, &layout, params.k, blueprint,
            );
        }
    }
}

/// Writes what the blueprint asks for.
#[cube]
#[allow(clippy::too_many_arguments)]
fn write<E: Element, I: Numeric, N: Size, V: Size, M: Members>(
    input: &[Vector<E, N>],
    values: &mut [Vector<E, V>],
    indices: &mut [I],
    loaded: &Loaded<E, N>,
    members: &M,
    row: usize,
    layout: &RowLayout,
    k: u32,
    #[comptime] blueprint: PlaneBlueprint,
) {
    let mut output = Output::new(values, indices, row, layout, k, blueprint);
    if comptime!(blueprint.dense) {
        output.dense::<N, M>(loaded, members);
    } else if comptime!(blueprint.listed > 0) {
        let length = comptime!(blueprint.listed * blueprint.cube_rows);
        let mut columns = Shared::<[u32]>::new_slice(length);
        output.gather::<N, M>(input, row, layout, &loaded.team, members, &mut columns);
    } else {
        output.scatter::<N, M>(loaded, members);
    }
}
