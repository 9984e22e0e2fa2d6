//! Routine `cube`, for very long rows or without planes.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    config::MemoryConfig,
    layout::{MemoryCall, MemoryOutput, RowElements},
};
use crate::topk::{
    key::{Element, ordered_is_finite},
    threshold::search::{
        Cursor, KeyBracket, KeyRange, SearchRow, SearchRowExpand, Threshold, find_threshold,
    },
    tuning::CUBE_ITEMS,
};

#[derive(CubeType)]
struct CubeRow<'a, E: Element> {
    elements: RowElements<'a, E>,
    cols: u32,
    keys: Shared<[E::Key]>,
    counts: Shared<[u32]>,
    #[cube(comptime)]
    units: u32,
}

#[cube]
impl<'a, E: Element> CubeRow<'a, E> {
    fn new(
        elements: RowElements<'a, E>,
        cols: u32,
        counts: Shared<[u32]>,
        #[comptime] units: u32,
    ) -> CubeRow<'a, E> {
        let keys = Shared::<[E::Key]>::new_slice(units as usize);
        CubeRow::<'a, E> { elements, cols, keys, counts, units }
    }

    fn reduce(&self, key: E::Key, #[comptime] least: bool) -> E::Key {
        let mut keys = self.keys.clone();
        sync_cube();
        keys[UNIT_POS as usize] = key;
        let mut half = self.units / 2;
        sync_cube();
        while half > 0 {
            if UNIT_POS < half {
                let mine = keys[UNIT_POS as usize];
                let other = keys[(UNIT_POS + half) as usize];
                keys[UNIT_POS as usize] = if least { min(mine, other) } else { max(mine, other) };
            }
            half /= 2;
            sync_cube();
        }
        keys[0]
    }
}

#[cube]
impl<'a, E: Element> SearchRow<E> for CubeRow<'a, E> {
    fn bracket(&self, _k: u32) -> KeyBracket<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        let mut column = UNIT_POS;
        while column < self.cols {
            let key = self.elements.key(column);
            low = min(low, key);
            high = max(high, key);
            column += self.units;
        }
        let low = self.reduce(low, true);
        let high = self.reduce(high, false);
        KeyBracket::<E::Key> { low, high, expected: f32::cast_from(self.cols) }
    }

    fn finite_range(&self) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        let mut column = UNIT_POS;
        while column < self.cols {
            let key = self.elements.key(column);
            if ordered_is_finite::<E>(key, self.elements.config.search.largest) {
                low = min(low, key);
                high = max(high, key);
            }
            column += self.units;
        }
        let low = self.reduce(low, true);
        let high = self.reduce(high, false);
        KeyRange::<E::Key> { low, high }
    }

    fn count(&self, key: E::Key) -> u32 {
        let mut count = 0u32;
        let mut column = UNIT_POS;
        while column < self.cols {
            count += select(self.elements.key(column) >= key, 1u32, 0u32);
            column += self.units;
        }
        let mut counts = self.counts.clone();
        scan(&mut counts, count, self.units);
        counts[comptime!((self.units - 1) as usize)]
    }

    fn greatest(&self, key: E::Key) -> E::Key {
        let mut greatest = E::Key::min_value();
        let mut column = UNIT_POS;
        while column < self.cols {
            let other = self.elements.key(column);
            greatest = max(greatest, select(other <= key, other, greatest));
            column += self.units;
        }
        self.reduce(greatest, false)
    }

    fn agreed(&self, condition: bool) -> bool {
        condition
    }
}

#[cube]
fn scan(counts: &mut Shared<[u32]>, count: u32, #[comptime] units: u32) {
    let unit = UNIT_POS as usize;
    sync_cube();
    counts[unit] = count;
    sync_cube();
    let mut distance = 1u32;
    while distance < units {
        let mut sum = counts[unit];
        if UNIT_POS >= distance {
            sum += counts[(UNIT_POS - distance) as usize];
        }
        sync_cube();
        counts[unit] = sum;
        sync_cube();
        distance *= 2;
    }
}

/// `units` is a power of two.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn cube_select<E: Element, I: Numeric>(
    call: &mut MemoryCall<E, I>,
    #[comptime] config: MemoryConfig,
    #[comptime] units: u32,
    #[define(I)] _index: ElemType,
) {
    let index = CUBE_POS;
    if index >= call.layout.rows {
        terminate!();
    }
    let elements = call.elements;
    let mut output = call.output(index, config);
    if comptime!(config.ragged) {
        output.pad(UNIT_POS, units);
        if output.request.params.k == 0 {
            terminate!();
        }
    }
    select_in_memory::<E, I>(elements, &mut output, units);
}

#[cube]
pub(super) fn select_in_memory<E: Element, I: Numeric>(
    input: &[E],
    output: &mut MemoryOutput<E, I>,
    #[comptime] units: u32,
) {
    let request = output.request;
    let search = comptime!(output.config.search);
    let counts = Shared::<[u32]>::new_slice(units as usize);
    let elements =
        RowElements::new(input, output.row, request.first, request.layout, output.config);
    let row = CubeRow::new(elements, request.layout.cols, counts.clone(), units);
    let threshold = find_threshold::<E, CubeRow<E>>(&row, &request.params, search);
    let quota = request.params.k - threshold.above;
    let elements = &row.elements;
    place_elements::<E, I>(elements, output, &threshold, quota, row.cols, counts, units);
}

#[cube]
pub(super) fn place_elements<E: Element, I: Numeric>(
    elements: &RowElements<E>,
    output: &mut MemoryOutput<E, I>,
    threshold: &Threshold<E::Key>,
    quota: u32,
    cols: u32,
    counts: Shared<[u32]>,
    #[comptime] units: u32,
) {
    let mut counts = counts.clone();
    let mut totals = Cursor { above: 0, level: 0 };
    let mut tile = 0u32;
    while tile < cols {
        // Counts ≤ 2^13 fit 16 bits.
        let first = tile + UNIT_POS * CUBE_ITEMS;
        let mut own = Cursor { above: 0, level: 0 };
        for item in 0..CUBE_ITEMS {
            if first + item < cols {
                own.place::<E::Key>(elements.key(first + item), threshold, quota);
            }
        }
        let packed = own.packed();
        scan(&mut counts, packed, units);
        let total = counts[comptime!((units - 1) as usize)];
        let mut cursor = totals.after(counts[UNIT_POS as usize] - packed);
        totals.skip(total);
        for item in 0..CUBE_ITEMS {
            let column = first + item;
            if column < cols {
                let place = cursor.place::<E::Key>(elements.key(column), threshold, quota);
                output.write(column, elements.value(column), &place);
            }
        }
        tile += units * CUBE_ITEMS;
    }
}
