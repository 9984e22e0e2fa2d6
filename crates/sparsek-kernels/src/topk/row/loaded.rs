//! The elements of a row, or of a part of one, in the registers of a team.

use cubecl::prelude::*;

use super::layout::{RowLayout, element_offset};
use crate::{
    primitives::{infinity::infinity, team::Team},
    topk::{
        key::{Element, ordered_key},
        options::SearchConfig,
        threshold::register_row::{KeyRow, RegisterRow},
    },
};

#[derive(CubeType)]
pub(super) struct LoadedRow<E: Element, N: Size> {
    vectors: Sequence<Vector<E, N>>,
    pub team: Team,
    #[cube(comptime)]
    search: SearchConfig,
}

#[cube]
impl<E: Element, N: Size> LoadedRow<E, N> {
    pub fn new(
        input: &[Vector<E, N>],
        start: usize,
        layout: &RowLayout,
        team: Team,
        #[comptime] strided: bool,
        #[comptime] search: SearchConfig,
    ) -> LoadedRow<E, N> {
        let width = N::value().comptime();
        let mut vectors = Sequence::<Vector<E, N>>::new();
        #[unroll]
        for load in 0..comptime!(team.shape.loads) {
            let column = team.column(load);
            let offset = start + element_offset(column, layout, strided);
            if comptime!(team.shape.exact_fit) {
                vectors.push(input[offset / width]);
            } else {
                let mut vector = Vector::<E, N>::zeroed();
                if team.loads(load) {
                    vector = input[offset / width];
                }
                vectors.push(vector);
            }
        }
        LoadedRow::<E, N> { vectors, team, search }
    }

    pub fn value(&self, #[comptime] item: usize) -> E {
        let width = comptime!(self.team.shape.width);
        self.vectors[comptime!(item / width)].extract(comptime!(item % width))
    }

    /// Items past the end get the least key and come last, so they are never selected. `opaque`
    /// shuffles keys, or compilers keep the values behind them.
    pub fn keys(&self, #[comptime] opaque: bool) -> KeyRow<E> {
        let mut keys = Sequence::<E::Key>::new();
        #[unroll]
        for item in 0..comptime!(self.team.shape.items()) {
            let key = ordered_key::<E>(self.value(item), self.search.largest);
            let key = select(self.team.holds(item), key, E::Key::min_value());
            keys.push(if comptime!(opaque) { plane_shuffle(key, UNIT_POS_X) } else { key });
        }
        KeyRow::<E> {
            row: RegisterRow::<E::Key> { items: keys, team: self.team },
            search: self.search,
        }
    }

    /// For floats of at most 32 bits.
    pub fn singles(&self) -> RegisterRow<f32> {
        let mut items = Sequence::<f32>::new();
        #[unroll]
        for item in 0..comptime!(self.team.shape.items()) {
            let single = E::single(self.value(item));
            let value = if comptime!(self.search.largest) { single } else { -single };
            items.push(select(self.team.holds(item), value, -infinity::<f32>()));
        }
        RegisterRow::<f32>::new(items, self.team)
    }
}
