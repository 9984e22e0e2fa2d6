//! One pass over a row that lists the columns whose elements reach a threshold, in index order.

use cubecl::prelude::*;

use super::{
    held::Held,
    layout::{RowLayout, element_offset},
    members::mask,
    registers::Loaded,
    stream::StreamBlueprint,
    team::Team,
};
use crate::topk::{element::Element, search::Cursor};

/// Elements of a part above the threshold and level with it, a bit each.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Reaching {
    above: u32,
    level: u32,
}

#[cube]
impl Reaching {
    fn new<K: Numeric>(keys: &Held<K>, floor: K) -> Reaching {
        let mut above = 0u32;
        let mut level = 0u32;
        #[unroll]
        for item in 0..keys.items.len() {
            let key = keys.items[item];
            let bit = comptime!(1u32 << item);
            above |= select(key > floor, bit, 0u32);
            level |= select(key == floor && keys.team.holds(item), bit, 0u32);
        }
        Reaching { above, level }
    }

    /// Both counts in one word, 16 bits each.
    fn counts(&self, #[comptime] first: u32, #[comptime] width: u32) -> u32 {
        let mask = comptime!(mask(width));
        let above = (self.above >> first) & mask;
        let level = (self.level >> first) & mask;
        above.count_ones() + (level.count_ones() << 16)
    }
}

/// Lists all elements above `floor` and the first `k` level with it; says how many these are, also where
/// there is no room for them.
#[cube]
#[allow(clippy::too_many_arguments)]
pub(super) fn list_reaching<E: Element, N: Size>(
    input: &[Vector<E, N>],
    start: usize,
    layout: &RowLayout,
    floor: E::Key,
    k: u32,
    columns: &mut Shared<[u32]>,
    #[comptime] blueprint: StreamBlueprint,
) -> u32 {
    let part = comptime!(blueprint.part);
    let planes = comptime!(blueprint.list.planes);
    let part_cols = comptime!(part.lanes * part.items() as u32);
    let mut slots = Shared::<[u32]>::new_slice(comptime!(2 * planes as usize));
    // Slots are written in turns, so that one wait for the others suffices.
    let mut turn = 0u32;
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
        let reaching = Reaching::new::<E::Key>(&loaded.keys().held, floor);
        let own = team.sum::<u32>(reaching.counts(0u32, comptime!(part.items() as u32)));
        if UNIT_POS_X == 0 {
            slots[(turn + UNIT_POS_Y) as usize] = own;
        }
        sync_cube();
        let mut before = 0u32;
        let mut all = 0u32;
        #[unroll]
        for plane in 0..planes {
            let count = slots[(turn + plane) as usize];
            before += select(plane < UNIT_POS_Y, count, 0u32);
            all += count;
        }
        if own > 0 {
            list_part(
                &reaching, &totals, before, &team, first, k, columns, blueprint,
            );
        }
        totals.above += all & 0xffff;
        totals.level += all >> 16;
        turn = planes - turn;
        tile += comptime!(part_cols * planes);
    }
    sync_cube();
    totals.above + min(totals.level, k)
}

/// Lists a plane's part of the row, with `before` counted in the parts of the tile before it.
#[cube]
#[allow(clippy::too_many_arguments)]
fn list_part(
    reaching: &Reaching,
    totals: &Cursor,
    before: u32,
    team: &Team,
    first: u32,
    k: u32,
    columns: &mut Shared<[u32]>,
    #[comptime] blueprint: StreamBlueprint,
) {
    let width = comptime!(blueprint.part.width as u32);
    let capacity = comptime!(blueprint.capacity() as u32);
    let mut above = totals.above + (before & 0xffff);
    let mut level = totals.level + (before >> 16);
    #[unroll]
    for load in 0..comptime!(blueprint.part.loads) {
        let own = reaching.counts(comptime!(load as u32 * width), width);
        if plane_any(own > 0) {
            let sums = team.running_sum(own);
            let before = sums - own;
            let mut own_above = above + (before & 0xffff);
            let mut own_level = level + (before >> 16);
            #[unroll]
            for i in 0..width {
                let item = comptime!(load as u32 * width + i);
                let is_above = reaching.above & comptime!(1u32 << item) != 0;
                let is_level = reaching.level & comptime!(1u32 << item) != 0;
                let slot = own_above + min(own_level, k);
                if (is_above || (is_level && own_level < k)) && slot < capacity {
                    columns[slot as usize] = first + team.item_column(comptime!(item as usize));
                }
                own_above += select(is_above, 1u32, 0u32);
                own_level += select(is_level, 1u32, 0u32);
            }
            let all = plane_shuffle(sums, comptime!(blueprint.part.lanes - 1));
            above += all & 0xffff;
            level += all >> 16;
        }
    }
}
