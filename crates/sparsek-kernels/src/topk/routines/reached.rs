//! Comparisons of a row of floats by the signs of differences: an addition and a shift for each value, and
//! the result is a bit for each.

use cubecl::prelude::*;

use super::{
    held::{Held, HeldExpand},
    members::mask,
};

/// 2^-100. Floats from here on differ by normal floats, of whose signs all devices are sure.
pub(super) const LEAST_SURE: f32 = 7.888_609e-31;
/// Stands for zero, of either sign.
const NEAR_ZERO: f32 = 0.5 * LEAST_SURE;

#[cube]
impl Held<f32> {
    /// The items that reach `value`. For values below [`LEAST_SURE`] it is a guess, but for zero in rows that
    /// have nothing else so small; for infinities and rows with NaN as well.
    pub fn reached(&self, value: f32) -> u32 {
        let offset = select(value == 0.0, NEAR_ZERO, -value);
        let mut misses = 0u32;
        #[unroll]
        for item in 0..self.items.len() {
            misses = (misses << 1) | (u32::reinterpret(self.items[item] + offset) >> 31);
        }
        let items = comptime!(self.items.len() as u32);
        (misses << comptime!(32 - items)) ^ comptime!(mask(items))
    }

    /// The items above `value`, as sure as [`Self::reached`].
    pub fn above(&self, value: f32) -> u32 {
        let value = select(value == 0.0, NEAR_ZERO, value);
        let mut signs = 0u32;
        #[unroll]
        for item in 0..self.items.len() {
            signs = (signs << 1) | (u32::reinterpret(value - self.items[item]) >> 31);
        }
        signs << comptime!(32 - self.items.len() as u32)
    }

    /// Whether the row has values so small that a comparison with zero is a guess.
    pub fn has_unsure(&self) -> bool {
        let mut found = 0.0f32;
        #[unroll]
        for item in 0..self.items.len() {
            let value = self.items[item];
            // Some devices take subnormals for zero.
            let unsure = f32::abs(value) < LEAST_SURE && u32::reinterpret(value) << 1 != 0;
            found = select(unsure, 1.0f32, found);
        }
        self.team.max::<f32>(found) > 0.0f32
    }
}
