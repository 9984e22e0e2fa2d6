//! RTop-K's Algorithm 2 on a row of floats in registers.

use cubecl::prelude::*;

use super::{
    held::{Choice, Held, HeldExpand},
    members::{bit, mask},
    reached::LEAST_SURE,
};

#[cube]
impl Held<f32> {
    /// The values that reach the threshold of Algorithm 2, where the row is finite and its midpoints are
    /// far from zero.
    pub fn halve(&self, k: u32, max_iter: u32) -> Choice {
        let mut low = f32::INFINITY.runtime();
        let mut high = f32::NEG_INFINITY.runtime();
        let mut squares = 0.0f32;
        #[unroll]
        for item in 0..self.items.len() {
            let value = self.items[item];
            let holds = self.team.holds(item);
            low = min(low, select(holds, value, f32::INFINITY));
            high = max(high, value);
            squares += select(holds, value * value, 0.0f32);
        }
        low = self.team.min::<f32>(low);
        high = self.team.max::<f32>(high);
        // False for NaN as well.
        let mut usable = self.team.sum::<f32>(squares) < f32::MAX;
        let mut bits = self.held();
        for _ in 0..max_iter {
            let middle = (low + high) * 0.5;
            usable = usable && f32::abs(middle) >= LEAST_SURE;
            let reach = self.reach(middle);
            let enough = reach.total >= k;
            bits = select(enough, reach.bits, bits);
            low = select(enough, middle, low);
            high = select(enough, high, middle);
        }
        Choice {
            bits,
            valid: usable,
            near_zero: false.runtime(),
        }
    }

    /// The items of this unit that lie in the row, a bit each.
    fn held(&self) -> u32 {
        let mut bits = comptime!(mask(self.items.len() as u32)).runtime();
        if comptime!(self.team.ragged || !self.team.shape.exact_fit) {
            bits = 0u32;
            #[unroll]
            for item in 0..self.items.len() {
                bits |= select(self.team.holds(item), comptime!(bit(item)), 0u32);
            }
        }
        bits
    }
}
