//! Routine `cube`: one cube per row, read in each pass. For very long rows, or without planes.

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
    tuning::CUBE_ITEMS,
};

#[derive(CubeType)]
struct CubeRow<'a, E: Element> {
    input: &'a [E],
    start: usize,
    layout: RowLayout,
    keys: Shared<[E::Key]>,
    counts: Shared<[u32]>,
    #[cube(comptime)]
    config: MemoryConfig,
    #[cube(comptime)]
    units: u32,
}

#[cube]
impl<'a, E: Element> CubeRow<'a, E> {
    fn new(
        input: &'a [E],
        row: usize,
        layout: RowLayout,
        counts: Shared<[u32]>,
        #[comptime] config: MemoryConfig,
        #[comptime] units: u32,
    ) -> CubeRow<'a, E> {
        CubeRow::<'a, E> {
            input,
            start: row * layout.row_stride,
            layout,
            keys: Shared::<[E::Key]>::new_slice(units as usize),
            counts,
            config,
            units,
        }
    }

    fn key(&self, column: u32) -> E::Key {
        let offset = element_offset(column, &self.layout, self.config.strided);
        ordered_key::<E>(self.input[self.start + offset], self.config.search.largest)
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
        while column < self.layout.cols {
            let key = self.key(column);
            low = min(low, key);
            high = max(high, key);
            column += self.units;
        }
        let low = self.reduce(low, true);
        let high = self.reduce(high, false);
        KeyBracket::<E::Key> { low, high, expected: f32::cast_from(self.layout.cols) }
    }

    fn finite_range(&self) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        let mut column = UNIT_POS;
        while column < self.layout.cols {
            let key = self.key(column);
            if counts_as_finite::<E>(key, self.config.search) {
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
        while column < self.layout.cols {
            count += select(self.key(column) >= key, 1u32, 0u32);
            column += self.units;
        }
        let mut counts = self.counts.clone();
        scan(&mut counts, count, self.units);
        counts[comptime!((self.units - 1) as usize)]
    }

    fn greatest(&self, key: E::Key) -> E::Key {
        let mut greatest = E::Key::min_value();
        let mut column = UNIT_POS;
        while column < self.layout.cols {
            let other = self.key(column);
            greatest = max(greatest, select(other <= key, other, greatest));
            column += self.units;
        }
        self.reduce(greatest, false)
    }

    fn agreed(&self, condition: bool) -> bool {
        condition
    }
}

/// Inclusive, called by all units.
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

/// Writes in index order, or the dense row. `units` is a power of two.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn cube_select<E: Element, I: Numeric>(
    input: &[E],
    values: &mut [E],
    indices: &mut [I],
    lengths: ComptimeOption<&[u32]>,
    layout: RowLayout,
    params: SearchParams,
    #[comptime] config: MemoryConfig,
    #[comptime] units: u32,
    #[define(I)] _index: ElemType,
) {
    let index = CUBE_POS;
    if index >= layout.rows {
        terminate!();
    }
    let request = RowRequest::new(lengths, index, layout, params);
    if comptime!(config.ragged) {
        request.pad::<E, I>(values, indices, index, UNIT_POS, units, config);
        if request.params.k == 0 {
            terminate!();
        }
    }
    select_requested::<E, I>(input, values, indices, index, &request, config, units);
}

#[cube]
#[allow(clippy::too_many_arguments)]
pub(super) fn select_whole_row<E: Element, I: Numeric>(
    input: &[E],
    values: &mut [E],
    indices: &mut [I],
    index: usize,
    layout: RowLayout,
    params: &SearchParams,
    #[comptime] config: MemoryConfig,
    #[comptime] units: u32,
) {
    let request = RowRequest::whole(layout, params);
    select_requested::<E, I>(input, values, indices, index, &request, config, units);
}

#[cube]
#[allow(clippy::too_many_arguments)]
fn select_requested<E: Element, I: Numeric>(
    input: &[E],
    values: &mut [E],
    indices: &mut [I],
    index: usize,
    request: &RowRequest,
    #[comptime] config: MemoryConfig,
    #[comptime] units: u32,
) {
    let layout = request.layout;
    let mut counts = Shared::<[u32]>::new_slice(units as usize);
    let row = CubeRow::new(input, index, layout, counts.clone(), config, units);
    let threshold = find_threshold::<E, CubeRow<E>>(&row, &request.params, config.search);
    let quota = request.params.k - threshold.above;

    let mut totals = Cursor { above: 0, level: 0 };
    let mut tile = 0u32;
    while tile < layout.cols {
        // At most 1024 × 8 elements, so both counts fit in 16 bits.
        let first = tile + UNIT_POS * CUBE_ITEMS;
        let mut own = Cursor { above: 0, level: 0 };
        for item in 0..CUBE_ITEMS {
            if first + item < layout.cols {
                own.place::<E::Key>(row.key(first + item), &threshold, quota);
            }
        }
        let packed = own.above + (own.level << 16);
        scan(&mut counts, packed, units);
        let before = counts[UNIT_POS as usize] - packed;
        let total = counts[comptime!((units - 1) as usize)];
        let mut cursor = Cursor {
            above: totals.above + (before & 0xffff),
            level: totals.level + (before >> 16),
        };
        totals.above += total & 0xffff;
        totals.level += total >> 16;
        for item in 0..CUBE_ITEMS {
            let column = first + item;
            if column < layout.cols {
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
        tile += units * CUBE_ITEMS;
    }
}
