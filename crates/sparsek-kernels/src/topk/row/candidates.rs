//! Selects from a list of the columns at or above a threshold; as `cube` does if the list is too
//! short or overflows.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::{
    config::CandidateConfig,
    cube::select_in_memory,
    layout::{MemoryOutput, RowElements},
};
use crate::{
    primitives::{approx::approx_ln, bit_set::SelectedItems, team::Team},
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
            items.push(select(self.team.holds(item), value, f32::NEG_INFINITY));
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
pub(super) fn select_from_candidates<E: Element, I: Numeric>(
    elements: &[E],
    output: &mut MemoryOutput<E, I>,
    columns: &Shared<[u32]>,
    listed: u32,
    #[comptime] config: CandidateConfig,
) {
    if listed >= output.request.params.k && listed <= comptime!(config.capacity() as u32) {
        write_selected::<E, I>(elements, output, columns, listed, config);
    } else {
        select_in_memory::<E, I>(elements, output, comptime!(config.list.lanes));
    }
}

#[cube]
fn write_selected<E: Element, I: Numeric>(
    elements: &[E],
    output: &mut MemoryOutput<E, I>,
    columns: &Shared<[u32]>,
    listed: u32,
    #[comptime] config: CandidateConfig,
) {
    let request = output.request;
    let elements = RowElements::new(elements, output.row, request.layout, config.memory);
    let team = Team::new(listed, config.list);
    let mut items = Sequence::<E>::new();
    #[unroll]
    for load in 0..comptime!(config.list.loads) {
        let mut value = E::from_int(0);
        if team.loads(load) {
            value = elements.value(columns[team.column(load) as usize]);
        }
        items.push(value);
    }
    let list = RegisterItems::<E> { values: items, team, search: config.memory.search };
    let bits = list.select(&request.params, config.floats);
    let selected = SelectedItems::new(bits, team, true);
    #[unroll]
    for load in 0..comptime!(config.list.loads) {
        if selected.holds(load) {
            let column = columns[team.column(load) as usize];
            if comptime!(config.memory.dense) {
                output.set_dense(column, list.values[load]);
            }
            output.set(selected.start(load), list.values[load], I::cast_from(column));
        }
    }
}
