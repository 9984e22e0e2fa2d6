//! The k greatest of a row of floats: a threshold is guessed where the kth of so many normal values would
//! lie, then moved by what is counted there.
//!
//! Nothing depends on a guess but the speed: a threshold is used only where counts show that it is right.

use cubecl::prelude::*;

use super::{
    held::{Choice, Held, HeldExpand},
    reached::LEAST_SURE,
    span::Span,
};

/// By how many values a guess may be off and the model still hold, in standard deviations of how many of normal values reach
/// it, and at least: too many or too few, and too few where no value was tried yet that enough reach. Normal rows hardly
/// ever are.
const FAR: [f32; 2] = [3.5, 20.0];
const NEAR: [f32; 2] = [2.0, 10.0];
/// A distance is rounded once, and once more when it is added to where it was measured from.
const ROUNDED: f32 = 1.0 / 4_194_304.0;
/// Counts by the normal model, before the row is looked at more closely, and those after which no more than `far` values may
/// lie between two that were counted. Of planes with four rows of 256 normal values 1% need more for k = 32 and for
/// k = 128 (11% and 17% after four counts), of planes with one row of 768 0.3% for k = 128 (14%), in a simulation of 2,048
/// rows each.
const GUESSES: u32 = 6;
const CLOSE: u32 = 2;

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
    /// The standard deviation of how many values reach the true threshold.
    pub deviation: f32,
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
        (cols * share * (1.0 - share)).sqrt() as f32,
    )
}

/// A threshold of a row, or near it.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Level {
    pub value: f32,
    /// How many values reach it.
    pub count: f32,
    /// Whether it is at most one value away from the kth. Where it is the kth itself, of several that are
    /// equal, `count` says k.
    pub settled: bool,
}

/// The items of this unit that reach a value, a bit each.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Reach {
    pub bits: u32,
    /// How many of the row do.
    pub total: u32,
}

/// A value of the row.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Nearest {
    value: f32,
    /// How far it may be off.
    error: f32,
}

/// Sums of the values of a unit.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Moments {
    pub sum: f32,
    pub squares: f32,
}

/// Mean and deviation of a row, as good as they are known.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Model {
    pub mean: f32,
    /// Infinite where the values are not finite or their squares are not.
    pub spread: f32,
}

#[cube]
impl Model {
    pub fn finite(&self) -> bool {
        self.spread < f32::INFINITY
    }

    /// Whether the row can be guessed by it.
    pub fn usable(&self) -> bool {
        self.finite() && self.spread > 0.0
    }

    /// Whether the row has no NaN, nor infinities of both signs.
    pub fn is_number(&self) -> bool {
        f32::abs(self.mean) <= f32::INFINITY
    }

    /// The threshold of normal values.
    pub fn value(&self, normal: &Normal) -> f32 {
        self.mean + normal.quantile * self.spread
    }
}

#[cube]
impl Held<f32> {
    /// The k greatest of the row, valid where they were found and all devices agree on comparisons.
    pub fn guess(&self, k: u32, normal: &Normal, #[comptime] largest: bool) -> Choice {
        let wanted = f32::cast_from(k);
        let own = self.moments();
        let model = self.model(&own, normal);
        let finite = model.finite();
        let cols = f32::cast_from(self.team.cols);
        // Where the row is not finite nothing comes of it.
        let slope = normal.slope * model.spread;
        let far = max(normal.deviation * comptime!(FAR[0]), comptime!(FAR[1]));
        let few = max(normal.deviation * comptime!(NEAR[0]), comptime!(NEAR[1]));

        let mut span = Span::new(model.mean, model.spread, self.team.cols);
        let mut value = model.value(normal);
        let mut bits = 0u32.runtime();
        let mut total = 0u32.runtime();
        let mut count = 0.0f32.runtime();
        let mut settled = false.runtime();
        let mut step = 1u32;
        // Rows that are none are left to the search on keys, and all others of their plane with them.
        let numbers = plane_all(model.is_number());
        let mut running = plane_any(finite);
        running = running && numbers;
        if running {
            let reach = self.reach(value);
            bits = reach.bits;
            total = reach.total;
            count = f32::cast_from(total);
            let missed = count - wanted;
            settled = finite && f32::abs(missed) <= 1.0;
            span.narrow(value, count, missed >= 0.0);
            let near = span.inside(value + missed * slope);
            value = select(settled, value, near);
            let lost = f32::abs(missed) > far || (missed < -few && span.low_count >= cols);
            running = plane_any(finite && !settled && !lost);
        }
        while running {
            let reach = self.reach(value);
            bits = reach.bits;
            total = reach.total;
            count = f32::cast_from(total);
            let missed = count - wanted;
            settled = finite && f32::abs(missed) <= 1.0;
            span.narrow(value, count, missed >= 0.0);
            value = select(settled, value, span.rooted(wanted));
            // Ties or outliers: guessing on is of no use.
            let lost = f32::abs(missed) > far
                || (missed < -few && span.low_count >= cols)
                || (step >= CLOSE && span.gap() > far);
            step += 1;
            running = plane_any(finite && !settled && !lost) && step < GUESSES;
        }
        let open = plane_any(!settled);
        if open && numbers {
            let level = Level {
                value,
                count,
                settled,
            };
            let closer = self.look_closer(&level, &span, &own, &model, normal, wanted);
            value = closer.value;
            count = closer.count;
            settled = closer.settled;
            let reach = self.reach(value);
            bits = reach.bits;
            total = reach.total;
        }
        let level = Level {
            value,
            count,
            settled,
        };
        let reach = Reach { bits, total };
        self.settle(&level, &reach, k, largest)
    }

