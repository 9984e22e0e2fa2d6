//! First top-k of one cube, in registers. With groups: the k best groups, then their delegates.

use cubecl::prelude::*;

use super::{
    candidates::Workspace,
    types::{DelegateCounts, FinishConfig},
};
use crate::topk::threshold::{
    cube_reduce::CubeReduce,
    histogram::{KeySet, KeySetExpand, count_key, histogram_threshold},
    search::{Cursor, KeyRange},
};

#[derive(CubeType)]
struct RegisterKeys<K: Int> {
    keys: Array<K>,
    #[cube(comptime)]
    items: usize,
}

#[cube]
impl<K: Int> KeySet<K> for RegisterKeys<K> {
    fn count_keys(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<K>, shift: u32) {
        #[unroll]
        for item in 0..self.items {
            count_key::<K>(bins, self.keys[item], range, shift);
        }
    }
}

#[derive(CubeType)]
struct DelegateSet {
    groups: Shared<[u32]>,
    count: u32,
    k: u32,
    #[cube(comptime)]
    group: u32,
    #[cube(comptime)]
    items: usize,
    #[cube(comptime)]
    spacing: u32,
}

#[cube]
impl DelegateSet {
    fn place(&self, at: u32) -> u32 {
        if comptime!(self.group == 0) {
            at
        } else {
            let rank = at >> comptime!(self.group);
            let group = self.groups[min(rank, self.k - 1) as usize];
            let place =
                (group << comptime!(self.group)) + (at & comptime!((1u32 << self.group) - 1));
            select(rank < self.k, place, self.count)
        }
    }

    fn select_best<K: Int, D: Size>(
        &self,
        delegates: &[Vector<K, D>],
        known: &KeyRange<K>,
        places: &mut Shared<[u32]>,
        workspace: &Workspace<K>,
        #[comptime] max_k: usize,
    ) -> KeyRange<K> {
        let items = comptime!(self.items);
        let first = UNIT_POS * comptime!(items as u32);
        let mut greatest = K::min_value();
        let mut keys = Array::<K>::new(items);
        let width = D::value().comptime();
        #[unroll]
        for load in 0..comptime!(items / width) {
            let at = self.place(first + comptime!((load * width) as u32));
            let mut loaded = Vector::<K, D>::new(K::min_value());
            if at < self.count {
                loaded = delegates[at as usize / width];
            }
            #[unroll]
            for item in 0..width {
                let there = at + comptime!(item as u32) < self.count;
                let key = select(there, loaded.extract(item), K::min_value());
                greatest = max(greatest, key);
                keys[comptime!(load * width + item)] = key;
            }
        }
        let range = if comptime!(self.group == 0) {
            workspace.reduce.range_of_best::<K>(greatest, comptime!(max_k as u32))
        } else {
            KeyRange::<K> { low: known.low, high: known.high }
        };
        let of_unit = RegisterKeys::<K> { keys, items };
        let threshold = histogram_threshold::<K, RegisterKeys<K>>(
            &of_unit,
            &range,
            self.k,
            &workspace.bins,
            &workspace.reduce,
            self.spacing,
        );
        let quota = self.k - threshold.above;
        // Counts ≤ 2^15 fit 16 bits.
        let mut own = Cursor { above: 0, level: 0 };
        #[unroll]
        for item in 0..items {
            own.place::<K>(of_unit.keys[item], &threshold, quota);
        }
        let packed = own.packed();
        let before = workspace.reduce.prefix_sum(packed).before;
        if packed > 0 {
            let mut cursor = Cursor { above: before & 0xffff, level: before >> 16 };
            #[unroll]
            for item in 0..items {
                let key = of_unit.keys[item];
                if key >= threshold.low {
                    let place = cursor.place::<K>(key, &threshold, quota);
                    if place.member {
                        let at = self.place(first + comptime!(item as u32));
                        places[place.position as usize] = at;
                    }
                }
            }
        }
        KeyRange::<K> { low: threshold.low, high: range.high }
    }
}

#[cube]
pub(super) fn select_delegates<K: Int, D: Size>(
    delegates: &[Vector<K, D>],
    groups: ComptimeOption<&[Vector<K, D>]>,
    places: &mut Shared<[u32]>,
    counts: &DelegateCounts,
    workspace: &Workspace<K>,
    #[comptime] config: FinishConfig,
) -> KeyRange<K> {
    let max_k = comptime!(config.max_k);
    let all = KeyRange::<K> { low: K::min_value(), high: K::max_value() };
    let in_registers = DelegateSet {
        groups: places.clone(),
        count: counts.in_registers,
        k: counts.k,
        group: 0u32,
        items: config.delegate_items,
        spacing: config.spacing,
    };
    #[comptime]
    match groups {
        ComptimeOption::Some(groups) => {
            let mut selected = Shared::<[u32]>::new_slice(max_k);
            let known =
                in_registers.select_best::<K, D>(groups, &all, &mut selected, workspace, max_k);
            sync_cube();
            let grouped = DelegateSet {
                groups: selected,
                count: counts.delegates,
                k: counts.k,
                group: config.group_exponent,
                items: config.grouped_items,
                spacing: config.spacing,
            };
            grouped.select_best::<K, D>(delegates, &known, places, workspace, max_k)
        }
        ComptimeOption::None => {
            in_registers.select_best::<K, D>(delegates, &all, places, workspace, max_k)
        }
    }
}

#[cube]
pub(super) fn take_selected_delegates<K: Int, D: Size>(
    best: &[Vector<K, D>],
    selected: &[u32],
    places: &mut Shared<[u32]>,
    counts: &DelegateCounts,
    reduce: &CubeReduce,
    #[comptime] config: FinishConfig,
) -> KeyRange<K> {
    let mut low = K::max_value();
    let mut high = K::min_value();
    let mut rank = UNIT_POS;
    while rank < counts.k {
        let key = best[rank as usize].extract(0usize);
        low = min(low, key);
        high = max(high, key);
        places[rank as usize] = selected[rank as usize];
        rank += comptime!(config.shape.lanes);
    }
    reduce.range::<K>(low, high)
}
