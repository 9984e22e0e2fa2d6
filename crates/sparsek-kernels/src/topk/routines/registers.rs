//! A row in the registers of a team: what the plane routine searches.

use cubecl::prelude::*;

use super::{
    held::Held,
    layout::{RowLayout, element_offset},
    team::Team,
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
    /// Reads the row, or the part of one, that begins at `start`.
    pub fn new(
        input: &[Vector<E, N>],
        start: usize,
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
    /// taken. `opaque` keys are shuffled with themselves: a compiler would hold their values from before the last
    /// step beside them, for comparisons where that makes no difference.
    pub fn keys(&self, #[comptime] opaque: bool) -> TeamRow<E> {
        let mut keys = Sequence::<E::Key>::new();
        #[unroll]
        for item in 0..comptime!(self.team.shape.items()) {
            let key = ordered_key::<E>(self.value(item), self.search.largest);
            let key = select(self.team.holds(item), key, E::Key::min_value());
            keys.push(if comptime!(opaque) {
                plane_shuffle(key, UNIT_POS_X)
            } else {
                key
            });
        }
        TeamRow::<E> {
            held: Held::<E::Key> {
                items: keys,
                team: self.team,
            },
            search: self.search,
        }
    }

    /// The row as floats, for dtypes that are floats of at most 32 bits.
    pub fn singles(&self) -> Held<f32> {
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
        Held::<f32>::new(items, self.team)
    }
}

/// A row as keys.
#[derive(CubeType)]
pub(super) struct TeamRow<E: Element> {
    pub held: Held<E::Key>,
    #[cube(comptime)]
    pub search: Search,
}

#[cube]
impl<E: Element> Row<E> for TeamRow<E> {
    fn bracket(&self, k: u32) -> Bracket<E::Key> {
        let mut high = E::Key::min_value();
        #[unroll]
        for item in 0..self.held.items.len() {
            high = max(high, self.held.items[item]);
        }
        // Each unit has a key at or above its greatest: for k up to the units of the team the least
        // of these is a lower bound, closer than the least key of all.
        let items = self.held.items.len();
        let lanes = comptime!(self.held.team.shape.lanes);
        let mut low = high;
        let mut expected = f32::cast_from(self.held.team.cols) * comptime!(expected_share(items));
        if k > lanes {
            #[unroll]
            for item in 0..self.held.items.len() {
                let key = self.held.items[item];
                low = min(
                    low,
                    select(self.held.team.holds(item), key, E::Key::max_value()),
                );
            }
            expected = f32::cast_from(self.held.team.cols);
        }
        Bracket::<E::Key> {
            low: self.held.team.min::<E::Key>(low),
            high: self.held.team.max::<E::Key>(high),
            expected,
        }
    }

    fn finite_range(&self) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        #[unroll]
        for item in 0..self.held.items.len() {
            let key = self.held.items[item];
            let counts = counts_as_finite::<E>(key, self.search) && self.held.team.holds(item);
            low = min(low, select(counts, key, E::Key::max_value()));
            high = max(high, select(counts, key, E::Key::min_value()));
        }
        KeyRange::<E::Key> {
            low: self.held.team.min::<E::Key>(low),
            high: self.held.team.max::<E::Key>(high),
        }
    }

    fn count(&self, key: E::Key) -> u32 {
        u32::cast_from(self.held.count(key))
    }

    fn greatest(&self, key: E::Key) -> E::Key {
        let mut greatest = E::Key::min_value();
        #[unroll]
        for item in 0..self.held.items.len() {
            let other = self.held.items[item];
            greatest = max(greatest, select(other <= key, other, E::Key::min_value()));
        }
        self.held.team.max::<E::Key>(greatest)
    }

    fn agreed(&self, condition: bool) -> bool {
        plane_any(condition)
    }
}

/// The share of normal values above the least of the greatest of each unit's `items`.
fn expected_share(items: usize) -> f32 {
    1.0 - (1.0f32 / 33.0).powf(1.0 / items as f32)
}
