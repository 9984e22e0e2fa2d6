//! One unit per row, the row read from memory in each pass: for runtimes without planes.
#![allow(
    clippy::manual_div_ceil,
    reason = "kernels know no `div_ceil` on runtime integers"
)]

use cubecl::{ir::ElemType, prelude::*};

use super::{
    layout::{RowLayout, element_offset},
    ragged::Request,
};
use crate::topk::{
    element::{Element, ordered_key},
    options::Search,
    search::{
        Bracket, Cursor, KeyRange, Row, RowExpand, SearchParams, counts_as_finite, find_threshold,
    },
};

/// Elements that a unit reads between two jumps.
pub(crate) const BLOCK: u32 = 8;

/// What a kernel that reads rows from memory is compiled for, besides the dtypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemoryBlueprint {
    pub search: Search,
    /// Whether neighbouring elements of a row are `col_stride` apart instead of 1.
    pub strided: bool,
    pub values: bool,
    pub indices: bool,
    /// Whether `values` is the dense row with everything but the members set to zero.
    pub dense: bool,
    /// Whether rows have lengths of their own.
    pub ragged: bool,
}

/// A row in memory, read by one unit.
#[derive(CubeType)]
struct UnitRow<'a, E: Element> {
    input: &'a [E],
    start: usize,
    layout: RowLayout,
    #[cube(comptime)]
    blueprint: MemoryBlueprint,
}

#[cube]
impl<'a, E: Element> UnitRow<'a, E> {
    fn new(
        input: &'a [E],
        row: usize,
        layout: RowLayout,
        #[comptime] blueprint: MemoryBlueprint,
    ) -> UnitRow<'a, E> {
        UnitRow::<'a, E> {
            input,
            start: row * layout.row_stride,
            layout,
            blueprint,
        }
    }

    /// Blocks of a row, the last perhaps not full.
    fn blocks(&self) -> u32 {
        (self.layout.cols + BLOCK - 1) / BLOCK
    }

    fn key(&self, column: u32) -> E::Key {
        let offset = element_offset(column, &self.layout, self.blueprint.strided);
        ordered_key::<E>(
            self.input[self.start + offset],
            self.blueprint.search.largest,
        )
    }
}

#[cube]
impl<'a, E: Element> Row<E> for UnitRow<'a, E> {
    fn bracket(&self, _k: u32) -> Bracket<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        for block in 0..self.blocks() {
            #[unroll]
            for i in 0..BLOCK {
                // Past the end the last element is seen again, which changes neither end.
                let key = self.key(min(block * BLOCK + i, self.layout.cols - 1));
                low = min(low, key);
                high = max(high, key);
            }
        }
        Bracket::<E::Key> {
            low,
            high,
            expected: f32::cast_from(self.layout.cols),
        }
    }

    fn finite_range(&self) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        for block in 0..self.blocks() {
            #[unroll]
            for i in 0..BLOCK {
                let key = self.key(min(block * BLOCK + i, self.layout.cols - 1));
                let counts = counts_as_finite::<E>(key, self.blueprint.search);
                low = min(low, select(counts, key, E::Key::max_value()));
                high = max(high, select(counts, key, E::Key::min_value()));
            }
        }
        KeyRange::<E::Key> { low, high }
    }

    fn count(&self, key: E::Key) -> u32 {
        let mut count = 0u32;
        for block in 0..self.blocks() {
            #[unroll]
            for i in 0..BLOCK {
                let column = block * BLOCK + i;
                let other = self.key(min(column, self.layout.cols - 1));
                let counts = other >= key && column < self.layout.cols;
                count += select(counts, 1u32, 0u32);
            }
        }
        count
    }

    fn greatest(&self, key: E::Key) -> E::Key {
        let mut greatest = E::Key::min_value();
        for block in 0..self.blocks() {
            #[unroll]
            for i in 0..BLOCK {
                let other = self.key(min(block * BLOCK + i, self.layout.cols - 1));
                greatest = max(greatest, select(other <= key, other, greatest));
            }
        }
        greatest
    }

    fn agreed(&self, condition: bool) -> bool {
        condition
    }
}

/// Values and indices of the members in index order, or the dense row.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn unit_select<E: Element, I: Numeric>(
    input: &[E],
    values: &mut [E],
    indices: &mut [I],
    lengths: ComptimeOption<&[u32]>,
    layout: RowLayout,
    params: SearchParams,
    #[comptime] blueprint: MemoryBlueprint,
    #[define(I)] _index: ElemType,
) {
    let index = ABSOLUTE_POS;
    if index >= layout.rows {
        terminate!();
    }
    let request = Request::new(lengths, index, layout, params);
    if comptime!(blueprint.ragged) {
        request.pad::<E, I>(values, indices, index, 0, 1, blueprint);
        if request.params.k == 0 {
            terminate!();
        }
    }
    let row = UnitRow::new(input, index, request.layout, blueprint);
    let threshold = find_threshold::<E, UnitRow<E>>(&row, &request.params, blueprint.search);
    let quota = request.params.k - threshold.above;
    let mut cursor = Cursor { above: 0, level: 0 };
    for block in 0..row.blocks() {
        #[unroll]
        for i in 0..BLOCK {
            let column = block * BLOCK + i;
            if column < request.layout.cols {
                let place = cursor.place::<E::Key>(row.key(column), &threshold, quota);
                let value = input[row.start + element_offset(column, &layout, blueprint.strided)];
                if comptime!(blueprint.dense) {
                    values[index * request.cols as usize + column as usize] =
                        select(place.member, value, E::from_int(0));
                }
                if place.member {
                    let target = index * request.slots as usize + place.position as usize;
                    if comptime!(blueprint.values && !blueprint.dense) {
                        values[target] = value;
                    }
                    if comptime!(blueprint.indices) {
                        indices[target] = I::cast_from(column);
                    }
                }
            }
        }
    }
}
