//! The k greatest of a row of floats: a threshold is guessed where the kth of so many normal values would
//! lie, then moved by what is counted there.
//!
//! Nothing depends on a guess but the speed: a threshold is used only where counts show that it is right.

use cubecl::prelude::*;

use super::{
    held::{Choice, Held, HeldExpand},
    span::Span,
};

/// Least normal float: devices that take subnormals for zero agree with the others on comparisons
/// with normal floats.
pub(super) const LEAST_NORMAL: f32 = 1.175_494_4e-38;
/// Counts by the normal model, before the row is looked at more closely. Of planes with four rows of 256
/// normal values 8% need more for k = 32, 17% for k = 128 (38% and 52% after three counts), of uniform ones 35%
/// and 21%, in a simulation of 4,096 rows each.
const GUESSES: u32 = 4;

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
        // Where the row is not finite nothing comes of it.
        let slope = normal.slope * model.spread;

        let mut span = Span::new(model.mean, model.spread, self.team.cols);
        let mut value = model.value(normal);
        let mut count = 0.0f32.runtime();
        let mut settled = false.runtime();
        let mut step = 0u32;
        let mut running = plane_any(finite);
        while running {
            count = self.count(value);
            let missed = count - wanted;
            settled = finite && f32::abs(missed) <= 1.0;
            span.narrow(value, count, missed >= 0.0);
            let near = span.inside(value + missed * slope);
            let next = select(step == 0, near, span.rooted(wanted));
            value = select(settled, value, next);
            step += 1;
            running = plane_any(finite && !settled) && step < GUESSES;
        }
        if plane_any(!settled) {
            let level = Level {
                value,
                count,
                settled,
            };
            let closer = self.look_closer(&level, &span, &own, &model, normal, wanted);
            value = closer.value;
            count = closer.count;
            settled = closer.settled;
        }
        self.settle(value, count, settled, k, largest)
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
    fn settle(
        &self,
        near: f32,
        count: f32,
        settled: bool,
        k: u32,
        #[comptime] largest: bool,
    ) -> Choice {
        let wanted = f32::cast_from(k);
        let mut value = near;
        // The kth value, if several are equal to it.
        let mut last = near;
        let one_off = count != wanted;
        if plane_any(settled && one_off) {
            // One too few: the greatest of the others is the last. One too many: the least goes.
            let few = count < wanted;
            let sign = select(few, 1.0f32, -1.0f32);
            let mut best = f32::NEG_INFINITY.runtime();
            #[unroll]
            for item in 0..self.items.len() {
                let reaches = self.items[item] >= value;
                // SPIR-V compares no booleans.
                let counts = (few && !reaches) || (reaches && !few);
                best = select(counts, max(best, self.items[item] * sign), best);
            }
            let best = self.team.max::<f32>(best) * sign;
            last = select(one_off, best, last);
            value = select(one_off, select(few, best, next_above(best)), value);
        }
        let mut bits = self.reaching(value);
        let total = self.total(bits);
        let mut valid = settled && total == k;
        let tied = settled && total != k;
        if plane_any(tied) {
            // The least went, but it has equals.
            let lacking = tied && total < k;
            let mut reach = bits;
            if plane_any(lacking) {
                value = select(lacking, last, value);
                reach = self.reaching(value);
            }
            let choice = self.cut(reach, value, k);
            bits = select(tied, choice.bits, bits);
            valid = valid || (tied && choice.valid);
        }
        let normal = f32::abs(value) >= LEAST_NORMAL;
        if comptime!(!largest) {
            // Subnormals may have become zeros when they were negated.
            valid = valid && normal;
        } else if plane_any(!normal) {
            let zero = u32::reinterpret(value) << 1 == 0 && !self.has_subnormals();
            valid = valid && (normal || zero);
        }
        Choice { bits, valid }
    }

    /// Whether the row has values that some devices take for zero.
    fn has_subnormals(&self) -> bool {
        let mut found = 0.0f32;
        #[unroll]
        for item in 0..self.items.len() {
            let magnitude = u32::reinterpret(self.items[item]) << 1;
            // From 2 to twice the greatest fraction.
            let subnormal = magnitude - 2 < 0x00ff_fffeu32;
            found = select(subnormal, 1.0f32, found);
        }
        self.team.max::<f32>(found) > 0.0
    }
}

/// The least normal float above a value that is not subnormal.
#[cube]
pub(super) fn next_above(value: f32) -> f32 {
    let bits = u32::reinterpret(value);
    let next = f32::reinterpret(select(value > 0.0, bits + 1, bits - 1));
    select(f32::abs(value) < LEAST_NORMAL, LEAST_NORMAL, next)
}
