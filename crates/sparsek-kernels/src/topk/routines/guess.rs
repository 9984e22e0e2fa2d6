//! Guessing the threshold of a row of floats: start where the kth of so many normal values would lie,
//! then interpolate between counts.
//!
//! Nothing depends on a guess but the speed: it is used only where exactly k values reach it, and the
//! exact search takes over where they do not.

use cubecl::prelude::*;

use super::values::{LEAST_NORMAL, Level, Values, ValuesExpand};
use crate::topk::search::rough_root;

/// Counts before the guess is given up. Of planes with four rows of 256 values 0.2% to 0.5% need more
/// when they are normal, at most 6% when uniform, exponential, half normal or of Student's t with three
/// degrees (18% log-normal with k = 64), in a simulation of 8,192 rows each.
const GUESSES: u32 = 6;
/// Standard deviations from the mean within which the threshold is looked for.
const SPAN: f32 = 3.5;

/// What normal values would do.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Normal {
    /// Standard deviations from the mean above which a share k / cols of them lies.
    pub quantile: f32,
    /// Standard deviations to go for each value that is counted too many there.
    pub slope: f32,
    /// 1 / cols.
    pub inverse: f32,
}

/// [`Normal`] for k of `cols` values: the quantile of Abramowitz and Stegun, 26.2.23.
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
    )
}

#[cube]
impl Values {
    /// A value that most likely exactly `k` values reach.
    pub fn guess(&self, k: u32, normal: &Normal) -> Level {
        let wanted = f32::cast_from(k);
        let cols = f32::cast_from(self.team.cols);
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
        let mean = self.team.sum(sum + others) * normal.inverse;
        let square = self.team.sum(squares + other_squares) * normal.inverse;
        // False for NaN as well.
        let usable = square < f32::MAX;
        let spread = f32::sqrt(max(square - mean * mean, 0.0));

        let target = rough_root(wanted);
        let mut low = mean - SPAN * spread;
        let mut high = mean + SPAN * spread;
        let mut low_root = rough_root(cols);
        let mut high_root = 0.5f32.runtime();
        let mut value = mean + normal.quantile * spread;
        let slope = normal.slope * spread;
        let mut count = 0.0f32.runtime();
        let mut step = 0u32;
        let mut running = plane_any(usable);
        while running {
            count = self.count(value);
            let missed = count - wanted;
            let settled = f32::abs(missed) <= 1.0;
            let enough = missed >= 0.0;
            let root = rough_root(max(count, 0.25));
            low = select(enough, value, low);
            low_root = select(enough, root, low_root);
            high = select(enough, high, value);
            high_root = select(enough, high_root, root);
            let share = (low_root - target) / (low_root - high_root);
            let width = high - low;
            let inner = low + width * max(min(share, 0.95), 0.05);
            let near = max(
                min(value + missed * slope, high - 0.02 * width),
                low + 0.02 * width,
            );
            let next = select(step == 0, near, inner);
            value = select(settled, value, next);
            step += 1;
            running = plane_any(usable && !settled) && step < GUESSES;
        }

        // One too few: the greatest of the others is the last. One too many: the least goes.
        let few = count < wanted;
        if plane_any(count != wanted) {
            let sign = select(few, 1.0f32, -1.0f32);
            let mut best = f32::NEG_INFINITY.runtime();
            #[unroll]
            for item in 0..self.items.len() {
                let reaches = self.items[item] >= value;
                // SPIR-V compares no booleans.
                let wanted = (few && !reaches) || (reaches && !few);
                best = select(wanted, max(best, self.items[item] * sign), best);
            }
            let best = self.team.max::<f32>(best) * sign;
            let picked = select(few, best, next_above(best));
            value = select(count == wanted, value, picked);
        }
        Level {
            value,
            usable: usable && f32::abs(value) >= LEAST_NORMAL,
        }
    }
}

/// The least float above a normal one.
#[cube]
fn next_above(value: f32) -> f32 {
    let bits = u32::reinterpret(value);
    f32::reinterpret(select(value > 0.0, bits + 1, bits - 1))
}
