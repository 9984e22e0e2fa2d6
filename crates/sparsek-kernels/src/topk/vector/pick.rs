//! The k best of few candidates, each of which is compared with all.

use cubecl::prelude::*;

use super::{candidates::Candidates, crew::Crew};

/// Most candidates of which each is compared with all. Of 192 of 128 members histograms take less: the cube 11 µs instead of 13, 19 instead
/// of 22 (`2**24x128` and `2**28x128` of f16, NVIDIA H200).
pub(super) const FEW: u32 = 64;

/// How the units of a cube go through all pairs of so many items: a unit has every `step`th item, and compares it with some of all, the
/// same ones as the other units of its plane.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Pairs {
    item: u32,
    step: u32,
    from: u32,
    to: u32,
}

#[cube]
impl Pairs {
    fn new(count: u32, crew: &Crew) -> Pairs {
        let plane = comptime!(crew.shape.plane_lanes());
        let units = comptime!(crew.shape.lanes);
        let step = min(count.div_ceil(plane) * plane, units);
        let parts = units / step;
        let part = UNIT_POS / step;
        let share = count.div_ceil(parts);
        let from = min(part * share, count);
        let item = UNIT_POS % step;
        Pairs {
            item: select(part < parts, item, count),
            step,
            from,
            to: min(from + share, count),
        }
    }
}

/// Members by their slots: as they were found, and in order.
#[derive(CubeType)]
pub(super) struct Lists {
    pub found: Shared<[u32]>,
    pub ordered: Shared<[u32]>,
}

#[cube]
impl Lists {
    pub fn new(#[comptime] members: usize) -> Lists {
        Lists {
            found: Shared::<[u32]>::new_slice(members),
            ordered: Shared::<[u32]>::new_slice(members),
        }
    }

    /// Puts those that were found, which all units see, in order. The counts are zero before.
    pub fn arrange(&self, k: u32, counts: &Shared<[Atomic<u32>]>, crew: &Crew) {
        let mut ordered = self.ordered.clone();
        let pairs = Pairs::new(k, crew);
        let mut item = pairs.item;
        while item < k {
            let own = self.found[item as usize];
            let mut less = 0u32;
            for other in pairs.from..pairs.to {
                less += select(self.found[other as usize] < own, 1u32, 0u32);
            }
            counts[item as usize].fetch_add(less);
            item += pairs.step;
        }
        sync_cube();
        let mut member = UNIT_POS;
        while member < k {
            let place = counts[member as usize].load();
            ordered[place as usize] = self.found[member as usize];
            member += comptime!(crew.shape.lanes);
        }
        sync_cube();
    }
}

/// Lists the `k` best of so many candidates, at least as many, which all units see, in order: greater ones, and of equal ones those of
/// lesser slots. The counts are zero before.
#[cube]
pub(super) fn pick<K: Int>(
    candidates: &Candidates<K>,
    count: u32,
    k: u32,
    lists: &Lists,
    counts: &Shared<[Atomic<u32>]>,
    crew: &Crew,
) {
    let pairs = Pairs::new(count, crew);
    let mut item = pairs.item;
    while item < count {
        let key = candidates.keys[item as usize];
        let slot = candidates.slots[item as usize];
        let mut ahead = 0u32;
        for other in pairs.from..pairs.to {
            let rival = candidates.keys[other as usize];
            let before = rival > key || (rival == key && candidates.slots[other as usize] < slot);
            ahead += select(before, 1u32, 0u32);
        }
        counts[item as usize].fetch_add(ahead);
        item += pairs.step;
    }
    sync_cube();
    let mut found = lists.found.clone();
    let mut candidate = UNIT_POS;
    while candidate < count {
        let place = counts[candidate as usize].load();
        counts[candidate as usize].store(0u32);
        if place < k {
            found[place as usize] = candidates.slots[candidate as usize];
        }
        candidate += comptime!(crew.shape.lanes);
    }
    sync_cube();
    lists.arrange(k, counts, crew);
}
