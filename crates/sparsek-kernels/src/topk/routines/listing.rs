//! One pass over a row that lists the columns whose elements reach a threshold, in index order.
//!
//! Units note what reaches it in words of shared memory; then each unit lists a stretch of neighbouring
//! columns. So planes wait for each other twice in a tile, however the columns lie.

use cubecl::prelude::*;

use super::{
    layout::{RowLayout, element_offset},
    registers::Loaded,
    stream::{Floor, StreamBlueprint},
    team::{Shape, Team},
};
use crate::topk::{
    element::{Element, ordered_key},
    options::Search,
    search::Cursor,
};

/// Elements of a tile that a unit reads, and neighbouring columns that it lists: a bit each.
pub(crate) const TILE_ITEMS: usize = 32;

/// Elements above the threshold and level with it, a bit each.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Reaching {
    above: u32,
    level: u32,
}

#[cube]
impl Reaching {
    /// Of the elements that this unit holds.
    fn new<E: Element, N: Size>(
        loaded: &Loaded<E, N>,
        floor: &Floor<E>,
        #[comptime] floats: bool,
        #[comptime] search: Search,
    ) -> Reaching {
        let width = comptime!(loaded.team.shape.width);
        let mut above = 0u32;
        let mut level = 0u32;
        #[unroll]
        for load in 0..comptime!(loaded.team.shape.loads) {
            let mut load_above = 0u32;
            let mut load_level = 0u32;
            #[unroll]
            for i in 0..width {
                let item = comptime!(load * width + i);
                let value = loaded.value(item);
                let bit = comptime!(1u32 << item);
                if comptime!(floats) {
                    let over = is_above::<E>(value, floor.value, search.largest);
                    load_above |= select(over, bit, 0u32);
                } else {
                    let key = ordered_key::<E>(value, search.largest);
                    load_above |= select(key > floor.key, bit, 0u32);
                    load_level |= select(key == floor.key, bit, 0u32);
                }
            }
            let inside = loaded.team.loads(load);
            above |= select(inside, load_above, 0u32);
            level |= select(inside, load_level, 0u32);
        }
        Reaching { above, level }
    }

    /// Both counts in one word, 16 bits each.
    fn counts(&self) -> u32 {
        self.above.count_ones() + (self.level.count_ones() << 16)
    }
}

/// Whether a float is above a normal one, NaN as the greatest of all.
#[cube]
fn is_above<E: Element>(value: E, floor: f32, #[comptime] largest: bool) -> bool {
    let single = E::single(value);
    if comptime!(largest) {
        // By its bits: shader compilers may take comparisons of NaN for anything.
        single > floor || (u32::reinterpret(single) & 0x7fff_ffffu32) > 0x7f80_0000u32
    } else {
        -single > floor
    }
}

/// The words of a plane's part, turned from the order of units, loads and elements to that of columns.
#[cube]
fn in_order(words: &Shared<[u32]>, #[comptime] part: Shape) -> u32 {
    let width = comptime!(part.width as u32);
    let group = comptime!(TILE_ITEMS as u32 / width);
    let groups = comptime!(part.lanes / group);
    let first = UNIT_POS_Y * part.lanes + UNIT_POS_X % groups * group;
    let shift = UNIT_POS_X / groups * width;
    let mut word = 0u32;
    #[unroll]
    for unit in 0..group {
        let own = words[(first + unit) as usize] >> shift;
        word |= (own & comptime!(u32::MAX >> (32 - width))) << comptime!(unit * width);
    }
    word
}

/// Lists all elements above `floor` and, but for floats, the first `k` level with it; says how many these
/// are, also where there is no room for them.
#[cube]
#[allow(clippy::too_many_arguments)]
pub(super) fn list_reaching<E: Element, N: Size>(
    input: &[Vector<E, N>],
    start: usize,
    layout: &RowLayout,
    floor: &Floor<E>,
    k: u32,
    columns: &mut Shared<[u32]>,
    #[comptime] floats: bool,
    #[comptime] blueprint: StreamBlueprint,
) -> u32 {
    let part = comptime!(blueprint.part);
    let units = comptime!(blueprint.list.lanes);
    let part_cols = comptime!(part.lanes * TILE_ITEMS as u32);
    let capacity = comptime!(blueprint.capacity() as u32);
    let mut above_words = Shared::<[u32]>::new_slice(units as usize);
    let mut level_words =
        Shared::<[u32]>::new_slice(comptime!(if floats { 4 } else { units as usize }));
    let mut slots = Shared::<[u32]>::new_slice(blueprint.list.planes as usize);
    let mut totals = Cursor { above: 0, level: 0 };
    let mut tile = 0u32;
    while tile < layout.cols {
        let first = tile + UNIT_POS_Y * part_cols;
        let team = Team::new(layout.cols - min(first, layout.cols), part);
        let from = start + element_offset(first, layout, blueprint.memory.strided);
        let loaded = Loaded::<E, N>::new(
            input,
            from,
            layout,
            team,
            blueprint.memory.strided,
            blueprint.memory.search,
        );
        let own = Reaching::new::<E, N>(&loaded, floor, floats, blueprint.memory.search);
        above_words[UNIT_POS as usize] = own.above;
        if comptime!(!floats) {
            level_words[UNIT_POS as usize] = own.level;
        }
        sync_cube();
        let mut level = 0u32;
        if comptime!(!floats) {
            level = in_order(&level_words, part);
        }
        let stretch = Reaching {
            above: in_order(&above_words, part),
            level,
        };
        let counts = stretch.counts();
        let sums = team.running_sum(counts);
        if UNIT_POS_X == comptime!(part.lanes - 1) {
            slots[UNIT_POS_Y as usize] = sums;
        }
        // Words are not written again, nor slots, before all have come here and there.
        sync_cube();
        let mut before = sums - counts;
        let mut all = 0u32;
        #[unroll]
        for plane in 0..comptime!(blueprint.list.planes) {
            let count = slots[plane as usize];
            before += select(plane < UNIT_POS_Y, count, 0u32);
            all += count;
        }
        let mut cursor = Cursor {
            above: totals.above + (before & 0xffff),
            level: totals.level + (before >> 16),
        };
        let mut rest = stretch.above | stretch.level;
        while rest != 0 {
            let lowest = rest & (!rest + 1);
            let is_above = stretch.above & lowest != 0;
            let slot = cursor.above + min(cursor.level, k);
            if (is_above || cursor.level < k) && slot < capacity {
                let place = (lowest - 1).count_ones();
                columns[slot as usize] = tile + UNIT_POS * comptime!(TILE_ITEMS as u32) + place;
            }
            cursor.above += select(is_above, 1u32, 0u32);
            cursor.level += select(is_above, 0u32, 1u32);
            rest ^= lowest;
        }
        totals.above += all & 0xffff;
        totals.level += all >> 16;
        tile += comptime!(units * TILE_ITEMS as u32);
    }
    sync_cube();
    totals.above + min(totals.level, k)
}
