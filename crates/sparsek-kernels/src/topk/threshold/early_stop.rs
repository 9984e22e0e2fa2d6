//! Early stop on floats in registers.
//!
//! ```text
//! [low, high] <- range of the row
//! repeat max_iter times: middle <- (low + high) / 2
//!     if count(middle) >= k: low <- middle else: high <- middle
//! ```
//!
//! The first of many midpoints compare 7-bit codes, four per word; the first three, 3-bit codes.
//! Counts of the final ends prove them.

#![allow(clippy::manual_rotate, reason = "CubeCL has no rotation")]

use cubecl::prelude::*;

use super::register_row::{Guess, LEAST_SURE, RegisterRow, RegisterRowExpand};
use crate::primitives::{
    approx::approx_inverse,
    bit_set::{bit, mask, ones},
    team::Team,
};

pub(crate) const CODE_BITS: u32 = 7;

pub(crate) const FIRST_CODE_BITS: u32 = 3;

/// 2^127: sums of two lesser floats are finite.
const GREATEST: f32 = 1.701_411_8e38;

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Bisection {
    low: f32,
    high: f32,
    low_sure: bool,
    high_sure: bool,
    /// Finite, no midpoint near zero.
    far: bool,
}

#[cube]
impl Bisection {
    fn middle(&self) -> f32 {
        (self.low + self.high) * 0.5
    }

    fn narrow(&mut self, enough: bool, sure: bool) {
        let middle = self.middle();
        self.far = self.far && f32::abs(middle) >= LEAST_SURE;
        self.low = select(enough, middle, self.low);
        self.low_sure = select(enough, sure, self.low_sure);
        self.high = select(enough, self.high, middle);
        self.high_sure = select(enough, self.high_sure, sure);
    }

