//! A row in the registers of a team, as values that compare: floats or keys, greater ones wanted.

use cubecl::prelude::*;

use super::{members::Members, team::Team};

/// The items of this unit, the least of all past the end of the row.
#[derive(CubeType)]
pub(super) struct Held<T: Numeric> {
    pub items: Sequence<T>,
    pub team: Team,
}

/// Members among the items of this unit, a bit each.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Choice {
    pub bits: u32,
    /// Whether they are the k wanted.
    pub valid: bool,
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
            bits |= select(self.items[item] >= value, comptime!(1u32 << item), 0u32);
        }
        bits
    }

    /// How many items of the row are chosen.
    pub fn total(&self, bits: u32) -> u32 {
        self.team.sum::<u32>(bits.count_ones())
    }

    /// Of the items that `reach` a threshold all above `high`, then the first of the others, k in all.
    pub fn cut(&self, reach: u32, high: T, k: u32) -> Choice {
        let mut above = 0u32;
        #[unroll]
        for item in 0..self.items.len() {
            above |= select(self.items[item] > high, comptime!(1u32 << item), 0u32);
        }
        let over = self.total(above);
        let levels = Members::new(reach ^ above, self.team, true);
        Choice {
            bits: above | levels.first(k - min(over, k)),
            valid: over < k && over + levels.total() >= k,
        }
    }

    /// All items above `high`, then the first of those from `low` on, k in all.
    pub fn choose(&self, low: T, high: T, k: u32) -> u32 {
        self.cut(self.reaching(low), high, k).bits
    }
}
