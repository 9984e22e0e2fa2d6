//! RTop-K's Algorithm 2 on a row of floats in registers.

use cubecl::prelude::*;

use super::{
    coarse::{Coarse, FIRST_LEVELS, LEVELS},
    held::{Choice, Held, HeldExpand},
    members::{bit, mask},
    reached::LEAST_SURE,
    team::ones,
};

/// 2^127. The sum of two floats that are closer to zero is finite.
const GREATEST: f32 = 1.701_411_8e38;

/// Where the halving stands.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Halving {
    low: f32,
    high: f32,
    /// Whether the ends were counted, or are those of the row.
    low_sure: bool,
    high_sure: bool,
    /// Whether the row is finite and no midpoint was so close to zero that comparisons are a guess.
    far: bool,
}

#[cube]
impl Halving {
    fn middle(&self) -> f32 {
        (self.low + self.high) * 0.5
    }

    /// Goes to the half in which the kth value lies, which `sure` says whether it was counted.
    fn narrow(&mut self, enough: bool, sure: bool) {
        let middle = self.middle();
        self.far = self.far && f32::abs(middle) >= LEAST_SURE;
        self.low = select(enough, middle, self.low);
        self.low_sure = select(enough, sure, self.low_sure);
        self.high = select(enough, self.high, middle);
        self.high_sure = select(enough, self.high_sure, sure);
    }

    /// Halves by the bits of codes from `level` up to `end`. A code of n bits that is 2^n - i or more reaches the next bit
    /// once i is added: `addend` and what is returned hold that i for the low end, in each field.
    fn descend(
        &mut self,
        codes: &Coarse,
        addend: u32,
        k: u32,
        #[comptime] level: u32,
        #[comptime] end: u32,
    ) -> u32 {
        let bits = comptime!(codes.bits);
        let mut addend = addend;
        #[unroll]
        for level in level..end {
            let higher = addend - comptime!(ones(bits + 1) << (bits - 1 - level));
            let enough = codes.count(higher) >= k;
            addend = select(enough, higher, addend);
            self.narrow(enough, false.runtime());
        }
        addend
    }
}

/// The range of a row, and whether all of it is finite and sums of two are.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Range {
    least: f32,
    greatest: f32,
    finite: bool,
}

#[cube]
impl Range {
    fn whole(&self) -> Halving {
        Halving {
            low: self.least,
            high: self.greatest,
            low_sure: true.runtime(),
            high_sure: true.runtime(),
            far: self.finite,
        }
    }
}

#[cube]
impl Held<f32> {
    /// The range, by bits: as signed integers positive floats are the greatest of all and in order, as unsigned ones
    /// negative floats are, the least one last. NaN and infinities would be past both ends.
    fn range(&self) -> Range {
        let mut greatest = i32::MIN.runtime();
        let mut least = 0u32;
        #[unroll]
        for item in 0..self.items.len() {
            let holds = self.team.holds(item);
            let value = self.items[item];
            greatest = max(greatest, select(holds, i32::reinterpret(value), i32::MIN));
            least = max(least, select(holds, u32::reinterpret(value), 0));
        }
        let mut greatest = u32::reinterpret(self.team.max::<i32>(greatest));
        let mut least = self.team.max::<u32>(least);
        let all_negative = greatest >> 31 == 1;
        let all_positive = least >> 31 == 0;
        if plane_any(all_negative || all_positive) {
            // Of floats of one sign, those closest to zero have the least bits.
            let closest = self.closest_to_zero();
            greatest = select(all_negative, closest, greatest);
            least = select(all_positive, closest, least);
        }
        let magnitude = max(greatest << 1, least << 1);
        Range {
            least: f32::reinterpret(least),
            greatest: f32::reinterpret(greatest),
            finite: magnitude < comptime!(GREATEST.to_bits() << 1),
        }
    }

    /// The least bits.
    fn closest_to_zero(&self) -> u32 {
        let mut closest = u32::MAX.runtime();
        #[unroll]
        for item in 0..self.items.len() {
            let bits = u32::reinterpret(self.items[item]);
            closest = min(closest, select(self.team.holds(item), bits, u32::MAX));
        }
        self.team.min::<u32>(closest)
    }

    /// The values that reach the threshold of Algorithm 2, where the row is finite and its midpoints are
    /// far from zero.
    ///
    /// Of `max_iter` midpoints the first `coded` are decided by [codes](Held::coarse). Then the ends of what is left are
    /// counted: if the kth value lies between them, all midpoints have been decided as they should; if not, all are
    /// counted.
    pub fn halve(&self, k: u32, max_iter: u32, #[comptime] coded: u32) -> Choice {
        let range = self.range();
        let mut halving = range.whole();
        if comptime!(coded > 0) {
            self.halve_coarsely(&mut halving, &range, k, coded);
        }
        let mut bits = self.count_midpoints(&mut halving, k, max_iter - coded);
        if comptime!(coded > 0) {
            // One of them was counted last.
            let reach = self.reach(select(halving.low_sure, halving.high, halving.low));
            let enough = reach.total >= k;
            bits = select(halving.low_sure, bits, reach.bits);
            let sure = halving.low_sure && halving.high_sure;
            let right = sure || select(halving.low_sure, !enough, enough);
            if plane_any(range.finite && !right) {
                let mut again = range.whole();
                bits = self.count_midpoints(&mut again, k, max_iter);
                halving.far = again.far;
            }
        }
        Choice {
            bits,
            valid: halving.far,
            near_zero: false.runtime(),
        }
    }

    /// The first midpoints, by codes.
    fn halve_coarsely(
        &self,
        halving: &mut Halving,
        range: &Range,
        k: u32,
        #[comptime] midpoints: u32,
    ) {
        let high = select(range.finite, range.greatest, range.least);
        let codes = self.coarse(range.least, high);
        let first = codes.first_levels();
        let none = comptime!(ones(FIRST_LEVELS + 1) << FIRST_LEVELS).runtime();
        let levels = comptime!(midpoints.min(FIRST_LEVELS));
        let addend = halving.descend(&first, none, k, 0u32, levels);
        let addend = (addend & 0x0f0f_0f0f) << comptime!(LEVELS - FIRST_LEVELS);
        halving.descend(&codes, addend, k, FIRST_LEVELS, midpoints);
    }

    /// Halves so many times. Returns the items that reach the last midpoint that enough do, or all of the row.
    fn count_midpoints(&self, halving: &mut Halving, k: u32, midpoints: u32) -> u32 {
        let mut bits = self.held();
        for _ in 0..midpoints {
            let reach = self.reach(halving.middle());
            let enough = reach.total >= k;
            bits = select(enough, reach.bits, bits);
            halving.narrow(enough, true.runtime());
        }
        bits
    }

    /// The items of this unit that lie in the row, a bit each.
    fn held(&self) -> u32 {
        let mut bits = comptime!(mask(self.items.len() as u32)).runtime();
        if comptime!(self.team.ragged || !self.team.shape.exact_fit) {
            bits = 0u32;
            #[unroll]
            for item in 0..self.items.len() {
                bits |= select(self.team.holds(item), comptime!(bit(item)), 0u32);
            }
        }
        bits
    }
}
