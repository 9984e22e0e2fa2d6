//! The closer look at rows whose threshold the normal model does not find in a few counts: outliers, ties,
//! steep steps.

use cubecl::prelude::*;

use super::{
    guess::{Level, Model, Moments, Normal, next_above},
    held::{Held, HeldExpand},
    span::Span,
};

/// Values between the ends from which on ties or outliers are suspected.
const SUSPICIOUS: f32 = 16.0;
/// Steps after which they are suspected anyway.
const LATE: u32 = 6;
/// Steps from one look at the values next to the ends to the other.
const PAUSE: u32 = 3;
/// Steps before the row is left to the search on keys.
const STEPS: u32 = 16;
/// By how much the units' least deviation is too small, about.
const BIAS: f32 = 1.2;

/// The values at the ends of a span.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Ends {
    least: f32,
    greatest: f32,
}

#[cube]
impl Held<f32> {
    /// Goes on from where the model's guesses ended, in planes all of whose rows are numbers.
    pub fn look_closer(
        &self,
        guessed: &Level,
        span: &Span,
        own: &Moments,
        model: &Model,
        normal: &Normal,
        wanted: f32,
    ) -> Level {
        let cols = f32::cast_from(self.team.cols);
        let mut span = Span {
            low: span.low,
            high: span.high,
            low_count: span.low_count,
            high_count: span.high_count,
        };
        let mut value = guessed.value;
        let mut count = guessed.count;
        let mut settled = guessed.settled;
        let mut usable = model.finite();
        let mut next_look = 0u32;

        let far = !settled && (!usable || span.gap() > SUSPICIOUS);
        if plane_any(far) {
            let steady = self.steady(own, normal);
            // Few values far above all others: a high end above most of the row, a low end unseen.
            let outlier = 4.0 * span.high_count < wanted
                && span.low_count >= cols
                && 2.0 * steady.spread < model.spread;
            let again = far && (outlier || !usable) && steady.usable();
            let fresh = Span::new(steady.mean, steady.spread, self.team.cols);
            span.low = select(again, fresh.low, span.low);
            span.high = select(again, fresh.high, span.high);
            span.low_count = select(again, fresh.low_count, span.low_count);
            span.high_count = select(again, fresh.high_count, span.high_count);
            value = select(again, steady.value(normal), value);
            usable = usable || again;
            next_look = select(again, PAUSE, 0u32);
        }

        // Whether the ends are values of the row.
        let mut low_is_value = false.runtime();
        let mut high_is_value = false.runtime();
        let mut looked = false.runtime();
        let mut step = 0u32;
        let mut running = plane_any(usable && !settled);
        while running {
            let late = span.gap() > SUSPICIOUS || step >= LATE;
            let look = usable && !settled && step >= next_look && late;
            if plane_any(look) {
                let ends = self.ends(span.floor(self.team.cols), span.ceiling());
                span.low = select(look, ends.least, span.low);
                span.high = select(look, ends.greatest, span.high);
                low_is_value = low_is_value || look;
                high_is_value = high_is_value || look;
                looked = looked || look;
                next_look = select(look, step + PAUSE, next_look);
                // Half of the row in between: many equal to the least, perhaps.
                let above = next_above(ends.least);
                let guess = select(2.0 * span.gap() > cols, above, span.linear(wanted));
                value = select(look, guess, value);
                let last = look && (ends.least == ends.greatest || span.lacks_one(wanted));
                value = select(last, ends.greatest, value);
                count = select(last, wanted, count);
                settled = settled || last;
            }
            let open = usable && !settled;
            let reached = f32::cast_from(self.reach(value).total);
            let enough = reached >= wanted;
            let at_high = open && enough && high_is_value && value == span.high;
            let at_low = open && !enough && low_is_value && value == next_above(span.low);
            let near = open && f32::abs(reached - wanted) <= 1.0;
            let last = at_high || at_low;
            count = select(open, select(last, wanted, reached), count);

            let gap = span.gap();
            span.narrow(value, reached, enough);
            // Little was cut off: the others are close to the end that stayed, or equal to it.
            let stuck = looked && 2.0 * span.gap() > gap;
            let guess = select(looked, span.linear(wanted), span.rooted(wanted));
            let guess = select(
                stuck && !enough && low_is_value,
                next_above(span.low),
                guess,
            );
            let guess = select(stuck && enough && high_is_value, span.high, guess);
            low_is_value = low_is_value && !(open && enough);
            high_is_value = high_is_value && (enough || !open);
            settled = settled || last || near;
            value = select(open && !settled, guess, value);
            value = select(at_low, span.low, value);
            step += 1;
            running = plane_any(usable && !settled) && step < STEPS;
        }
        Level {
            value,
            count,
            settled,
        }
    }

    /// Mean and deviation by the unit with the least squares: the others may hold outliers.
    fn steady(&self, own: &Moments, normal: &Normal) -> Model {
        let share = normal.inverse * comptime!(self.team.shape.lanes as f32);
        let squares = select(own.squares < f32::MAX, own.squares, f32::MAX);
        let least = self.team.min::<f32>(squares);
        let sum = self
            .team
            .max::<f32>(select(squares == least, own.sum, -f32::MAX));
        let mean = sum * share;
        let spread = BIAS * f32::sqrt(max(least * share - mean * mean, 0.0));
        Model {
            mean,
            spread: select(least < f32::MAX, spread, f32::INFINITY),
        }
    }

    /// The least value from `floor` on, and the greatest below `ceiling`.
    fn ends(&self, floor: f32, ceiling: f32) -> Ends {
        let mut least = f32::INFINITY.runtime();
        let mut greatest = f32::NEG_INFINITY.runtime();
        #[unroll]
        for item in 0..self.items.len() {
            let value = self.items[item];
            let inside = value >= floor && self.team.holds(item);
            least = select(inside, min(least, value), least);
            greatest = select(value < ceiling, max(greatest, value), greatest);
        }
        Ends {
            least: self.team.min::<f32>(least),
            greatest: self.team.max::<f32>(greatest),
        }
    }
}
