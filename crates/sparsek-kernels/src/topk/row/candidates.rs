//! Selects from a list of the columns at or above a threshold; as `cube` does if the list is too
//! short or overflows.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::{
    config::CandidateConfig,
    cube::select_whole_row,
    layout::{RowLayout, element_offset},
};
use crate::{
    primitives::{approx::approx_ln, bit_set::SelectedItems, infinity::infinity, team::Team},
    topk::{
        key::{Element, ordered_key},
        options::SearchConfig,
        threshold::{
            normal::Normal,
            register_row::{KeyRow, RegisterRow},
            search::{SearchParams, find_threshold},
        },
    },
};

#[derive(CubeType)]
pub(super) struct RegisterItems<E: Element> {
    pub values: Sequence<E>,
    pub team: Team,
    #[cube(comptime)]
    pub search: SearchConfig,
}

#[cube]
impl<E: Element> RegisterItems<E> {
    pub fn singles(&self) -> RegisterRow<f32> {
        let mut items = Sequence::<f32>::new();
        #[unroll]
        for item in 0..self.values.len() {
            let single = E::single(self.values[item]);
            let value = if comptime!(self.search.largest) { single } else { -single };
            items.push(select(self.team.holds(item), value, -infinity::<f32>()));
        }
        RegisterRow::<f32>::new(items, self.team)
    }

    pub fn keys(&self) -> KeyRow<E> {
        let mut keys = Sequence::<E::Key>::new();
        #[unroll]
        for item in 0..self.values.len() {
            let key = ordered_key::<E>(self.values[item], self.search.largest);
            keys.push(select(self.team.holds(item), key, E::Key::min_value()));
        }
        KeyRow::<E> { row: RegisterRow::<E::Key>::new(keys, self.team), search: self.search }
    }

    fn select(&self, params: &SearchParams, #[comptime] floats: bool) -> u32 {
        let mut bits = 0u32;
        let mut found = false.runtime();
        if comptime!(floats) {
            // Above a threshold in the tail, values thin out like exponential ones.
            let count = f32::cast_from(self.team.cols);
            let wanted = f32::cast_from(params.k);
            let normal = Normal {
                quantile: approx_ln(count / wanted) - 1.0,
                slope: 1.0 / wanted,
                inverse: 1.0 / count,
                deviation: f32::sqrt(wanted - wanted * wanted / count),
            };
            let guess = self.singles().guess(params.k, &normal, self.search.largest);
            bits = guess.bits;
            found = plane_all(guess.valid);
            if plane_any(guess.near_zero) {
                found = found && !self.singles().has_unsure();
            }
        }
        if !found {
            let keys = self.keys();
            let threshold = find_threshold::<E, KeyRow<E>>(&keys, params, self.search);
            bits = keys.row.select_between(threshold.low, threshold.high, params.k);
        }
        bits
    }
}

#[cube]
#[allow(clippy::too_many_arguments)]
pub(super) fn select_from_candidates<E: Element, I: Numeric>(
    elements: &[E],
    values: &mut [E],
    indices: &mut [I],
    row: usize,
    layout: RowLayout,
    params: &SearchParams,
    columns: &Shared<[u32]>,
    listed: u32,
    #[comptime] config: CandidateConfig,
) {
    if listed >= params.k && listed <= comptime!(config.capacity() as u32) {
        write_selected::<E, I>(
            elements, values, indices, row, &layout, params, columns, listed, config,
        );
    } else {
        select_whole_row::<E, I>(
            elements,
            values,
            indices,
            row,
            layout,
            params,
            config.memory,
            comptime!(config.list.lanes),
        );
    }
}

#[cube]
#[allow(clippy::too_many_arguments)]
fn write_selected<E: Element, I: Numeric>(
    elements: &[E],
    values: &mut [E],
    indices: &mut [I],
    row: usize,
    layout: &RowLayout,
    params: &SearchParams,
    columns: &Shared<[u32]>,
    listed: u32,
    #[comptime] config: CandidateConfig,
) {
    let start = row * layout.row_stride;
    let memory = comptime!(config.memory);
    let team = Team::new(listed, config.list);
    let mut items = Sequence::<E>::new();
    #[unroll]
    for load in 0..comptime!(config.list.loads) {
        let mut value = E::from_int(0);
        if team.loads(load) {
            let column = columns[team.column(load) as usize];
            value = elements[start + element_offset(column, layout, memory.strided)];
        }
        items.push(value);
    }
    let list = RegisterItems::<E> { values: items, team, search: memory.search };
    let bits = list.select(params, config.floats);
    let selected = SelectedItems::new(bits, team, true);
    #[unroll]
    for load in 0..comptime!(config.list.loads) {
        if selected.holds(load) {
            let column = columns[team.column(load) as usize];
            let target = row * params.k as usize + selected.start(load) as usize;
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
