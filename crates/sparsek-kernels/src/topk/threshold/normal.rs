//! Normal model and threshold bracket. The kth of `cols` normal values lies `quantile` deviations
//! above the mean; each extra element moves it by `slope`.

use cubecl::prelude::*;

use super::register_row::{RegisterRow, RegisterRowExpand};
use crate::primitives::{
    approx::{approx_inverse, approx_ln, approx_sqrt},
    infinity::infinity,
};

/// In standard deviations.
const WIDTH: f32 = 3.5;
/// Count of a high end not counted.
pub(crate) const UNCOUNTED: f32 = 0.5;
/// Count of a high end without values.
const NONE: f32 = 0.25;

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Normal {
    pub quantile: f32,
    pub slope: f32,
    pub inverse: f32,
    /// Of the count at the threshold.
    pub deviation: f32,
}

/// Quantile: Abramowitz and Stegun, 26.2.23.
pub(crate) fn normal_launch(k: usize, cols: usize) -> NormalLaunch {
    let cols = cols.max(1) as f64;
    let share = ((k as f64 - 0.5) / cols).clamp(0.25 / cols, 1.0 - 0.25 / cols);
    let tail = share.min(1.0 - share);
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let distance = t - above / below;
    let quantile = if share < 0.5 { distance } else { -distance };
    let density = (-0.5 * quantile * quantile).exp() / (2.0 * std::f64::consts::PI).sqrt();
    NormalLaunch::new(
        quantile as f32,
        (1.0 / (cols * density)) as f32,
        (1.0 / cols) as f32,
        (cols * share * (1.0 - share)).sqrt() as f32,
    )
}

/// k and `cols` ≥ 1.
#[cube]
pub(crate) fn normal_on_device(k: u32, cols: u32) -> Normal {
    let cols = f32::cast_from(cols);
    let inverse = 1.0 / cols;
    let least = 0.25 * inverse;
    let share = max(min((f32::cast_from(k) - 0.5) * inverse, 1.0 - least), least);
    let tail = min(share, 1.0 - share);
    let t = f32::sqrt(2.0 * approx_ln(1.0 / tail));
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let distance = t - above / below;
    // Density over tail.
    let hazard = 0.5 * (distance + f32::sqrt(distance * distance + 2.546_479));
    Normal {
        quantile: select(share < 0.5, distance, -distance),
        slope: inverse / (tail * hazard),
        inverse,
        deviation: f32::sqrt(cols * share * (1.0 - share)),
    }
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Moments {
    pub sum: f32,
    pub squares: f32,
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Model {
    pub mean: f32,
    /// Infinite if values or squares are.
    pub spread: f32,
}

#[cube]
impl Model {
    pub fn finite(&self) -> bool {
        self.spread < infinity::<f32>()
    }

    pub fn usable(&self) -> bool {
        self.finite() && self.spread > 0.0
    }

    /// No NaN, nor infinities of both signs.
    pub fn is_number(&self) -> bool {
        f32::abs(self.mean) <= infinity::<f32>()
    }

    pub fn value(&self, normal: &Normal) -> f32 {
        self.mean + normal.quantile * self.spread
    }
}

#[cube]
impl RegisterRow<f32> {
    pub fn moments(&self) -> Moments {
        let mut sum = 0.0f32;
        let mut squares = 0.0f32;
        let mut others = 0.0f32;
        let mut other_squares = 0.0f32;
        #[unroll]
        for item in 0..self.items.len() {
            let value = select(self.team.holds(item), self.items[item], 0.0f32);
            if comptime!(item % 2 == 0) {
                sum += value;
                squares += value * value;
            } else {
                others += value;
                other_squares += value * value;
            }
        }
        Moments { sum: sum + others, squares: squares + other_squares }
    }

    pub fn model(&self, own: &Moments, normal: &Normal) -> Model {
        let mean = self.team.sum::<f32>(own.sum) * normal.inverse;
        let square = self.team.sum::<f32>(own.squares) * normal.inverse;
        let spread = f32::sqrt(max(square - mean * mean, 0.0));
        Model { mean, spread: select(square < f32::MAX, spread, infinity::<f32>()) }
    }
}

/// At least k values reach `low`, fewer `high`; uncounted ends are guesses.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct ValueBracket {
    pub low: f32,
    pub high: f32,
    pub low_count: f32,
    pub high_count: f32,
}

#[cube]
impl ValueBracket {
    pub fn new(mean: f32, spread: f32, cols: u32) -> ValueBracket {
        ValueBracket {
            low: mean - WIDTH * spread,
            high: mean + WIDTH * spread,
            low_count: f32::cast_from(cols),
            high_count: UNCOUNTED.runtime(),
        }
    }

    pub fn narrow(&mut self, value: f32, count: f32, enough: bool) {
        self.low = select(enough, value, self.low);
        self.low_count = select(enough, count, self.low_count);
        self.high = select(enough, self.high, value);
        self.high_count = select(enough, self.high_count, max(count, NONE));
    }

    pub fn gap(&self) -> f32 {
        self.low_count - self.high_count
    }

    /// Proven bound, or -inf.
    pub fn floor(&self, cols: u32) -> f32 {
        let counted = self.low_count < f32::cast_from(cols);
        select(counted, self.low, -infinity::<f32>())
    }

    /// Proven bound, or inf.
    pub fn ceiling(&self) -> f32 {
        select(self.high_count == UNCOUNTED, infinity::<f32>(), self.high)
    }

    pub fn lacks_one(&self, wanted: f32) -> bool {
        self.high_count + 1.0 >= wanted
    }

    pub fn linear(&self, wanted: f32) -> f32 {
        self.at((self.low_count - wanted) * approx_inverse(self.gap()))
    }

    /// Suits a normal tail.
    pub fn rooted(&self, wanted: f32) -> f32 {
        let low = approx_sqrt(self.low_count);
        let high = approx_sqrt(self.high_count);
        self.at((low - approx_sqrt(wanted)) * approx_inverse(low - high))
    }

    fn at(&self, share: f32) -> f32 {
        self.low + (self.high - self.low) * max(min(share, 0.95), 0.05)
    }

    pub fn inside(&self, value: f32) -> f32 {
        let margin = 0.02 * (self.high - self.low);
        max(min(value, self.high - margin), self.low + margin)
    }
}
