//! Routine `radix`: PyTorch's radix selection, for comparison. Reads a row once per 11-bit digit
//! and once to write.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    config::MemoryConfig,
    cube::place_elements,
    layout::{MemoryCall, RowElements},
};
use crate::{
    primitives::team::TeamShape,
    topk::{
        key::Element,
        threshold::{
            cube_reduce::CubeReduce,
            histogram::{
                BINS, KeySet, KeySetExpand, clear_bins, count_key, histogram_threshold, key_range,
            },
            search::KeyRange,
        },
    },
};

#[derive(CubeType)]
struct RowKeys<'a, E: Element> {
    elements: RowElements<'a, E>,
    cols: u32,
    #[cube(comptime)]
    units: u32,
}

#[cube]
impl<'a, E: Element> RowKeys<'a, E> {
    fn new(elements: RowElements<'a, E>, cols: u32, #[comptime] units: u32) -> RowKeys<'a, E> {
        RowKeys::<'a, E> { elements, cols, units }
    }
}

#[cube]
impl<'a, E: Element> KeySet<E::Key> for RowKeys<'a, E> {
    fn count_keys(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<E::Key>, shift: u32) {
        let mut column = UNIT_POS;
        while column < self.cols {
            count_key::<E::Key>(bins, self.elements.key(column), range, shift);
            column += self.units;
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn radix_select<E: Element, I: Numeric>(
    call: &mut MemoryCall<E, I>,
    #[comptime] config: MemoryConfig,
    #[comptime] shape: TeamShape,
    #[define(I)] _index: ElemType,
) {
    let index = CUBE_POS;
    if index >= call.layout.rows {
        terminate!();
    }
    let units = comptime!(shape.lanes);
    let input = call.elements;
    let mut output = call.output(index, config);
    let request = output.request;
    if comptime!(config.ragged) {
        output.pad(UNIT_POS, units);
        if request.params.k == 0 {
            terminate!();
        }
    }
    let cols = request.layout.cols;
    let elements = RowElements::new(input, index, request.first, request.layout, config);
    let row = RowKeys::new(elements, cols, units);
    let bins = Shared::<[Atomic<u32>]>::new_slice(BINS);
    let reduce = CubeReduce::new(shape);
    clear_bins(&bins, units);
    sync_cube();
    let all = key_range::<E::Key>(E::Key::min_value(), E::Key::max_value());
    let k = request.params.k;
    let threshold = histogram_threshold::<E::Key, RowKeys<E>>(&row, &all, k, &bins, &reduce, 0u32);
    let counts = Shared::<[u32]>::new_slice(units as usize);
    let quota = k - threshold.above;
    place_elements::<E, I>(&row.elements, &mut output, &threshold, quota, cols, counts, units);
}
