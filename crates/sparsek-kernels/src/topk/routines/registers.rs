//! A row in the registers of a plane: what the plane routine searches.

use cubecl::prelude::*;

use super::{
    ballot::plane_count,
    layout::{RowLayout, element_offset},
    plane::PlaneBlueprint,
};
use crate::topk::{
    element::{Element, ordered_key},
    options::Search,
    search::{Bracket, KeyRange, Row, RowExpand, counts_as_finite},
};

/// A row in the registers of a plane.
#[derive(CubeType)]
pub(super) struct RegisterRow<E: Element> {
    pub keys: Array<E::Key>,
    /// Elements of the row.
    pub cols: u32,
    #[cube(comptime)]
    pub width: usize,
    #[cube(comptime)]
    pub search: Search,
    #[cube(comptime)]
    pub exact_fit: bool,
    #[cube(comptime)]
    pub words: usize,
}

#[cube]
impl<E: Element> RegisterRow<E> {
    /// Whether the item of this unit lies in the row.
    fn holds(&self, #[comptime] item: usize) -> bool {
        if comptime!(self.exact_fit) {
            true.runtime()
        } else {
            let chunk = comptime!(item / self.width) as u32;
            let offset = comptime!(item % self.width) as u32;
            let width = comptime!(self.width as u32);
            (chunk * CUBE_DIM_X + UNIT_POS_X) * width + offset < self.cols
        }
    }
}

#[cube]
impl<E: Element> Row<E> for RegisterRow<E> {
    fn bracket(&self, k: u32) -> Bracket<E::Key> {
        let mut high = E::Key::min_value();
        #[unroll]
        for item in 0..self.keys.len() {
            high = max(high, self.keys[item]);
        }
        // Each unit has a key at or above its greatest: for k up to the units of the plane the least
        // of these is a lower bound, closer than the least key of all.
        let items = self.keys.len();
        let mut low = high;
        let mut expected = f32::cast_from(self.cols) * comptime!(expected_share(items));
        if k > CUBE_DIM_X {
            #[unroll]
            for item in 0..self.keys.len() {
                let key = self.keys[item];
                low = min(low, select(self.holds(item), key, E::Key::max_value()));
            }
            expected = f32::cast_from(self.cols);
        }
        Bracket::<E::Key> {
            low: plane_min(low),
            high: plane_max(high),
            expected,
        }
    }

    fn finite_range(&self) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        #[unroll]
        for item in 0..self.keys.len() {
            let key = self.keys[item];
            let counts = counts_as_finite::<E>(key, self.search) && self.holds(item);
            low = min(low, select(counts, key, E::Key::max_value()));
            high = max(high, select(counts, key, E::Key::min_value()));
        }
        KeyRange::<E::Key> {
            low: plane_min(low),
            high: plane_max(high),
        }
    }

    fn count(&self, key: E::Key) -> u32 {
        let mut count = 0u32;
        let items = self.keys.len();
        if comptime!(items <= MAX_BALLOTS) {
            #[unroll]
            for item in 0..self.keys.len() {
                count += plane_count(self.keys[item] >= key, self.words);
            }
            count
        } else {
            #[unroll]
            for item in 0..self.keys.len() {
                count += select(self.keys[item] >= key, 1u32, 0u32);
            }
            plane_sum(count)
        }
    }

    fn greatest(&self, key: E::Key) -> E::Key {
        let mut greatest = E::Key::min_value();
        #[unroll]
        for item in 0..self.keys.len() {
            let other = self.keys[item];
            greatest = max(greatest, select(other <= key, other, E::Key::min_value()));
        }
        plane_max(greatest)
    }

    fn agreed(&self, condition: bool) -> bool {
        plane_any(condition)
    }
}

/// Most items of a unit that are counted by one ballot each (4 instructions on Hopper) instead of a
/// sum over the plane (about 30, and 3 for each item).
const MAX_BALLOTS: usize = 16;

/// The share of normal values above the least of the greatest of each unit's `items`.
fn expected_share(items: usize) -> f32 {
    1.0 - (1.0f32 / 33.0).powf(1.0 / items as f32)
}

/// The raw elements of a row, beside their keys.
#[derive(CubeType)]
pub(super) struct Loaded<E: Element, N: Size> {
    pub vectors: Array<Vector<E, N>>,
    pub row: RegisterRow<E>,
}

#[cube]
pub(super) fn load_row<E: Element, N: Size>(
    input: &[Vector<E, N>],
    row: usize,
    layout: &RowLayout,
    #[comptime] blueprint: PlaneBlueprint,
) -> Loaded<E, N> {
    let width = N::value().comptime();
    let mut vectors = Array::<Vector<E, N>>::new(blueprint.chunks);
    let mut keys = Array::<E::Key>::new(comptime!(blueprint.chunks * width));

    #[unroll]
    for chunk in 0..blueprint.chunks {
        let column = first_column(chunk, width);
        let inside = comptime!(blueprint.exact_fit) || column < layout.cols;
        if inside {
            let start = row * layout.row_stride + element_offset(column, layout, blueprint.strided);
            vectors[chunk] = input[start / width];
        }
        let vector = vectors[chunk];
        #[unroll]
        for i in 0..width {
            let key = ordered_key::<E>(vector.extract(i), blueprint.search.largest);
            // Items past the end get the least key; they also come last, so they are never taken.
            keys[comptime!(chunk * width + i)] = select(inside, key, E::Key::min_value());
        }
    }

    Loaded::<E, N> {
        vectors,
        row: RegisterRow::<E> {
            keys,
            cols: layout.cols,
            width,
            search: blueprint.search,
            exact_fit: blueprint.exact_fit,
            words: blueprint.words,
        },
    }
}

/// The first column of this unit in a chunk.
#[cube]
pub(super) fn first_column(#[comptime] chunk: usize, #[comptime] width: usize) -> u32 {
    (comptime!(chunk as u32) * CUBE_DIM_X + UNIT_POS_X) * comptime!(width as u32)
}