    /// The items that reach `value`, and how many they are.
    pub fn reach(&self, value: f32) -> Reach {
        let bits = self.reached(value);
        Reach {
            bits,
            total: self.total(bits),
        }
    }

    /// Mean and deviation by the sums of all units.
    pub fn model(&self, own: &Moments, normal: &Normal) -> Model {
        let mean = self.team.sum::<f32>(own.sum) * normal.inverse;
        let square = self.team.sum::<f32>(own.squares) * normal.inverse;
        let spread = f32::sqrt(max(square - mean * mean, 0.0));
        Model {
            mean,
            // Not for NaN either.
            spread: select(square < f32::MAX, spread, f32::INFINITY),
        }
    }

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
        Moments {
            sum: sum + others,
            squares: squares + other_squares,
        }
    }

    /// The members, from a value that they reach, or one too few or too many do.
    fn settle(&self, level: &Level, reach: &Reach, k: u32, #[comptime] largest: bool) -> Choice {
        let mut value = level.value;
        let mut bits = reach.bits;
        let mut total = reach.total;
        // The kth value, if several are equal to it.
        let mut last = value;
        let settled = level.settled;
        let one_off = settled && level.count != f32::cast_from(k);
        if plane_any(one_off) {
            // One too few: the greatest of the others is the last. One too many: the least goes.
            let few = level.count < f32::cast_from(k);
            let nearest = self.nearest(value, few);
            last = select(one_off, nearest.value, value);
            let past = select(
                few,
                nearest.value - nearest.error,
                next_above(nearest.value + nearest.error),
            );
            value = select(one_off, past, value);
            let reach = self.reach(value);
            bits = reach.bits;
            total = reach.total;
        }
        let mut valid = settled && total == k;
        let tied = settled && total != k;
        if plane_any(tied) {
            if plane_any(tied && one_off) {
                value = select(tied, last, value);
                bits = self.reached(value);
            }
            let choice = self.cut(bits, self.above(value), k);
            bits = select(tied, choice.bits, bits);
            valid = valid || (tied && choice.valid);
        }
        let magnitude = f32::abs(value);
        let finite = magnitude < f32::INFINITY;
        let sure = finite && magnitude >= LEAST_SURE;
        // For the smallest, subnormals may have become zeros when they were negated.
        let near_zero = comptime!(largest).runtime() && u32::reinterpret(value) << 1 == 0;
        Choice {
            bits,
            valid: valid && (sure || near_zero),
            near_zero,
        }
    }

    /// The greatest value of the row below one, or the least from it on.
    fn nearest(&self, value: f32, below: bool) -> Nearest {
        let sign = select(below, -1.0f32, 1.0f32);
        let from = select(below, -next_above(-value), value);
        let offset = -from * sign;
        // As integers, distances to the other side are greater than all others.
        let mut least = u32::MAX.runtime();
        #[unroll]
        for item in 0..self.items.len() {
            let distance = fma(self.items[item], sign, offset);
            least = min(least, u32::reinterpret(distance));
        }
        let distance = f32::reinterpret(self.team.min::<u32>(least));
        Nearest {
            value: from + distance * sign,
            error: distance * ROUNDED,
        }
    }
}

/// The least float above a value that compares surely.
#[cube]
pub(super) fn next_above(value: f32) -> f32 {
    let bits = u32::reinterpret(value);
    let next = f32::reinterpret(select(value > 0.0, bits + 1, bits - 1));
    select(f32::abs(value) < LEAST_SURE, LEAST_SURE, next)
}
