//! Where the members of a row in registers go.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::{
    layout::{RowLayout, element_offset},
    members::Members,
    order::{List, spaced},
    plane::PlaneBlueprint,
    ragged::{Request, missing},
    registers::Loaded,
    strip::Strip,
    team::Team,
};
use crate::topk::{element::Element, options::MethodKind};

/// What is written of a row. Both slices begin at the row.
#[derive(CubeType)]
pub(super) struct Output<'a, E: Element, I: Numeric, V: Size, W: Size> {
    /// The members, or the dense row.
    values: &'a mut [Vector<E, V>],
    indices: &'a mut [Vector<I, W>],
    k: u32,
    /// Elements of a dense row.
    cols: u32,
    #[cube(comptime)]
    blueprint: PlaneBlueprint,
}

#[cube]
impl<'a, E: Element, I: Numeric, V: Size, W: Size> Output<'a, E, I, V, W> {
    pub fn new(
        values: &'a mut [Vector<E, V>],
        indices: &'a mut [Vector<I, W>],
        row: usize,
        request: &Request,
        #[comptime] blueprint: PlaneBlueprint,
    ) -> Output<'a, E, I, V, W> {
        let members = request.slots as usize / W::value().comptime();
        let length = if comptime!(blueprint.dense) {
            request.cols as usize / comptime!(blueprint.shape.width)
        } else {
            members
        };
        Output::<'a, E, I, V, W> {
            values: &mut values[row * length..row * length + length],
            indices: &mut indices[row * members..row * members + members],
            k: request.params.k,
            cols: request.cols,
            blueprint,
        }
    }

    /// Whether an item is written. Of those that reach a threshold of Algorithm 2 only the first k are.
    fn takes(&self, members: &Members, #[comptime] item: usize, position: u32, end: u32) -> bool {
        let member = members.holds(item);
        if comptime!(self.blueprint.search.method == MethodKind::EarlyStop) {
            member && position < end
        } else {
            member
        }
    }

    /// Marks the slots that get no member.
    pub fn leave(&mut self, team: &Team, slots: u32) {
        let mut slot = self.k + team.lane;
        while slot < slots {
            if comptime!(self.blueprint.values) {
                self.values[slot as usize] = Vector::<E, V>::zeroed();
            }
            if comptime!(self.blueprint.indices) {
                self.indices[slot as usize] = Vector::<I, W>::new(missing::<I>());
            }
            slot += comptime!(self.blueprint.shape.lanes);
        }
    }

    /// Whether a load of this unit lies in the dense row.
    fn covers(&self, team: &Team, #[comptime] load: usize) -> bool {
        if comptime!(self.blueprint.ragged) {
            team.column(load) < self.cols
        } else {
            team.loads(load)
        }
    }

    /// Writes the members straight from the registers, each unit its own.
    pub fn scatter<N: Size>(&mut self, loaded: &Loaded<E, N>, members: &Members) {
        let width = comptime!(self.blueprint.shape.width);
        #[unroll]
        for load in 0..comptime!(self.blueprint.shape.loads) {
            let mut position = members.start(load);
            #[unroll]
            for i in 0..width {
                let item = comptime!(load * width + i);
                if self.takes(members, item, position, self.k) {
                    let target = position as usize;
                    if comptime!(self.blueprint.values) {
                        self.values[target] = Vector::<E, V>::new(loaded.value(item));
                    }
                    self.indices[target] =
                        Vector::<I, W>::new(I::cast_from(loaded.team.item_column(item)));
                    position += 1;
                }
            }
        }
    }

    /// Writes the dense row, and the members' columns if they are wanted.
    pub fn dense<N: Size>(&mut self, loaded: &Loaded<E, N>, members: &Members) {
        let width = comptime!(self.blueprint.shape.width);
        #[unroll]
        for load in 0..comptime!(self.blueprint.shape.loads) {
            let mut position = members.start(load);
            let mut kept = Vector::<E, V>::zeroed();
            #[unroll]
            for i in 0..width {
                let item = comptime!(load * width + i);
                let taken = self.takes(members, item, position, self.k);
                kept.insert(i, select(taken, loaded.value(item), E::from_int(0)));
                if taken {
                    if comptime!(self.blueprint.indices) {
                        self.indices[position as usize] =
                            Vector::<I, W>::new(I::cast_from(loaded.team.item_column(item)));
                    }
                    position += 1;
                }
            }
            if self.covers(&loaded.team, load) {
                self.values[loaded.team.column(load) as usize / width] = kept;
            }
        }
    }

    /// Lists the members' columns in shared memory, then fetches their values: writes of neighbours.
    pub fn gather(
        &mut self,
        elements: &[E],
        row: usize,
        layout: &RowLayout,
        team: &Team,
        members: &Members,
        columns: &mut Shared<[u32]>,
    ) {
        let list = self.list(team, members, columns);
        self.fetch(elements, row, layout, team, list, columns);
    }

    /// Where the list of this row begins.
    pub fn list_start(&self, team: &Team) -> u32 {
        let own = (UNIT_POS - team.lane) / comptime!(self.blueprint.shape.lanes);
        own * comptime!(self.blueprint.list_length() as u32)
    }

    fn list(&self, team: &Team, members: &Members, columns: &mut Shared<[u32]>) -> u32 {
        let width = comptime!(self.blueprint.shape.width);
        let list = self.list_start(team);
        if comptime!(self.blueprint.shape.regroups()) {
            let cut = comptime!(self.blueprint.search.method == MethodKind::EarlyStop);
            Strip::new(members.bits, team).list(columns, list, self.k, cut);
        } else {
            #[unroll]
            for load in 0..comptime!(self.blueprint.shape.loads) {
                let mut position = members.start(load) + list;
                #[unroll]
                for i in 0..width {
                    let item = comptime!(load * width + i);
                    if self.takes(members, item, position, list + self.k) {
                        columns[position as usize] = team.item_column(item);
                        position += 1;
                    }
                }
            }
        }
        list
    }

    /// Fetches the values of listed members.
    pub fn fetch(
        &mut self,
        elements: &[E],
        row: usize,
        layout: &RowLayout,
        team: &Team,
        list: u32,
        columns: &mut Shared<[u32]>,
    ) {
        let start = row * layout.row_stride;
        if comptime!(self.blueprint.shape.planes > 1) {
            sync_cube();
        } else {
            sync_plane();
        }
        let order = comptime!(self.blueprint.order);
        if comptime!(order.is_some()) {
            let members = List::new(
                list,
                self.k,
                start,
                layout,
                self.blueprint,
                comptime!(order.unwrap()),
            );
            if comptime!(self.blueprint.shape.planes > 1) {
                if UNIT_POS_Y == 0 {
                    members.sort(elements, columns);
                }
                sync_cube();
            } else {
                members.sort(elements, columns);
            }
        }
        // Neighbouring slots at a time.
        let few = W::value().comptime();
        let mut first = team.lane * comptime!(few as u32);
        while first < self.k {
            let mut values = Vector::<E, V>::zeroed();
            let mut indices = Vector::<I, W>::zeroed();
            #[unroll]
            for i in 0..few {
                let slot = first + comptime!(i as u32);
                let place = if comptime!(order.is_some()) {
                    spaced(slot, comptime!(order.unwrap()))
                } else {
                    slot
                };
                let column = columns[(list + place) as usize];
                if comptime!(self.blueprint.values) {
                    let offset = start + element_offset(column, layout, self.blueprint.strided);
                    values.insert(i, elements[offset]);
                }
                indices.insert(i, I::cast_from(column));
            }
            let target = first as usize / few;
            if comptime!(self.blueprint.values) {
                self.values[target] = values;
            }
            self.indices[target] = indices;
            first += comptime!(few as u32 * self.blueprint.shape.lanes);
        }
    }
}
