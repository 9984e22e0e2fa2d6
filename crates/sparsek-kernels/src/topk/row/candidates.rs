//! Selects from columns that reach a threshold, else as `cube`.

#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::{
    config::CandidateConfig,
    cube::select_in_memory,
    layout::{MemoryOutput, RowElements},
    loaded::LoadedRow,
};
use crate::{
    primitives::{approx::approx_ln, bit_set::SelectedItems, team::Team},
    topk::{
        key::Element,
        threshold::{
            normal::{Normal, normal_on_device},
            search::SearchParams,
        },
    },
};

type Single = Const<1>;

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
    let (first, layout) = (request.first, request.layout);
    let elements = RowElements::new(elements, output.row, first, layout, config.memory);
    let team = Team::new(listed, config.list);
    let mut vectors = Sequence::<Vector<E, Single>>::new();
    #[unroll]
    for load in 0..comptime!(config.list.loads) {
        let mut value = E::from_int(0);
        if team.loads(load) {
            value = elements.value(columns[team.column(load) as usize]);
        }
        vectors.push(Vector::new(value));
    }
    let list = LoadedRow::<E, Single> { vectors, team, search: config.memory.search };
    let whole = if comptime!(config.memory.ragged) {
        listed == request.layout.cols
    } else {
        false.runtime()
    };
    let bits = select_in_list(&list, &request.params, whole, config);
    let selected = SelectedItems::new(bits, team, true);
    #[unroll]
    for load in 0..comptime!(config.list.loads) {
        if selected.holds(load) {
            let column = columns[team.column(load) as usize];
            if comptime!(config.memory.dense) {
                output.set_dense(column, list.value(load));
            }
            output.set(selected.start(load), list.value(load), column);
        }
    }
}

#[cube]
fn select_in_list<E: Element>(
    list: &LoadedRow<E, Single>,
    params: &SearchParams,
    whole: bool,
    #[comptime] config: CandidateConfig,
) -> u32 {
    let mut bits = 0u32;
    let mut found = false.runtime();
    if comptime!(config.floats) {
        // Tail values above a threshold thin out exponentially.
        let count = f32::cast_from(list.team.cols);
        let wanted = f32::cast_from(params.k);
        let mut normal = Normal {
            quantile: approx_ln(count / wanted) - 1.0,
            slope: 1.0 / wanted,
            inverse: 1.0 / count,
            deviation: f32::sqrt(wanted - wanted * wanted / count),
        };
        if comptime!(config.memory.ragged) {
            let of_row = normal_on_device(params.k, list.team.cols);
            normal.quantile = select(whole, of_row.quantile, normal.quantile);
            normal.slope = select(whole, of_row.slope, normal.slope);
        }
        let guess = list.singles().guess(params.k, &normal, list.search.largest);
        bits = guess.bits;
        found = plane_all(guess.valid);
        if plane_any(guess.near_zero) {
            found = found && !list.singles().has_unsure();
        }
    }
    if !found {
        bits = list.keys(false).select(params);
    }
    bits
}
