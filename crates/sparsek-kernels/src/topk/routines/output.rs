//! Where the members of a row in registers go.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::{
    layout::{RowLayout, element_offset},
    members::{Members, MembersExpand},
    plane::PlaneBlueprint,
    registers::Loaded,
    team::Team,
};
use crate::topk::element::Element;

/// What is written of a row. Both slices begin at the row.
#[derive(CubeType)]
pub(super) struct Output<'a, E: Element, I: Numeric, V: Size> {
    /// The members, or the dense row.
    values: &'a mut [Vector<E, V>],
    indices: &'a mut [I],
    k: u32,
    #[cube(comptime)]
    blueprint: PlaneBlueprint,
}

#[cube]
impl<'a, E: Element, I: Numeric, V: Size> Output<'a, E, I, V> {
    pub fn new(
        values: &'a mut [Vector<E, V>],
        indices: &'a mut [I],
        row: usize,
        layout: &RowLayout,
        k: u32,
        #[comptime] blueprint: PlaneBlueprint,
    ) -> Output<'a, E, I, V> {
        let members = k as usize;
        let length = if comptime!(blueprint.dense) {
            layout.cols as usize / comptime!(blueprint.shape.width)
        } else {
            members
        };
        Output::<'a, E, I, V> {
            values: &mut values[row * length..row * length + length],
            indices: &mut indices[row * members..row * members + members],
            k,
            blueprint,
        }
    }

    /// Writes the members straight from the registers, each unit its own.
    pub fn scatter<N: Size, M: Members>(&mut self, loaded: &Loaded<E, N>, members: &M) {
        let width = comptime!(self.blueprint.shape.width);
        #[unroll]
        for load in 0..comptime!(self.blueprint.shape.loads) {
            let mut cursor = members.cursor(load, 0);
            #[unroll]
            for i in 0..width {
                let item = comptime!(load * width + i);
                let place = members.place(&mut cursor, item);
                if place.member {
                    let target = place.position as usize;
                    if comptime!(self.blueprint.values) {
                        self.values[target] = Vector::<E, V>::new(loaded.value(item));
                    }
                    self.indices[target] = I::cast_from(loaded.team.item_column(item));
                }
            }
        }
    }

    /// Writes the dense row, and the members' columns if they are wanted.
    pub fn dense<N: Size, M: Members>(&mut self, loaded: &Loaded<E, N>, members: &M) {
        let width = comptime!(self.blueprint.shape.width);
        #[unroll]
        for load in 0..comptime!(self.blueprint.shape.loads) {
            let mut cursor = members.cursor(load, 0);
            let mut kept = Vector::<E, V>::zeroed();
            #[unroll]
            for i in 0..width {
                let item = comptime!(load * width + i);
                let place = members.place(&mut cursor, item);
                kept.insert(i, select(place.member, loaded.value(item), E::from_int(0)));
                if comptime!(self.blueprint.indices) {
                    if place.member {
                        self.indices[place.position as usize] =
                            I::cast_from(loaded.team.item_column(item));
                    }
                }
            }
            if loaded.team.loads(load) {
                self.values[loaded.team.column(load) as usize / width] = kept;
            }
        }
    }

    /// Lists the members' columns in shared memory, then fetches their values: writes of neighbours.
    pub fn gather<N: Size, M: Members>(
        &mut self,
        input: &[Vector<E, N>],
        row: usize,
        layout: &RowLayout,
        team: &Team,
        members: &M,
        columns: &mut Shared<[u32]>,
    ) {
        let width = N::value().comptime();
        let start = row * layout.row_stride;
        let own = (UNIT_POS - team.lane) / comptime!(self.blueprint.shape.lanes);
        let list = own * comptime!(self.blueprint.listed as u32);
        #[unroll]
        for load in 0..comptime!(self.blueprint.shape.loads) {
            let mut cursor = members.cursor(load, list);
            #[unroll]
            for i in 0..width {
                let item = comptime!(load * width + i);
                let place = members.place(&mut cursor, item);
                if place.member {
                    columns[place.position as usize] = team.item_column(item);
                }
            }
        }
        if comptime!(self.blueprint.shape.planes > 1) {
            sync_cube();
        } else {
            sync_plane();
        }
        let mut slot = team.lane;
        while slot < self.k {
            let column = columns[(list + slot) as usize];
            if comptime!(self.blueprint.values) {
                let offset = start + element_offset(column, layout, self.blueprint.strided);
                let vector = input[offset / width];
                let place = (offset % width) as u32;
                let mut value = vector.extract(0usize);
                #[unroll]
                for i in 1..width {
                    value = select(place == comptime!(i as u32), vector.extract(i), value);
                }
                self.values[slot as usize] = Vector::<E, V>::new(value);
            }
            self.indices[slot as usize] = I::cast_from(column);
            slot += comptime!(self.blueprint.shape.lanes);
        }
    }
}
