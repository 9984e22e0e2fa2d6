//! Routine `unit`: one unit per row, read in each pass. For runtimes without planes.
#![allow(clippy::manual_div_ceil, reason = "kernels know no `div_ceil` on runtime integers")]

use cubecl::{ir::ElemType, prelude::*};

use super::{
    config::MemoryConfig,
    layout::{RowLayout, RowRequest, element_offset},
};
use crate::topk::{
    key::{Element, ordered_key},
    threshold::search::{
        Cursor, KeyBracket, KeyRange, SearchParams, SearchRow, SearchRowExpand, counts_as_finite,
        find_threshold,
    },
    tuning::UNIT_BLOCK,
};

#[derive(CubeType)]
struct UnitRow<'a, E: Element> {
    input: &'a [E],
    start: usize,
    layout: RowLayout,
    #[cube(comptime)]
    config: MemoryConfig,
}

#[cube]
impl<'a, E: Element> UnitRow<'a, E> {
    fn new(
        input: &'a [E],
        row: usize,
        layout: RowLayout,
        #[comptime] config: MemoryConfig,
    ) -> UnitRow<'a, E> {
        UnitRow::<'a, E> { input, start: row * layout.row_stride, layout, config }
    }

    fn blocks(&self) -> u32 {
        (self.layout.cols + UNIT_BLOCK - 1) / UNIT_BLOCK
    }

    fn key(&self, column: u32) -> E::Key {
        let offset = element_offset(column, &self.layout, self.config.strided);
        ordered_key::<E>(self.input[self.start + offset], self.config.search.largest)
    }
}

#[cube]
impl<'a, E: Element> SearchRow<E> for UnitRow<'a, E> {
    fn bracket(&self, _k: u32) -> KeyBracket<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        for block in 0..self.blocks() {
            #[unroll]
            for i in 0..UNIT_BLOCK {
                // Past the end, read the last element again.
                let key = self.key(min(block * UNIT_BLOCK + i, self.layout.cols - 1));
                low = min(low, key);
                high = max(high, key);
            }
        }
        KeyBracket::<E::Key> { low, high, expected: f32::cast_from(self.layout.cols) }
    }

    fn finite_range(&self) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        for block in 0..self.blocks() {
            #[unroll]
            for i in 0..UNIT_BLOCK {
                let key = self.key(min(block * UNIT_BLOCK + i, self.layout.cols - 1));
                let counts = counts_as_finite::<E>(key, self.config.search);
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
            for i in 0..UNIT_BLOCK {
                let column = block * UNIT_BLOCK + i;
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
            for i in 0..UNIT_BLOCK {
                let other = self.key(min(block * UNIT_BLOCK + i, self.layout.cols - 1));
                greatest = max(greatest, select(other <= key, other, greatest));
            }
        }
        greatest
    }

    fn agreed(&self, condition: bool) -> bool {
        condition
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn unit_select<E: Element, I: Numeric>(
    input: &[E],
    values: &mut [E],
    indices: &mut [I],
    lengths: ComptimeOption<&[u32]>,
    layout: RowLayout,
    params: SearchParams,
    #[comptime] config: MemoryConfig,
    #[define(I)] _index: ElemType,
) {
    let index = ABSOLUTE_POS;
    if index >= layout.rows {
        terminate!();
    }
    let request = RowRequest::new(lengths, index, layout, params);
    if comptime!(config.ragged) {
        request.pad::<E, I>(values, indices, index, 0, 1, config);
        if request.params.k == 0 {
            terminate!();
        }
    }
    let row = UnitRow::new(input, index, request.layout, config);
    let threshold = find_threshold::<E, UnitRow<E>>(&row, &request.params, config.search);
    let quota = request.params.k - threshold.above;
    let mut cursor = Cursor { above: 0, level: 0 };
    for block in 0..row.blocks() {
        #[unroll]
        for i in 0..UNIT_BLOCK {
            let column = block * UNIT_BLOCK + i;
            if column < request.layout.cols {
                let place = cursor.place::<E::Key>(row.key(column), &threshold, quota);
                let value = input[row.start + element_offset(column, &layout, config.strided)];
                if comptime!(config.dense) {
                    values[index * request.cols as usize + column as usize] =
                        select(place.member, value, E::from_int(0));
                }
                if place.member {
                    let target = index * request.slots as usize + place.position as usize;
                    if comptime!(config.values && !config.dense) {
                        values[target] = value;
                    }
                    if comptime!(config.indices) {
                        indices[target] = I::cast_from(column);
                    }
                }
            }
        }
    }
}
