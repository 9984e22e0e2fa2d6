//! Early stop, RTop-K's Algorithm 2, on floats in registers.
//!
//! ```text
//! [low, high] <- range of the row
//! repeat max_iter times: middle <- (low + high) / 2
//!     if count(middle) >= k: low <- middle else: high <- middle
//! ```

use cubecl::prelude::*;

use super::register_row::{Guess, LEAST_SURE, RegisterRow, RegisterRowExpand};
use crate::primitives::bit_set::{bit, mask};

/// 2^127: sums of two lesser floats are finite.
const GREATEST: f32 = 1.701_411_8e38;

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Bisection {
    low: f32,
    high: f32,
    /// Finite, and no midpoint too near zero to compare.
    far: bool,
}

#[cube]
impl Bisection {
    fn middle(&self) -> f32 {
        (self.low + self.high) * 0.5
    }

    fn narrow(&mut self, enough: bool) {
        let middle = self.middle();
        self.far = self.far && f32::abs(middle) >= LEAST_SURE;
        self.low = select(enough, middle, self.low);
        self.high = select(enough, self.high, middle);
    }
}

#[cube]
impl RegisterRow<f32> {
    /// By bits: positive floats are greatest as signed integers, negative ones as unsigned. NaN and
    /// infinities exceed both.
    fn range(&self) -> Bisection {
        let mut greatest = i32::MIN.runtime();
        let mut least = 0u32;
        #[unroll]
        for item in 0..self.items.len() {
            let holds = self.team.holds(item);
            let value = self.items[item];
            greatest = max(greatest, select(holds, i32::reinterpret(value), i32::MIN));
            least = max(least, select(holds, u32::reinterpret(value), 0));
        }
        let mut greatest = u32::reinterpret(self.team.max::<i32>(greatest));
        let mut least = self.team.max::<u32>(least);
        let all_negative = greatest >> 31 == 1;
        let all_positive = least >> 31 == 0;
        if plane_any(all_negative || all_positive) {
            let closest = self.closest_to_zero();
            greatest = select(all_negative, closest, greatest);
            least = select(all_positive, closest, least);
        }
        let magnitude = max(greatest << 1, least << 1);
        Bisection {
            low: f32::reinterpret(least),
            high: f32::reinterpret(greatest),
            far: magnitude < comptime!(GREATEST.to_bits() << 1),
        }
    }

    fn closest_to_zero(&self) -> u32 {
        let mut closest = u32::MAX.runtime();
        #[unroll]
        for item in 0..self.items.len() {
            let bits = u32::reinterpret(self.items[item]);
            closest = min(closest, select(self.team.holds(item), bits, u32::MAX));
        }
        self.team.min::<u32>(closest)
    }

    /// Selects the values at or above the threshold; valid for finite rows without midpoints near
    /// zero.
    pub fn early_stop(&self, k: u32, max_iter: u32) -> Guess {
        let mut bisection = self.range();
        // Those at or above the last sufficient midpoint, or all.
        let mut bits = self.items_in_row();
        for _ in 0..max_iter {
            let reach = self.reach(bisection.middle());
            let enough = reach.total >= k;
            bits = select(enough, reach.bits, bits);
            bisection.narrow(enough);
        }
        Guess { bits, valid: bisection.far, near_zero: false.runtime() }
    }

    fn items_in_row(&self) -> u32 {
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
