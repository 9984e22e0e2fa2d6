//! A threshold that about so many of a row of floats reach, in a few counts.

use cubecl::prelude::*;

use super::{
    guess::{Level, Normal},
    held::{Held, HeldExpand},
    reached::LEAST_SURE,
    span::Span,
};

/// Counts before the row is left to the search on keys.
const COUNTS: u32 = 6;

#[cube]
impl Held<f32> {
    /// A value that at least `wanted` and at most `slack` more of the row reach, where the row is finite and
    /// such a value is soon found. All devices agree on comparisons with it.
    pub fn rough(&self, wanted: f32, slack: f32, normal: &Normal) -> Level {
        let middle = wanted + 0.5 * slack;
        let own = self.moments();
        let model = self.model(&own, normal);
        let slope = normal.slope * model.spread;
        let mut span = Span::new(model.mean, model.spread, self.team.cols);
        let mut value = model.value(normal);
        let mut count = 0.0f32.runtime();
        let mut settled = false.runtime();
        let mut step = 0u32;
        let mut running = plane_any(model.usable());
        while running {
            count = f32::cast_from(self.reach(value).total);
            let missed = count - middle;
            settled = f32::abs(missed) <= 0.5 * slack && f32::abs(value) >= LEAST_SURE;
            span.narrow(value, count, missed >= 0.0);
            let near = span.inside(value + missed * slope);
            let next = select(step == 0, near, span.rooted(middle));
            value = select(settled, value, next);
            step += 1;
            running = plane_any(!settled) && step < COUNTS;
        }
        Level {
            value,
            count,
            settled,
        }
    }
}
