//! Rows of halves, twice as many to a plane as [`super::plane`] holds: where all are found among [pairs](Pairs), else
//! that routine's way, one half of the rows after the other.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    guess::Normal,
    layout::RowLayout,
    output::Output,
    pairs::Pairs,
    plane::{PlaneBlueprint, select_row},
    ragged::Request,
    strip::Strip,
    team::{Shape, Team},
};
use crate::topk::{element::Element, search::SearchParams};

impl Shape {
    /// How a row lies in half of the units, for each of two strips of it.
    pub fn of_pairs(self) -> Shape {
        Shape {
            lanes: self.lanes / 2,
            ..self
        }
    }

    /// Whether rows of halves in this shape can be held as pairs.
    pub fn pairs(&self) -> bool {
        self.exact_fit && self.of_pairs().regroups() && self.width == 8 && self.loads == 4
    }
}

impl PlaneBlueprint {
    fn of_pairs(self) -> PlaneBlueprint {
        PlaneBlueprint {
            shape: self.shape.of_pairs(),
            rows: 2 * self.rows,
            cube_rows: 2 * self.cube_rows,
            ..self
        }
    }
}

/// Values and indices of the members in index order, or by value. `words` are the elements, `F` their dtype.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn half_select<E: Element, F: Float, I: Numeric, N: Size, V: Size, W: Size>(
    words: &[Vector<u32, Const<4>>],
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
    let pairs = comptime!(blueprint.of_pairs());
    let plane = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    let first = plane * comptime!(pairs.rows);
    let row = first + (UNIT_POS_X / comptime!(pairs.shape.lanes)) as usize;
    // Whole planes leave, never a part of one; spare teams search the last row and write it again.
    if plane_all(row >= layout.rows) {
        terminate!();
    }
    let row = min(row, layout.rows - 1);
    let team = Team::new(layout.cols, comptime!(pairs.shape));
    let held = Pairs::<F>::new(
        words,
        row * layout.row_stride / 8,
        team,
        comptime!(blueprint.search.largest),
    );
    let choice = held.guess(params.k, &normal);
    if plane_all(choice.valid) {
        let request = Request::whole(layout, &params);
        let mut output =
            Output::<E, I, V, W>::new(values, indices, row, &request, comptime!(pairs));
        let length = comptime!(pairs.list_length() * pairs.cube_rows);
        let mut columns = Shared::<[u32]>::new_slice(length);
        let list = output.list_start(&team);
        let strip = Strip::new(choice.bits.first, &team);
        strip.list(&mut columns, list, params.k, false);
        let before = team.sum::<u32>(choice.bits.first.count_ones());
        let strip = Strip::new(choice.bits.second, &team);
        let strip = Strip {
            bits: strip.bits,
            column: strip.column + comptime!(pairs.shape.lanes * 32),
            position: strip.position + before,
        };
        strip.list(&mut columns, list, params.k, false);
        output.fetch(elements, row, &request.layout, &team, list, &mut columns);
    } else {
        for half in 0..2usize {
            let row = first
                + half * comptime!(blueprint.rows)
                + (UNIT_POS_X / comptime!(blueprint.shape.lanes)) as usize;
            select_row::<E, I, N, V, W>(
                input,
                elements,
                values,
                indices,
                lengths,
                min(row, layout.rows - 1),
                layout,
                params,
                normal,
                blueprint,
            );
        }
    }
}
