//! The part of a row's range of values in which its threshold is looked for.

use cubecl::prelude::*;

use crate::topk::search::{rough_inverse, rough_root};

/// Standard deviations from the mean within which the threshold is looked for.
const WIDTH: f32 = 3.5;
/// Stands for the count at a high end that has not been counted.
pub(super) const UNCOUNTED: f32 = 0.5;
/// Stands for no values at a high end that has been counted.
const NONE: f32 = 0.25;

/// At least k values reach `low`, fewer reach `high`. Ends that have not been counted are guesses.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Span {
    pub low: f32,
    pub high: f32,
    /// How many values reach `low`: all of them where that has not been counted.
    pub low_count: f32,
    pub high_count: f32,
}

#[cube]
impl Span {
    /// Where the thresholds of `cols` normal values lie.
    pub fn new(mean: f32, spread: f32, cols: u32) -> Span {
        Span {
            low: mean - WIDTH * spread,
            high: mean + WIDTH * spread,
            low_count: f32::cast_from(cols),
            high_count: UNCOUNTED.runtime(),
        }
    }

    /// Moves an end to a value that `count` values reach.
    pub fn narrow(&mut self, value: f32, count: f32, enough: bool) {
        self.low = select(enough, value, self.low);
        self.low_count = select(enough, count, self.low_count);
        self.high = select(enough, self.high, value);
        self.high_count = select(enough, self.high_count, max(count, NONE));
    }

    /// Values between the ends.
    pub fn gap(&self) -> f32 {
        self.low_count - self.high_count
    }

    /// The values lie at or above this as far as is known.
    pub fn floor(&self, cols: u32) -> f32 {
        let counted = self.low_count < f32::cast_from(cols);
        select(counted, self.low, f32::NEG_INFINITY)
    }

    /// Fewer than k values are known to reach this.
    pub fn ceiling(&self) -> f32 {
        select(self.high_count == UNCOUNTED, f32::INFINITY, self.high)
    }

    /// Whether one value at the high end would be the last one wanted.
    pub fn lacks_one(&self, wanted: f32) -> bool {
        self.high_count + 1.0 >= wanted
    }

    /// Where `wanted` values would reach, linear in the count.
    pub fn linear(&self, wanted: f32) -> f32 {
        self.at((self.low_count - wanted) * rough_inverse(self.gap()))
    }

    /// Where they would, linear in the root of the count, as in the tail of normal values.
    pub fn rooted(&self, wanted: f32) -> f32 {
        let low = rough_root(self.low_count);
        let high = rough_root(self.high_count);
        self.at((low - rough_root(wanted)) * rough_inverse(low - high))
    }

    fn at(&self, share: f32) -> f32 {
        self.low + (self.high - self.low) * max(min(share, 0.95), 0.05)
    }

    /// A value moved inside.
    pub fn inside(&self, value: f32) -> f32 {
        let margin = 0.02 * (self.high - self.low);
        max(min(value, self.high - margin), self.low + margin)
    }
}
