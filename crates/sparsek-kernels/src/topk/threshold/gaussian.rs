//! Exact threshold of float rows by guesses: about two counts for normal rows.
//!
//! ```text
//! value <- mean + quantile * deviation
//! repeat: count the values at or above it; narrow the bracket
//!     value <- first slope * (count - k), then interpolation in sqrt(count)
//! until |count - k| <= 1, or the row is far from normal
//! refine: outliers, ties and steep steps, with the values at the ends of the bracket
//! select: shift by one element if the count is one off; cut ties in index order
//! ```
//!
//! Counts prove every threshold. Unsettled rows and NaN are searched on keys.

use cubecl::prelude::*;

use super::{
    normal::{Model, Moments, Normal, ValueBracket},
    register_row::{Guess, LEAST_SURE, Reach, RegisterRow, RegisterRowExpand},
};
use crate::primitives::infinity::infinity;
use crate::topk::tuning::{
    APPROXIMATE_COUNTS, GUESS_CLOSE, GUESS_COUNTS, GUESS_FAR, GUESS_NEAR, REFINE_BIAS, REFINE_LATE,
    REFINE_PAUSE, REFINE_STEPS, REFINE_SUSPICIOUS,
};

const ROUNDED: f32 = 1.0 / 4_194_304.0;

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct FloatThreshold {
    pub value: f32,
    pub count: f32,
    /// At most one element off; `count` is k for ties.
    pub settled: bool,
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Nearest {
    value: f32,
    error: f32,
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Ends {
    least: f32,
    greatest: f32,
}

#[cube]
impl RegisterRow<f32> {
    /// Valid if devices agree.
    pub fn guess(&self, k: u32, normal: &Normal, #[comptime] largest: bool) -> Guess {
        let wanted = f32::cast_from(k);
        let own = self.moments();
        let model = self.model(&own, normal);
        let finite = model.finite();
        let cols = f32::cast_from(self.team.cols);
        let slope = normal.slope * model.spread;
        let far = max(normal.deviation * comptime!(GUESS_FAR[0]), comptime!(GUESS_FAR[1]));
        let few = max(normal.deviation * comptime!(GUESS_NEAR[0]), comptime!(GUESS_NEAR[1]));

        let mut bracket = ValueBracket::new(model.mean, model.spread, self.team.cols);
        let mut value = model.value(normal);
        let mut reach = Reach { bits: 0u32.runtime(), total: 0u32.runtime() };
        let mut count = 0.0f32.runtime();
        let mut settled = false.runtime();
        let mut step = 1u32;
        let numbers = plane_all(model.is_number());
        let mut running = plane_any(finite);
        running = running && numbers;
        if running {
            reach = self.reach(value);
            count = f32::cast_from(reach.total);
            let missed = count - wanted;
            settled = finite && f32::abs(missed) <= 1.0;
            bracket.narrow(value, count, missed >= 0.0);
            let near = bracket.inside(value + missed * slope);
            value = select(settled, value, near);
            let lost = f32::abs(missed) > far || (missed < -few && bracket.low_count >= cols);
            running = plane_any(finite && !settled && !lost);
        }
        while running {
            reach = self.reach(value);
            count = f32::cast_from(reach.total);
            let missed = count - wanted;
            settled = finite && f32::abs(missed) <= 1.0;
            bracket.narrow(value, count, missed >= 0.0);
            value = select(settled, value, bracket.rooted(wanted));
            let lost = f32::abs(missed) > far
                || (missed < -few && bracket.low_count >= cols)
                || (step >= GUESS_CLOSE && bracket.gap() > far);
            step += 1;
            running = plane_any(finite && !settled && !lost) && step < GUESS_COUNTS;
        }
        let open = plane_any(!settled);
        if open && numbers {
            let level = FloatThreshold { value, count, settled };
            let closer = self.refine(&level, &bracket, &own, &model, normal, wanted);
            value = closer.value;
            count = closer.count;
            settled = closer.settled;
            reach = self.reach(value);
        }
        let level = FloatThreshold { value, count, settled };
        self.select_exactly(&level, &reach, k, largest)
    }

    fn select_exactly(
        &self,
        level: &FloatThreshold,
        reach: &Reach,
        k: u32,
        #[comptime] largest: bool,
    ) -> Guess {
        let mut value = level.value;
        let mut reach = Reach { bits: reach.bits, total: reach.total };
        let mut last = value;
        let settled = level.settled;
        let one_off = settled && level.count != f32::cast_from(k);
        if plane_any(one_off) {
            // One too few: add the greatest other. One too many: drop the least.
            let few = level.count < f32::cast_from(k);
            let nearest = self.nearest(value, few);
            last = select(one_off, nearest.value, value);
            let past = select(
                few,
                nearest.value - nearest.error,
                next_above(nearest.value + nearest.error),
            );
            value = select(one_off, past, value);
            reach = self.reach(value);
        }
        let mut bits = reach.bits;
        let mut valid = settled && reach.total == k;
        let tied = settled && reach.total != k;
        if plane_any(tied) {
            if plane_any(tied && one_off) {
                value = select(tied, last, value);
                bits = self.sign_compare(value);
            }
            let guess = self.take_first(bits, self.above(value), k);
            bits = select(tied, guess.bits, bits);
            valid = valid || (tied && guess.valid);
        }
        let magnitude = f32::abs(value);
        let finite = magnitude < infinity::<f32>();
        let sure = finite && magnitude >= LEAST_SURE;
        // Negation may have flushed subnormals.
        let near_zero = comptime!(largest).runtime() && u32::reinterpret(value) << 1 == 0;
        Guess { bits, valid: valid && (sure || near_zero), near_zero }
    }

    fn nearest(&self, value: f32, below: bool) -> Nearest {
        let sign = select(below, -1.0f32, 1.0f32);
        let from = select(below, -next_above(-value), value);
        let offset = -from * sign;
        // As integers, distances to the other side are greatest.
        let mut least = u32::MAX.runtime();
        #[unroll]
        for item in 0..self.items.len() {
            let distance = fma(self.items[item], sign, offset);
            least = min(least, u32::reinterpret(distance));
        }
        let distance = f32::reinterpret(self.team.min::<u32>(least));
        Nearest { value: from + distance * sign, error: distance * ROUNDED }
    }

    /// All rows of the plane have a mean.
    pub fn refine(
        &self,
        guessed: &FloatThreshold,
        bracket: &ValueBracket,
        own: &Moments,
        model: &Model,
        normal: &Normal,
        wanted: f32,
    ) -> FloatThreshold {
        let cols = f32::cast_from(self.team.cols);
        let mut bracket = ValueBracket {
            low: bracket.low,
            high: bracket.high,
            low_count: bracket.low_count,
            high_count: bracket.high_count,
        };
        let mut value = guessed.value;
        let mut count = guessed.count;
        let mut settled = guessed.settled;
        let mut usable = model.finite();
        let mut next_look = 0u32;

        let far = !settled && (!usable || bracket.gap() > REFINE_SUSPICIOUS);
        if plane_any(far) {
            let steady = self.steady(own, normal);
            let outlier = 4.0 * bracket.high_count < wanted
                && bracket.low_count >= cols
                && 2.0 * steady.spread < model.spread;
            let again = far && (outlier || !usable) && steady.usable();
            let fresh = ValueBracket::new(steady.mean, steady.spread, self.team.cols);
            bracket.low = select(again, fresh.low, bracket.low);
            bracket.high = select(again, fresh.high, bracket.high);
            bracket.low_count = select(again, fresh.low_count, bracket.low_count);
            bracket.high_count = select(again, fresh.high_count, bracket.high_count);
            value = select(again, steady.value(normal), value);
            usable = usable || again;
            next_look = select(again, REFINE_PAUSE, 0u32);
        }

        let mut low_is_value = false.runtime();
        let mut high_is_value = false.runtime();
        let mut looked = false.runtime();
        let mut step = 0u32;
        let mut running = plane_any(usable && !settled);
        while running {
            let late = bracket.gap() > REFINE_SUSPICIOUS || step >= REFINE_LATE;
            let look = usable && !settled && step >= next_look && late;
            if plane_any(look) {
                let ends = self.ends(bracket.floor(self.team.cols), bracket.ceiling());
                bracket.low = select(look, ends.least, bracket.low);
                bracket.high = select(look, ends.greatest, bracket.high);
                low_is_value = low_is_value || look;
                high_is_value = high_is_value || look;
                looked = looked || look;
                next_look = select(look, step + REFINE_PAUSE, next_look);
                let above = next_above(ends.least);
                let guess = select(2.0 * bracket.gap() > cols, above, bracket.linear(wanted));
                value = select(look, guess, value);
                let last = look && (ends.least == ends.greatest || bracket.lacks_one(wanted));
                value = select(last, ends.greatest, value);
                count = select(last, wanted, count);
                settled = settled || last;
            }
            let open = usable && !settled;
            let reached = f32::cast_from(self.reach(value).total);
            let enough = reached >= wanted;
            let at_high = open && enough && high_is_value && value == bracket.high;
            let at_low = open && !enough && low_is_value && value == next_above(bracket.low);
            let near = open && f32::abs(reached - wanted) <= 1.0;
            let last = at_high || at_low;
            count = select(open, select(last, wanted, reached), count);

            let gap = bracket.gap();
            bracket.narrow(value, reached, enough);
            let stuck = looked && 2.0 * bracket.gap() > gap;
            let guess = select(looked, bracket.linear(wanted), bracket.rooted(wanted));
            let guess = select(stuck && !enough && low_is_value, next_above(bracket.low), guess);
            let guess = select(stuck && enough && high_is_value, bracket.high, guess);
            low_is_value = low_is_value && !(open && enough);
            high_is_value = high_is_value && (enough || !open);
            settled = settled || last || near;
            value = select(open && !settled, guess, value);
            value = select(at_low, bracket.low, value);
            step += 1;
            running = plane_any(usable && !settled) && step < REFINE_STEPS;
        }
        FloatThreshold { value, count, settled }
    }

    /// Other units may hold outliers.
    fn steady(&self, own: &Moments, normal: &Normal) -> Model {
        let share = normal.inverse * comptime!(self.team.shape.lanes as f32);
        let squares = select(own.squares < f32::MAX, own.squares, f32::MAX);
        let least = self.team.min::<f32>(squares);
        let sum = self.team.max::<f32>(select(squares == least, own.sum, -f32::MAX));
        let mean = sum * share;
        let spread = REFINE_BIAS * f32::sqrt(max(least * share - mean * mean, 0.0));
        Model { mean, spread: select(least < f32::MAX, spread, infinity::<f32>()) }
    }

    fn ends(&self, floor: f32, ceiling: f32) -> Ends {
        let mut least = infinity::<f32>();
        let mut greatest = -infinity::<f32>();
        #[unroll]
        for item in 0..self.items.len() {
            let value = self.items[item];
            let inside = value >= floor && self.team.holds(item);
            least = select(inside, min(least, value), least);
            greatest = select(value < ceiling, max(greatest, value), greatest);
        }
        Ends { least: self.team.min::<f32>(least), greatest: self.team.max::<f32>(greatest) }
    }

    /// Finds a value that `wanted` to `wanted + slack` elements reach.
    pub fn approximate(&self, wanted: f32, slack: f32, normal: &Normal) -> FloatThreshold {
        let middle = wanted + 0.5 * slack;
        let own = self.moments();
        let model = self.model(&own, normal);
        let slope = normal.slope * model.spread;
        let mut bracket = ValueBracket::new(model.mean, model.spread, self.team.cols);
        let mut value = model.value(normal);
        let mut count = 0.0f32.runtime();
        let mut settled = false.runtime();
        let mut step = 0u32;
        let mut running = plane_any(model.usable());
        while running {
            count = f32::cast_from(self.reach(value).total);
            let missed = count - middle;
            settled = f32::abs(missed) <= 0.5 * slack && f32::abs(value) >= LEAST_SURE;
            bracket.narrow(value, count, missed >= 0.0);
            let near = bracket.inside(value + missed * slope);
            let next = select(step == 0, near, bracket.rooted(middle));
            value = select(settled, value, next);
            step += 1;
            running = plane_any(!settled) && step < APPROXIMATE_COUNTS;
        }
        FloatThreshold { value, count, settled }
    }
}

/// Least greater float on which devices agree.
#[cube]
pub(crate) fn next_above(value: f32) -> f32 {
    let bits = u32::reinterpret(value);
    let next = f32::reinterpret(select(value > 0.0, bits + 1, bits - 1));
    select(f32::abs(value) < LEAST_SURE, LEAST_SURE, next)
}
