//! Routine `unit`, for runtimes without planes.

#![allow(clippy::manual_div_ceil, reason = "kernels know no `div_ceil` on runtime integers")]

use cubecl::{ir::ElemType, prelude::*};

use super::{
    config::MemoryConfig,
    layout::{MemoryCall, RowElements},
};
use crate::topk::{
    key::{Element, ordered_is_finite},
    threshold::search::{Cursor, KeyBracket, KeyRange, SearchRow, SearchRowExpand, find_threshold},
    tuning::UNIT_BLOCK,
};

#[derive(CubeType)]
struct UnitRow<'a, E: Element> {
    elements: RowElements<'a, E>,
    cols: u32,
}

#[cube]
impl<'a, E: Element> UnitRow<'a, E> {
    fn new(elements: RowElements<'a, E>, cols: u32) -> UnitRow<'a, E> {
        UnitRow::<'a, E> { elements, cols }
    }

    fn blocks(&self) -> u32 {
        (self.cols + UNIT_BLOCK - 1) / UNIT_BLOCK
    }

    fn key(&self, column: u32) -> E::Key {
        self.elements.key(min(column, self.cols - 1))
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
                let key = self.key(block * UNIT_BLOCK + i);
                low = min(low, key);
                high = max(high, key);
            }
        }
        KeyBracket::<E::Key> { low, high, expected: f32::cast_from(self.cols) }
    }

    fn finite_range(&self) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        for block in 0..self.blocks() {
            #[unroll]
            for i in 0..UNIT_BLOCK {
                let key = self.key(block * UNIT_BLOCK + i);
                let counts = ordered_is_finite::<E>(key, self.elements.config.search.largest);
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
                let other = self.key(column);
                let counts = other >= key && column < self.cols;
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
                let other = self.key(block * UNIT_BLOCK + i);
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
    call: &mut MemoryCall<E, I>,
    #[comptime] config: MemoryConfig,
    #[define(I)] _index: ElemType,
) {
    let index = ABSOLUTE_POS;
    if index >= call.layout.rows {
        terminate!();
    }
    let elements = call.elements;
    let mut output = call.output(index, config);
    let request = output.request;
    if comptime!(config.ragged) {
        output.pad(0, 1);
        if request.params.k == 0 {
            terminate!();
        }
    }
    let elements = RowElements::new(elements, index, request.first, request.layout, config);
    let row = UnitRow::new(elements, request.layout.cols);
    let threshold = find_threshold::<E, UnitRow<E>>(&row, &request.params, config.search);
    let quota = request.params.k - threshold.above;
    let mut cursor = Cursor { above: 0, level: 0 };
    for block in 0..row.blocks() {
        #[unroll]
        for i in 0..UNIT_BLOCK {
            let column = block * UNIT_BLOCK + i;
            if column < row.cols {
                let key = row.elements.key(column);
                let place = cursor.place::<E::Key>(key, &threshold, quota);
                output.write(column, row.elements.value(column), &place);
            }
        }
    }
}
