//! A row in the registers of a team, as values that compare: floats or keys, greater ones wanted.

use cubecl::prelude::*;

use super::{
    members::{Members, bit},
    strip::Strip,
    team::Team,
};

/// The items of this unit, the least of all past the end of the row.
#[derive(CubeType)]
pub(super) struct Held<T: Numeric> {
    pub items: Sequence<T>,
    pub team: Team,
}

/// Members among the items of this unit, a bit each, the first item's the highest.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Choice {
    pub bits: u32,
    /// Whether they are the k wanted.
    pub valid: bool,
    /// Whether they are only in rows without values that are [unsure](Held::has_unsure).
    pub near_zero: bool,
}

#[cube]
impl<T: Numeric> Held<T> {
    pub fn new(items: Sequence<T>, team: Team) -> Held<T> {
        Held::<T> { items, team }
    }

    /// How many items of the row reach `value`, as a float.
    pub fn count(&self, value: T) -> f32 {
        let mut counts = 0.0f32;
        let mut others = 0.0f32;
        #[unroll]
        for item in 0..self.items.len() {
            let count = select(self.items[item] >= value, 1.0f32, 0.0f32);
            // Two sums that do not wait for each other.
            if comptime!(item % 2 == 0) {
                counts += count;
            } else {
                others += count;
            }
        }
        self.team.sum::<f32>(counts + others)
    }

    /// The items of this unit that reach `value`, a bit each.
    pub fn reaching(&self, value: T) -> u32 {
        let mut bits = 0u32;
        #[unroll]
        for item in 0..self.items.len() {
            bits |= select(self.items[item] >= value, comptime!(bit(item)), 0u32);
        }
        bits
    }

    /// How many items of the row are chosen.
    pub fn total(&self, bits: u32) -> u32 {
        self.team.sum::<u32>(bits.count_ones())
    }

    /// All items `above` a threshold, then the first of the others that `reach` it, k in all.
    pub fn cut(&self, reach: u32, above: u32, k: u32) -> Choice {
        let over = self.total(above);
        let quota = k - min(over, k);
        let level = reach ^ above;
        let levels = self.total(level);
        let first = if comptime!(self.team.shape.regroups()) {
            Strip::new(level, &self.team).first(quota, &self.team)
        } else {
            Members::new(level, self.team, true).first(quota)
        };
        Choice {
            bits: above | first,
            valid: over < k && over + levels >= k,
            near_zero: false.runtime(),
        }
    }

    /// All items above `high`, then the first of those from `low` on, k in all.
    pub fn choose(&self, low: T, high: T, k: u32) -> u32 {
        let mut above = 0u32;
        #[unroll]
        for item in 0..self.items.len() {
            above |= select(self.items[item] > high, comptime!(bit(item)), 0u32);
        }
        self.cut(self.reaching(low), above, k).bits
    }
}