    /// A code of n bits reaches 2^n - i if adding i carries; `addend` holds the low end's i.
    fn bisect(
        &mut self,
        codes: &QuantizedRow,
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

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct ValueRange {
    least: f32,
    greatest: f32,
    finite: bool,
}

#[cube]
impl ValueRange {
    fn whole(&self) -> Bisection {
        Bisection {
            low: self.least,
            high: self.greatest,
            low_sure: true.runtime(),
            high_sure: true.runtime(),
            far: self.finite,
        }
    }
}

#[cube]
impl RegisterRow<f32> {
    /// By bits: signed integers find the greatest positive, unsigned ones the least negative; NaN
    /// and infinities exceed both.
    fn range(&self) -> ValueRange {
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
            let closest = self.closest_to_zero();
            greatest = select(all_negative, closest, greatest);
            least = select(all_positive, closest, least);
        }
        let magnitude = max(greatest << 1, least << 1);
        ValueRange {
            least: f32::reinterpret(least),
            greatest: f32::reinterpret(greatest),
            finite: magnitude < comptime!(GREATEST.to_bits() << 1),
        }
    }

    fn closest_to_zero(&self) -> u32 {
        let mut closest = u32::MAX.runtime();
        #[unroll]
        for item in 0..self.items.len() {
            let bits = u32::reinterpret(self.items[item]);
            closest = min(closest, select(self.team.holds(item), bits, u32::MAX));
        }
        self.team.min::<u32>(closest)
    }

    /// Valid for finite rows without midpoints near zero.
    pub fn early_stop(&self, k: u32, max_iter: u32, #[comptime] quantized: u32) -> Guess {
        let range = self.range();
        let mut bisection = range.whole();
        if comptime!(quantized > 0) {
            self.bisect_quantized(&mut bisection, &range, k, quantized);
        }
        let mut bits = self.bisect_counted(&mut bisection, k, max_iter - quantized);
        if comptime!(quantized > 0) {
            let reach = self.reach(select(bisection.low_sure, bisection.high, bisection.low));
            let enough = reach.total >= k;
            bits = select(bisection.low_sure, bits, reach.bits);
            let sure = bisection.low_sure && bisection.high_sure;
            let right = sure || select(bisection.low_sure, !enough, enough);
            if plane_any(range.finite && !right) {
                let mut again = range.whole();
                bits = self.bisect_counted(&mut again, k, max_iter);
                bisection.far = again.far;
            }
        }
        Guess { bits, valid: bisection.far, near_zero: false.runtime() }
    }

    fn bisect_quantized(
        &self,
        bisection: &mut Bisection,
        range: &ValueRange,
        k: u32,
        #[comptime] midpoints: u32,
    ) {
        let high = select(range.finite, range.greatest, range.least);
        let codes = self.quantize(range.least, high);
        let first = codes.first_levels();
        let none = comptime!(ones(FIRST_CODE_BITS + 1) << FIRST_CODE_BITS).runtime();
        let levels = comptime!(midpoints.min(FIRST_CODE_BITS));
        let addend = bisection.bisect(&first, none, k, 0u32, levels);
        let addend = (addend & 0x0f0f_0f0f) << comptime!(CODE_BITS - FIRST_CODE_BITS);
        bisection.bisect(&codes, addend, k, FIRST_CODE_BITS, midpoints);
    }

    fn bisect_counted(&self, bisection: &mut Bisection, k: u32, midpoints: u32) -> u32 {
        let mut bits = self.items_in_row();
        for _ in 0..midpoints {
            let reach = self.reach(bisection.middle());
            let enough = reach.total >= k;
            bits = select(enough, reach.bits, bits);
            bisection.narrow(enough, true.runtime());
        }
        bits
    }

    fn items_in_row(&self) -> u32 {
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

const STEPS: f32 = 128.0;
/// Move the integer part to bits 16 to 22, or 8 to 14.
const TO_THIRD_BYTE: f32 = 128.0;
const TO_SECOND_BYTE: f32 = 32_768.0;

/// Fields are a bit wider than codes.
#[derive(CubeType)]
pub(crate) struct QuantizedRow {
    words: Sequence<u32>,
    team: Team,
    #[cube(comptime)]
    pub bits: u32,
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Quantizer {
    low: f32,
    scale: f32,
    offset: f32,
    upper: u32,
    middle: u32,
}

#[cube]
impl RegisterRow<f32> {
    /// Steps of `(high - low) / 128`, rounded down within 1/512.
    pub fn quantize(&self, low: f32, high: f32) -> QuantizedRow {
        let width = high - low;
        let inverse = approx_inverse(width);
        let inverse = inverse * (2.0 - width * inverse);
        let scale = STEPS * (inverse * (2.0 - width * inverse));
        let scale = select(width > 0.0, scale, 0.0);
        let offset = select(width > 0.0, -low * scale, STEPS - 1.0);
        let quantizer = Quantizer {
            low,
            scale,
            offset,
            upper: unknown(0xffff_0000u32),
            middle: unknown(0x00ff_ff00u32),
        };
        let mut words = Sequence::<u32>::new();
        #[unroll]
        for word in 0..comptime!(self.items.len().div_ceil(4)) {
            let first = self.pair(comptime!(4 * word), &quantizer);
            let second = self.pair(comptime!(4 * word + 2), &quantizer);
            let turned = (second << 16) | (second >> 16);
            words.push(either(first, turned, quantizer.middle));
        }
        QuantizedRow { words, team: self.team, bits: CODE_BITS }
    }

    fn pair(&self, #[comptime] item: usize, quantizer: &Quantizer) -> u32 {
        let third = self.placed(item, TO_THIRD_BYTE, quantizer);
        let second = self.placed(comptime!(item + 1), TO_SECOND_BYTE, quantizer);
        either(third, second, quantizer.upper)
    }

    fn placed(
        &self,
        #[comptime] item: usize,
        #[comptime] place: f32,
        quantizer: &Quantizer,
    ) -> u32 {
        if comptime!(item < self.items.len()) {
            let value = select(self.team.holds(item), self.items[item], quantizer.low);
            u32::reinterpret(fma(value, quantizer.scale, quantizer.offset + place))
        } else {
            0u32.runtime()
        }
    }
}

#[cube]
fn either(one: u32, other: u32, mask: u32) -> u32 {
    other ^ ((one ^ other) & mask)
}

/// Hides a mask that compilers would split.
#[cube]
fn unknown(#[comptime] mask: u32) -> u32 {
    plane_shuffle(mask | (UNIT_POS_X >> 16), UNIT_POS_X)
}

#[cube]
impl QuantizedRow {
    pub fn first_levels(&self) -> QuantizedRow {
        let upper = unknown(0xf0f0_f0f0u32);
        let mut words = Sequence::<u32>::new();
        #[unroll]
        for word in 0..comptime!(self.words.len().div_ceil(2)) {
            let first = self.words[comptime!(2 * word)];
            let second = if comptime!(2 * word + 1 < self.words.len()) {
                self.words[comptime!(2 * word + 1)]
            } else {
                0u32.runtime()
            };
            words.push(either(first, second >> comptime!(CODE_BITS - FIRST_CODE_BITS), upper));
        }
        QuantizedRow { words, team: self.team, bits: FIRST_CODE_BITS }
    }

    pub fn count(&self, addend: u32) -> u32 {
        let highest = comptime!(ones(self.bits + 1) << self.bits);
        let mut bits = 0u32;
        #[unroll]
        for word in 0..self.words.len() {
            bits = (bits >> 1) | ((self.words[word] + addend) & highest);
        }
        self.team.sum::<u32>(bits.count_ones())
    }
}
