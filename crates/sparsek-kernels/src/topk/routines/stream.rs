//! Rows longer than the registers of a cube, read once: a threshold is found in a sample of the row, one
//! pass lists the columns that reach it, and the members are selected from the list.
//!
//! The sample decides only how long the list gets. Where it gets too long or too short, the row is
//! searched as by the cube routine.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    cube::select_row,
    held::Held,
    layout::{RowLayout, element_offset},
    listing::list_reaching,
    members::Members,
    registers::TeamRow,
    team::{Shape, Team},
    unit::MemoryBlueprint,
};
use crate::topk::{
    element::{Element, ordered_key},
    search::{SearchParams, find_threshold},
};

/// What a stream kernel is compiled for, besides the dtypes and the vector size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamBlueprint {
    pub memory: MemoryBlueprint,
    /// The sample in the registers of the cube.
    pub sample: Shape,
    /// The part of the row that a plane reads at a time.
    pub part: Shape,
    /// The list in the registers of the cube.
    pub list: Shape,
}

impl StreamBlueprint {
    /// Columns that the list holds.
    pub fn capacity(&self) -> usize {
        self.list.lanes as usize * self.list.loads
    }
}

/// How a row is sampled.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Sampling {
    /// The element of the sample that is the threshold, counted from the greatest, from 1.
    pub rank: u32,
    /// Columns from a plane's load of the sample to the next one.
    pub spacing: u32,
}

/// Values and indices of the members in index order; or the members in their places of a dense row that
/// is zero. `elements` is the input again.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn stream_select<E: Element, I: Numeric, N: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    values: &mut [E],
    indices: &mut [I],
    layout: RowLayout,
    params: SearchParams,
    sampling: Sampling,
    #[comptime] blueprint: StreamBlueprint,
    #[define(I)] _index: ElemType,
) {
    let row = CUBE_POS;
    if row >= layout.rows {
        terminate!();
    }
    let start = row * layout.row_stride;
    let floor = sampled_floor::<E, N>(input, start, &layout, &sampling, blueprint);
    let mut columns = Shared::<[u32]>::new_slice(comptime!(blueprint.capacity()));
    let listed = list_reaching::<E, N>(
        input,
        start,
        &layout,
        floor,
        params.k,
        &mut columns,
        blueprint,
    );
    if listed >= params.k && listed <= comptime!(blueprint.capacity() as u32) {
        take_listed::<E, I>(
            elements, values, indices, row, &layout, &params, &columns, listed, blueprint,
        );
    } else {
        select_row::<E, I>(
            elements,
            values,
            indices,
            row,
            layout,
            &params,
            blueprint.memory,
            comptime!(blueprint.list.lanes),
        );
    }
}

/// A key that about as many elements of the row reach as the list has room for.
#[cube]
fn sampled_floor<E: Element, N: Size>(
    input: &[Vector<E, N>],
    start: usize,
    layout: &RowLayout,
    sampling: &Sampling,
    #[comptime] blueprint: StreamBlueprint,
) -> E::Key {
    let width = N::value().comptime();
    let shape = comptime!(blueprint.sample);
    let mut keys = Sequence::<E::Key>::new();
    #[unroll]
    for load in 0..comptime!(shape.loads) {
        let chunk = UNIT_POS_Y + comptime!(load as u32 * shape.planes);
        let column = chunk * sampling.spacing + UNIT_POS_X * comptime!(width as u32);
        let offset = start + element_offset(column, layout, blueprint.memory.strided);
        let vector = input[offset / width];
        #[unroll]
        for i in 0..width {
            keys.push(ordered_key::<E>(
                vector.extract(i),
                blueprint.memory.search.largest,
            ));
        }
    }
    let sample = TeamRow::<E> {
        held: Held::<E::Key> {
            items: keys,
            team: Team::new(comptime!(shape.lanes * shape.items() as u32), shape),
        },
        search: blueprint.memory.search,
    };
    let params = SearchParams {
        k: sampling.rank,
        max_iter: 0u32.runtime(),
        eps: 0.0f32.runtime(),
    };
    find_threshold::<E, TeamRow<E>>(&sample, &params, blueprint.memory.search).low
}

/// Selects the members from the list and writes them.
#[cube]
#[allow(clippy::too_many_arguments)]
fn take_listed<E: Element, I: Numeric>(
    elements: &[E],
    values: &mut [E],
    indices: &mut [I],
    row: usize,
    layout: &RowLayout,
    params: &SearchParams,
    columns: &Shared<[u32]>,
    listed: u32,
    #[comptime] blueprint: StreamBlueprint,
) {
    let start = row * layout.row_stride;
    let memory = comptime!(blueprint.memory);
    let team = Team::new(listed, blueprint.list);
    let mut keys = Sequence::<E::Key>::new();
    #[unroll]
    for load in 0..comptime!(blueprint.list.loads) {
        let mut key = E::Key::min_value();
        if team.loads(load) {
            let column = columns[team.column(load) as usize];
            let offset = start + element_offset(column, layout, memory.strided);
            key = ordered_key::<E>(elements[offset], memory.search.largest);
        }
        keys.push(key);
    }
    let list = TeamRow::<E> {
        held: Held::<E::Key> { items: keys, team },
        search: memory.search,
    };
    let threshold = find_threshold::<E, TeamRow<E>>(&list, params, memory.search);
    let bits = list.held.choose(threshold.low, threshold.high, params.k);
    let members = Members::new(bits, team, true);
    #[unroll]
    for load in 0..comptime!(blueprint.list.loads) {
        if members.holds(load) {
            let column = columns[team.column(load) as usize];
            let target = row * params.k as usize + members.start(load) as usize;
            let value = elements[start + element_offset(column, layout, memory.strided)];
            if comptime!(memory.dense) {
                values[row * layout.cols as usize + column as usize] = value;
            } else if comptime!(memory.values) {
                values[target] = value;
            }
            if comptime!(memory.indices) {
                indices[target] = I::cast_from(column);
            }
        }
    }
}
