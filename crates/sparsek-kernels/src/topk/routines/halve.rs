//! RTop-K's Algorithm 2 on a row of floats in registers.

use cubecl::prelude::*;

use super::{
    guess::LEAST_NORMAL,
    held::{Choice, Held, HeldExpand},
};

/// Bounds from which on subnormals do not change a midpoint.
const LEAST_MIDDLE: f32 = 1e-30;

#[cube]
impl Held<f32> {
    /// The values that reach the threshold of Algorithm 2, where the row is finite and its midpoints are
    /// far from zero.
    pub fn halve(&self, k: u32, max_iter: u32) -> Choice {
        let wanted = f32::cast_from(k);
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
        for _ in 0..max_iter {
            let middle = (low + high) * 0.5;
            usable = usable && f32::abs(middle) >= LEAST_MIDDLE;
            let enough = self.count(middle) >= wanted;
            low = select(enough, middle, low);
            high = select(enough, high, middle);
        }
        let bits = self.reaching(low);
        // A subnormal row minimum may have been taken for zero.
        let normal = f32::abs(low) >= LEAST_NORMAL;
        Choice {
            bits,
            valid: usable && normal && self.total(bits) >= k,
        }
    }
}
