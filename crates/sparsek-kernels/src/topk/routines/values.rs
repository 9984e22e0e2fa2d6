//! A row of floats in the registers of a team.

use cubecl::prelude::*;

use super::team::Team;

/// Least normal float: devices that take subnormals for zero agree with the others on comparisons
/// with normal floats.
pub(super) const LEAST_NORMAL: f32 = 1.175_494_4e-38;
/// Bounds from which on subnormals do not change a midpoint.
const LEAST_MIDDLE: f32 = 1e-30;

/// Values of this unit, greater ones wanted, `-inf` past the end of the row.
#[derive(CubeType)]
pub(super) struct Values {
    pub items: Sequence<f32>,
    pub team: Team,
}

/// A threshold of a row.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Level {
    pub value: f32,
    /// Whether the row is such that all devices agree on comparisons with it.
    pub usable: bool,
}

#[cube]
impl Values {
    /// How many values reach `value`, as a float.
    pub fn count(&self, value: f32) -> f32 {
        self.team.sum(self.own_count(value))
    }

    /// How many values of this unit reach `value`, in two sums that do not wait for each other.
    pub fn own_count(&self, value: f32) -> f32 {
        let mut counts = 0.0f32;
        let mut others = 0.0f32;
        #[unroll]
        for item in 0..self.items.len() {
            // Said the other way round than where members are written: a compiler would keep all these
            // truths until then.
            let count = select(self.items[item] < value, 0.0f32, 1.0f32);
            if comptime!(item % 2 == 0) {
                counts += count;
            } else {
                others += count;
            }
        }
        counts + others
    }

    /// RTop-K's Algorithm 2 where the row is finite and its midpoints are far from zero.
    pub fn halve(&self, k: u32, max_iter: u32) -> Level {
        let wanted = f32::cast_from(k);
        let mut low = f32::INFINITY.runtime();
        let mut high = f32::NEG_INFINITY.runtime();
        let mut squares = 0.0f32;
        #[unroll]
        for item in 0..self.items.len() {
            let value = self.items[item];
            let holds = self.team.holds(item);
            low = min(low, select(holds, value, f32::INFINITY));
            high = max(high, value);
            squares += select(holds, value * value, 0.0f32);
        }
        low = self.team.min::<f32>(low);
        high = self.team.max::<f32>(high);
        // False for NaN as well.
        let mut usable = self.team.sum(squares) < f32::MAX;
        for _ in 0..max_iter {
            let middle = (low + high) * 0.5;
            usable = usable && f32::abs(middle) >= LEAST_MIDDLE;
            let enough = self.count(middle) >= wanted;
            low = select(enough, middle, low);
            high = select(enough, high, middle);
        }
        // A subnormal row minimum may have been taken for zero.
        Level {
            value: low,
            usable: usable && f32::abs(low) >= LEAST_NORMAL,
        }
    }
}
