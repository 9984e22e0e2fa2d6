//! A row in the registers of a team: what the plane routine searches.

use cubecl::prelude::*;

use super::{
    layout::{RowLayout, element_offset},
    team::Team,
    values::Values,
};
use crate::topk::{
    element::{Element, ordered_key},
    options::Search,
    search::{Bracket, KeyRange, Row, RowExpand, counts_as_finite},
};

/// The elements of a row that this unit holds.
#[derive(CubeType)]
pub(super) struct Loaded<E: Element, N: Size> {
    vectors: Sequence<Vector<E, N>>,
    pub team: Team,
    #[cube(comptime)]
    search: Search,
}

#[cube]
impl<E: Element, N: Size> Loaded<E, N> {
    /// Reads a row.
    pub fn new(
        input: &[Vector<E, N>],
        row: usize,
        layout: &RowLayout,
        team: Team,
        #[comptime] strided: bool,
        #[comptime] search: Search,
    ) -> Loaded<E, N> {
        let width = N::value().comptime();
        let mut vectors = Sequence::<Vector<E, N>>::new();
        #[unroll]
        for load in 0..comptime!(team.shape.loads) {
            let column = team.column(load);
            let start = row * layout.row_stride + element_offset(column, layout, strided);
            if comptime!(team.shape.exact_fit) {
                vectors.push(input[start / width]);
            } else {
                let mut vector = Vector::<E, N>::zeroed();
                if team.loads(load) {
                    vector = input[start / width];
                }
                vectors.push(vector);
            }
        }
        Loaded::<E, N> {
            vectors,
            team,
            search,
        }
    }

    pub fn value(&self, #[comptime] item: usize) -> E {
        let width = comptime!(self.team.shape.width);
        self.vectors[comptime!(item / width)].extract(comptime!(item % width))
    }

    /// The row as keys. Items past the end get the least key; they also come last, so they are never
    /// taken.
    pub fn keys(&self) -> TeamRow<E> {
        let mut keys = Sequence::<E::Key>::new();
        #[unroll]
        for item in 0..comptime!(self.team.shape.items()) {
            let key = ordered_key::<E>(self.value(item), self.search.largest);
            keys.push(select(self.team.holds(item), key, E::Key::min_value()));
        }
        TeamRow::<E> {
            keys,
            team: self.team,
            search: self.search,
        }
    }

    /// The row as floats, for dtypes that are floats of at most 32 bits.
    pub fn values(&self) -> Values {
        let mut items = Sequence::<f32>::new();
        #[unroll]
        for item in 0..comptime!(self.team.shape.items()) {
            let single = E::single(self.value(item));
            let value = if comptime!(self.search.largest) {
                single
            } else {
                -single
            };
            items.push(select(self.team.holds(item), value, f32::NEG_INFINITY));
        }
        Values {
            items,
            team: self.team,
        }
    }
}

/// A row as keys.
#[derive(CubeType)]
pub(super) struct TeamRow<E: Element> {
    pub keys: Sequence<E::Key>,
    pub team: Team,
    #[cube(comptime)]
    search: Search,
}

#[cube]
impl<E: Element> Row<E> for TeamRow<E> {
    fn bracket(&self, k: u32) -> Bracket<E::Key> {
        let mut high = E::Key::min_value();
        #[unroll]
        for item in 0..self.keys.len() {
            high = max(high, self.keys[item]);
        }
        // Each unit has a key at or above its greatest: for k up to the units of the team the least
        // of these is a lower bound, closer than the least key of all.
        let items = self.keys.len();
        let lanes = comptime!(self.team.shape.lanes);
        let mut low = high;
        let mut expected = f32::cast_from(self.team.cols) * comptime!(expected_share(items));
        if k > lanes {
            #[unroll]
            for item in 0..self.keys.len() {
                let key = self.keys[item];
                low = min(low, select(self.team.holds(item), key, E::Key::max_value()));
            }
            expected = f32::cast_from(self.team.cols);
        }
        Bracket::<E::Key> {
            low: self.team.min::<E::Key>(low),
            high: self.team.max::<E::Key>(high),
            expected,
        }
    }

    fn finite_range(&self) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        #[unroll]
        for item in 0..self.keys.len() {
            let key = self.keys[item];
            let counts = counts_as_finite::<E>(key, self.search) && self.team.holds(item);
            low = min(low, select(counts, key, E::Key::max_value()));
            high = max(high, select(counts, key, E::Key::min_value()));
        }
        KeyRange::<E::Key> {
            low: self.team.min::<E::Key>(low),
            high: self.team.max::<E::Key>(high),
        }
    }

    fn count(&self, key: E::Key) -> u32 {
        let mut counts = 0.0f32;
        let mut others = 0.0f32;
        #[unroll]
        for item in 0..self.keys.len() {
            let count = select(self.keys[item] >= key, 1.0f32, 0.0f32);
            if comptime!(item % 2 == 0) {
                counts += count;
            } else {
                others += count;
            }
        }
        u32::cast_from(self.team.sum(counts + others))
    }

    fn greatest(&self, key: E::Key) -> E::Key {
        let mut greatest = E::Key::min_value();
        #[unroll]
        for item in 0..self.keys.len() {
            let other = self.keys[item];
            greatest = max(greatest, select(other <= key, other, E::Key::min_value()));
        }
        self.team.max::<E::Key>(greatest)
    }

    fn agreed(&self, condition: bool) -> bool {
        plane_any(condition)
    }
}

/// The share of normal values above the least of the greatest of each unit's `items`.
fn expected_share(items: usize) -> f32 {
    1.0 - (1.0f32 / 33.0).powf(1.0 / items as f32)
}
