//! A row of floats in coarse steps: a code of 7 bits for each, four to a word, so that four comparisons take an
//! addition, a mask and a shift; or of 3 bits, eight to a word.
#![allow(clippy::manual_rotate, reason = "CubeCL has no rotation")]

use cubecl::prelude::*;

use super::{
    held::{Held, HeldExpand},
    team::{Team, ones},
};
use crate::topk::search::rough_inverse;

/// Bits of a code, and how many of them tell when eight are in a word.
pub(crate) const LEVELS: u32 = 7;
pub(super) const FIRST_LEVELS: u32 = 3;
/// Steps that a range is cut into.
const STEPS: f32 = 128.0;
/// Added to a number of steps, these leave the whole ones in bits 16 to 22 of the float, or in bits 8 to 14.
const TO_THIRD_BYTE: f32 = 128.0;
const TO_SECOND_BYTE: f32 = 32_768.0;

/// The codes of a row, of so many bits each, in fields one bit wider.
#[derive(CubeType)]
pub(super) struct Coarse {
    words: Sequence<u32>,
    team: Team,
    #[cube(comptime)]
    pub bits: u32,
}

/// How values are cut into steps.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Cut {
    low: f32,
    scale: f32,
    offset: f32,
    /// The upper half of a word, and its middle.
    upper: u32,
    middle: u32,
}

#[cube]
impl Held<f32> {
    /// How many steps of `high - low` / 128 the values are above `low`, rounded down, but for errors of about 1/512 of
    /// a step. Where all values are equal, all are as high as can be.
    pub fn coarse(&self, low: f32, high: f32) -> Coarse {
        let width = high - low;
        let inverse = rough_inverse(width);
        let inverse = inverse * (2.0 - width * inverse);
        let scale = STEPS * (inverse * (2.0 - width * inverse));
        let scale = select(width > 0.0, scale, 0.0);
        let offset = select(width > 0.0, -low * scale, STEPS - 1.0);
        let cut = Cut {
            low,
            scale,
            offset,
            upper: unknown(0xffff_0000u32),
            middle: unknown(0x00ff_ff00u32),
        };
        let mut words = Sequence::<u32>::new();
        #[unroll]
        for word in 0..comptime!(self.items.len().div_ceil(4)) {
            let first = self.pair(comptime!(4 * word), &cut);
            let second = self.pair(comptime!(4 * word + 2), &cut);
            let turned = (second << 16) | (second >> 16);
            words.push(either(first, turned, cut.middle));
        }
        Coarse {
            words,
            team: self.team,
            bits: LEVELS,
        }
    }

    /// The codes of two neighbouring items in the middle bytes of a word.
    fn pair(&self, #[comptime] item: usize, cut: &Cut) -> u32 {
        let third = self.placed(item, TO_THIRD_BYTE, cut);
        let second = self.placed(comptime!(item + 1), TO_SECOND_BYTE, cut);
        either(third, second, cut.upper)
    }

    /// The code of an item, where `place` puts it.
    fn placed(&self, #[comptime] item: usize, #[comptime] place: f32, cut: &Cut) -> u32 {
        if comptime!(item < self.items.len()) {
            let value = select(self.team.holds(item), self.items[item], cut.low);
            u32::reinterpret(fma(value, cut.scale, cut.offset + place))
        } else {
            0u32.runtime()
        }
    }
}

/// `one` where the mask is set, else `other`.
#[cube]
fn either(one: u32, other: u32, mask: u32) -> u32 {
    other ^ ((one ^ other) & mask)
}

/// A mask that compilers do not know: of one that they do, they would take each byte by itself.
#[cube]
fn unknown(#[comptime] mask: u32) -> u32 {
    plane_shuffle(mask | (UNIT_POS_X >> 16), UNIT_POS_X)
}

#[cube]
impl Coarse {
    /// The first bits of each code.
    pub fn first_levels(&self) -> Coarse {
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
            words.push(either(
                first,
                second >> comptime!(LEVELS - FIRST_LEVELS),
                upper,
            ));
        }
        Coarse {
            words,
            team: self.team,
            bits: FIRST_LEVELS,
        }
    }

    /// How many of the row have a code that reaches the highest bit of its field when `addend` is added.
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
