//! Rows longer than the registers of a cube, read once: a threshold is found in a sample of the row, one
//! pass lists the columns that reach it, and the members are selected from the list.
//!
//! The sample decides only how long the list gets. Where it gets too long or too short, the row is
//! searched as by the cube routine.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::{ir::ElemType, prelude::*};

use super::{
    cube::select_row,
    guess::Normal,
    held::Held,
    layout::{RowLayout, element_offset},
    listing::list_reaching,
    members::Members,
    ragged::rough_logarithm,
    registers::TeamRow,
    team::{Shape, Team},
    unit::MemoryBlueprint,
};
use crate::topk::{
    element::{Element, ordered_key},
    options::Search,
    search::{SearchParams, find_threshold},
};

/// What a kernel that lists what reaches a threshold is compiled for, besides the dtypes and the vector size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamBlueprint {
    pub memory: MemoryBlueprint,
    /// Whether sample and list are searched as floats first: floats of at most 32 bits.
    pub floats: bool,
    /// The sample, or the delegates, in the registers of the cube.
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
    /// The element of the sample that is the threshold, counted from the greatest, from 1, ...
    pub rank: u32,
    /// ... or one of so many after it.
    pub slack: u32,
    /// What normal values would do in the sample.
    pub normal: Normal,
    /// Columns from a load of the sample to the next one.
    pub spacing: u32,
}

/// A threshold from the sample.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Floor<E: Element> {
    /// As a float, where one was found.
    pub value: f32,
    pub found: bool,
    /// Otherwise as a key.
    pub key: E::Key,
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
    let mut listed = 0u32;
    if comptime!(blueprint.floats) {
        if floor.found {
            listed = list_reaching::<E, N>(
                input,
                start,
                &layout,
                &floor,
                params.k,
                &mut columns,
                true,
                blueprint,
            );
        }
    }
    if !floor.found {
        listed = list_reaching::<E, N>(
            input,
            start,
            &layout,
            &floor,
            params.k,
            &mut columns,
            false,
            blueprint,
        );
    }
    take_or_search::<E, I>(
        elements, values, indices, row, layout, &params, &columns, listed, blueprint,
    );
}

/// What about as many elements of the row reach as the list has room for.
#[cube]
fn sampled_floor<E: Element, N: Size>(
    input: &[Vector<E, N>],
    start: usize,
    layout: &RowLayout,
    sampling: &Sampling,
    #[comptime] blueprint: StreamBlueprint,
) -> Floor<E> {
    let width = N::value().comptime();
    let shape = comptime!(blueprint.sample);
    let mut values = Sequence::<E>::new();
    #[unroll]
    for load in 0..comptime!(shape.loads) {
        // Far from each other: elements of neighbouring columns may be much alike.
        let place = UNIT_POS + comptime!(load as u32 * shape.lanes);
        let column = place * sampling.spacing;
        let offset = start + element_offset(column, layout, blueprint.memory.strided);
        let vector = input[offset / width];
        #[unroll]
        for i in 0..width {
            values.push(vector.extract(i));
        }
    }
    let sample = Items::<E> {
        values,
        team: Team::new(comptime!(shape.lanes * shape.items() as u32), shape),
        search: blueprint.memory.search,
    };
    let mut floor = Floor::<E> {
        value: 0.0f32.runtime(),
        found: false.runtime(),
        key: E::Key::min_value(),
    };
    if comptime!(blueprint.floats) {
        let wanted = f32::cast_from(sampling.rank);
        let slack = f32::cast_from(sampling.slack);
        let level = sample.singles().rough(wanted, slack, &sampling.normal);
        floor.value = level.value;
        floor.found = plane_all(level.settled);
    }
    if !floor.found {
        let params = SearchParams {
            k: sampling.rank,
            max_iter: 0u32.runtime(),
            eps: 0.0f32.runtime(),
        };
        let keys = sample.keys();
        floor.key = find_threshold::<E, TeamRow<E>>(&keys, &params, blueprint.memory.search).low;
    }
    floor
}

