//! Writes a register row: directly, dense, or through a coalescing list in shared memory.

#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::{
    config::RegisterConfig,
    layout::{RowRequest, element_offset, missing_index, row_start},
    loaded::LoadedRow,
    sort_in_registers::{SelectedList, spaced},
};
use crate::{
    primitives::{
        bit_set::{ColumnBits, SelectedItems},
        team::Team,
    },
    topk::{key::Element, options::MethodKind},
};

#[derive(CubeType)]
pub(super) struct RowOutput<'a, E: Element, I: Numeric, V: Size, W: Size> {
    values: &'a mut [Vector<E, V>],
    indices: &'a mut [Vector<I, W>],
    k: u32,
    cols: u32,
    first: u32,
    #[cube(comptime)]
    config: RegisterConfig,
}

#[cube]
impl<'a, E: Element, I: Numeric, V: Size, W: Size> RowOutput<'a, E, I, V, W> {
    pub fn new(
        values: &'a mut [Vector<E, V>],
        indices: &'a mut [Vector<I, W>],
        row: usize,
        request: &RowRequest,
        #[comptime] config: RegisterConfig,
    ) -> RowOutput<'a, E, I, V, W> {
        let selected = request.slots as usize / W::value().comptime();
        let length = if comptime!(config.dense) {
            request.cols as usize / comptime!(config.shape.width)
        } else {
            selected
        };
        RowOutput::<'a, E, I, V, W> {
            values: &mut values[row * length..row * length + length],
            indices: &mut indices[row * selected..row * selected + selected],
            k: request.params.k,
            cols: request.cols,
            first: request.first,
            config,
        }
    }

    fn is_written(
        &self,
        selected: &SelectedItems,
        #[comptime] item: usize,
        position: u32,
        end: u32,
    ) -> bool {
        let is_selected = selected.holds(item);
        if comptime!(self.config.search.method == MethodKind::EarlyStop) {
            is_selected && position < end
        } else {
            is_selected
        }
    }

    pub fn pad(&mut self, team: &Team, slots: u32) {
        if comptime!(self.config.dense && self.config.ragged) {
            let mut column = team.lane;
            while column < self.first {
                self.values[column as usize] = Vector::<E, V>::zeroed();
                column += comptime!(self.config.shape.lanes);
            }
        }
        let mut slot = self.k + team.lane;
        while slot < slots {
            if comptime!(self.config.values) {
                self.values[slot as usize] = Vector::<E, V>::zeroed();
            }
            if comptime!(self.config.indices) {
                self.indices[slot as usize] = Vector::<I, W>::new(missing_index::<I>());
            }
            slot += comptime!(self.config.shape.lanes);
        }
    }

    fn index(&self, column: u32) -> I {
        I::cast_from(self.first + column)
    }

    fn covers(&self, team: &Team, #[comptime] load: usize) -> bool {
        if comptime!(self.config.ragged) {
            self.first + team.column(load) < self.cols
        } else {
            team.loads(load)
        }
    }

    pub fn write_from_registers<N: Size>(
        &mut self,
        loaded: &LoadedRow<E, N>,
        selected: &SelectedItems,
    ) {
        let width = comptime!(self.config.shape.width);
        #[unroll]
        for load in 0..comptime!(self.config.shape.loads) {
            let mut position = selected.start(load);
            #[unroll]
            for i in 0..width {
                let item = comptime!(load * width + i);
                if self.is_written(selected, item, position, self.k) {
                    let target = position as usize;
                    if comptime!(self.config.values) {
                        self.values[target] = Vector::<E, V>::new(loaded.value(item));
                    }
                    self.indices[target] =
                        Vector::<I, W>::new(self.index(loaded.team.item_column(item)));
                    position += 1;
                }
            }
        }
    }

    pub fn write_dense<N: Size>(&mut self, loaded: &LoadedRow<E, N>, selected: &SelectedItems) {
        let width = comptime!(self.config.shape.width);
        #[unroll]
        for load in 0..comptime!(self.config.shape.loads) {
            let mut position = selected.start(load);
            let mut kept = Vector::<E, V>::zeroed();
            #[unroll]
            for i in 0..width {
                let item = comptime!(load * width + i);
                let taken = self.is_written(selected, item, position, self.k);
                kept.insert(i, select(taken, loaded.value(item), E::from_int(0)));
                if taken {
                    if comptime!(self.config.indices) {
                        self.indices[position as usize] =
                            Vector::<I, W>::new(self.index(loaded.team.item_column(item)));
                    }
                    position += 1;
                }
            }
            if self.covers(&loaded.team, load) {
                let column = self.first + loaded.team.column(load);
                self.values[column as usize / width] = kept;
            }
        }
    }

    pub fn list_start(&self, team: &Team) -> u32 {
        let own = (UNIT_POS - team.lane) / comptime!(self.config.shape.lanes);
        own * comptime!(self.config.list_length() as u32)
    }

    /// Returns the list's start.
    pub fn list(&self, team: &Team, selected: &SelectedItems, columns: &mut Shared<[u32]>) -> u32 {
        let width = comptime!(self.config.shape.width);
        let list = self.list_start(team);
        if comptime!(self.config.shape.can_transpose()) {
            let cut = comptime!(self.config.search.method == MethodKind::EarlyStop);
            ColumnBits::new(selected.bits, team).list(columns, list, self.k, cut);
        } else {
            #[unroll]
            for load in 0..comptime!(self.config.shape.loads) {
                let mut position = selected.start(load) + list;
                #[unroll]
                for i in 0..width {
                    let item = comptime!(load * width + i);
                    if self.is_written(selected, item, position, list + self.k) {
                        columns[position as usize] = team.item_column(item);
                        position += 1;
                    }
                }
            }
        }
        list
    }

    pub fn write_list(
        &mut self,
        elements: &[E],
        row: usize,
        request: &RowRequest,
        team: &Team,
        list: u32,
        columns: &mut Shared<[u32]>,
    ) {
        let layout = request.layout;
        let start = row_start(row, request.first, &layout, self.config.strided);
        if comptime!(self.config.shape.planes > 1) {
            sync_cube();
        } else {
            sync_plane();
        }
        let order = comptime!(self.config.order);
        if comptime!(order.is_some()) {
            let order = comptime!(order.unwrap());
            let selected = SelectedList::new(list, self.k, start, layout, self.config, order);
            if comptime!(self.config.shape.planes > 1) {
                if UNIT_POS_Y == 0 {
                    selected.sort(elements, columns);
                }
                sync_cube();
            } else {
                selected.sort(elements, columns);
            }
        }
        let per_write = W::value().comptime();
        let mut first = team.lane * comptime!(per_write as u32);
        while first < self.k {
            let mut values = Vector::<E, V>::zeroed();
            let mut indices = Vector::<I, W>::zeroed();
            #[unroll]
            for i in 0..per_write {
                let slot = first + comptime!(i as u32);
                let place = if comptime!(order.is_some()) {
                    spaced(slot, comptime!(order.unwrap()))
                } else {
                    slot
                };
                let column = columns[(list + place) as usize];
                if comptime!(self.config.values) {
                    let offset = start + element_offset(column, &layout, self.config.strided);
                    values.insert(i, elements[offset]);
                }
                indices.insert(i, self.index(column));
            }
            let target = first as usize / per_write;
            if comptime!(self.config.values) {
                self.values[target] = values;
            }
            self.indices[target] = indices;
            first += comptime!(per_write as u32 * self.config.shape.lanes);
        }
    }
}