/// Elements in registers, of the sample or the list.
#[derive(CubeType)]
struct Items<E: Element> {
    values: Sequence<E>,
    team: Team,
    #[cube(comptime)]
    search: Search,
}

#[cube]
impl<E: Element> Items<E> {
    fn singles(&self) -> Held<f32> {
        let mut items = Sequence::<f32>::new();
        #[unroll]
        for item in 0..self.values.len() {
            let single = E::single(self.values[item]);
            let value = if comptime!(self.search.largest) {
                single
            } else {
                -single
            };
            items.push(select(self.team.holds(item), value, f32::NEG_INFINITY));
        }
        Held::<f32>::new(items, self.team)
    }

    fn keys(&self) -> TeamRow<E> {
        let mut keys = Sequence::<E::Key>::new();
        #[unroll]
        for item in 0..self.values.len() {
            let key = ordered_key::<E>(self.values[item], self.search.largest);
            keys.push(select(self.team.holds(item), key, E::Key::min_value()));
        }
        TeamRow::<E> {
            held: Held::<E::Key>::new(keys, self.team),
            search: self.search,
        }
    }

    /// The k greatest, a bit each.
    fn choose(&self, params: &SearchParams, #[comptime] floats: bool) -> u32 {
        let mut bits = 0u32;
        let mut found = false.runtime();
        if comptime!(floats) {
            // What reaches a threshold in the tail thins out as exponential values do.
            let count = f32::cast_from(self.team.cols);
            let wanted = f32::cast_from(params.k);
            let normal = Normal {
                quantile: rough_logarithm(count / wanted) - 1.0,
                slope: 1.0 / wanted,
                inverse: 1.0 / count,
                deviation: f32::sqrt(wanted - wanted * wanted / count),
            };
            let choice = self.singles().guess(params.k, &normal, self.search.largest);
            bits = choice.bits;
            found = plane_all(choice.valid);
            if plane_any(choice.near_zero) {
                found = found && !self.singles().has_unsure();
            }
        }
        if !found {
            let keys = self.keys();
            let threshold = find_threshold::<E, TeamRow<E>>(&keys, params, self.search);
            bits = keys.held.choose(threshold.low, threshold.high, params.k);
        }
        bits
    }
}

/// Selects the members from the list; where it has fewer than k columns, or has no room for all, from the row.
#[cube]
#[allow(clippy::too_many_arguments)]
pub(super) fn take_or_search<E: Element, I: Numeric>(
    elements: &[E],
    values: &mut [E],
    indices: &mut [I],
    row: usize,
    layout: RowLayout,
    params: &SearchParams,
    columns: &Shared<[u32]>,
    listed: u32,
    #[comptime] blueprint: StreamBlueprint,
) {
    if listed >= params.k && listed <= comptime!(blueprint.capacity() as u32) {
        take_listed::<E, I>(
            elements, values, indices, row, &layout, params, columns, listed, blueprint,
        );
    } else {
        select_row::<E, I>(
            elements,
            values,
            indices,
            row,
            layout,
            params,
            blueprint.memory,
            comptime!(blueprint.list.lanes),
        );
    }
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
    let mut items = Sequence::<E>::new();
    #[unroll]
    for load in 0..comptime!(blueprint.list.loads) {
        let mut value = E::from_int(0);
        if team.loads(load) {
            let column = columns[team.column(load) as usize];
            value = elements[start + element_offset(column, layout, memory.strided)];
        }
        items.push(value);
    }
    let list = Items::<E> {
        values: items,
        team,
        search: memory.search,
    };
    let bits = list.choose(params, blueprint.floats);
    let members = Members::new(bits, team, true);
    #[unroll]
    for load in 0..comptime!(blueprint.list.loads) {
        if members.holds(load) {
            let column = columns[team.column(load) as usize];
            let target = row * params.k as usize + members.start(load) as usize;
            if comptime!(memory.dense) {
                values[row * layout.cols as usize + column as usize] = list.values[load];
            } else if comptime!(memory.values) {
                values[target] = list.values[load];
            }
            if comptime!(memory.indices) {
                indices[target] = I::cast_from(column);
            }
        }
    }
}
