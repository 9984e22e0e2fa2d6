//! Rows of 16-bit floats, two to a register.
//!
//! A unit holds 64 items in two halves. A word has item i of a half above item i + 16, so signs
//! shift into index order. Unsettled planes fall back to [`super::register`].

use cubecl::{ir::ElemType, prelude::*};

use super::{
    config::RegisterConfig, layout::RowRequest, output::RowOutput, register::RegisterCall,
};
use crate::{
    primitives::{
        bit_set::ColumnBits,
        infinity::infinity,
        team::{Team, TeamShape},
    },
    topk::{
        key::Element,
        threshold::normal::{Model, Normal, UNCOUNTED, ValueBracket},
        tuning::{PACKED_COUNTS, PACKED_TIES},
    },
};

impl TeamShape {
    pub fn of_packed(self) -> TeamShape {
        TeamShape { lanes: self.lanes / 2, ..self }
    }

    pub fn can_pack(&self) -> bool {
        self.exact_fit && self.of_packed().can_transpose() && self.width == 8 && self.loads == 4
    }
}

impl RegisterConfig {
    fn of_packed(self) -> RegisterConfig {
        RegisterConfig {
            shape: self.shape.of_packed(),
            rows: 2 * self.rows,
            cube_rows: 2 * self.cube_rows,
            ..self
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn packed_select<E: Element, F: Float, I: Numeric, N: Size, V: Size, W: Size>(
    words: &[Vector<u32, Const<4>>],
    call: &mut RegisterCall<E, I, N, V, W>,
    #[comptime] config: RegisterConfig,
    #[define(I)] _index: ElemType,
) {
    let (layout, params) = (call.layout, call.params);
    let paired = comptime!(config.of_packed());
    let plane = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    let first = plane * comptime!(paired.rows);
    let row = first + (UNIT_POS_X / comptime!(paired.shape.lanes)) as usize;
    // As in `register_select`.
    if plane_all(row >= layout.rows) {
        terminate!();
    }
    let row = min(row, layout.rows - 1);
    let team = Team::new(layout.cols, comptime!(paired.shape));
    let start = row * layout.row_stride / 8;
    let packed = PackedRow::<F>::new(words, start, team, comptime!(config.search.largest));
    let guess = packed.guess(params.k, &call.normal);
    if plane_all(guess.valid) {
        let request = RowRequest::whole(layout, &params);
        let mut output = RowOutput::<E, I, V, W>::new(
            call.values,
            call.indices,
            row,
            &request,
            comptime!(paired),
        );
        let length = comptime!(paired.list_length() * paired.cube_rows);
        let mut columns = Shared::<[u32]>::new_slice(length);
        let list = output.list_start(&team);
        let strip = ColumnBits::new(guess.bits.first, &team);
        strip.list(&mut columns, list, params.k, false);
        let before = team.sum::<u32>(guess.bits.first.count_ones());
        let strip = ColumnBits::new(guess.bits.second, &team);
        let strip = ColumnBits {
            bits: strip.bits,
            column: strip.column + comptime!(paired.shape.lanes * 32),
            position: strip.position + before,
        };
        strip.list(&mut columns, list, params.k, false);
        output.write_list(call.elements, row, &request, &team, list, &mut columns);
    } else {
        for half in 0..2usize {
            let row = first
                + half * comptime!(config.rows)
                + (UNIT_POS_X / comptime!(config.shape.lanes)) as usize;
            call.select(min(row, layout.rows - 1), config);
            sync_plane();
        }
    }
}

type PackedPair<H> = Vector<H, Const<2>>;

const WORDS: usize = 32;
const HALF_WORDS: usize = WORDS / 2;
type Bytes = Vector<u8, Const<4>>;

const BYTE_SIGNS: u32 = 0x8080_8080;
const SIGNS: u32 = 0x8000_8000;
/// Standard over mean absolute deviation.
const DEVIATION: f32 = 1.253_314_1;

/// Greater items are wanted.
#[derive(CubeType)]
pub(super) struct PackedRow<H: Float> {
    words: Sequence<PackedPair<H>>,
    team: Team,
}

/// Bit 31 is the first item.
#[derive(CubeType, CubeTypeMut, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct PackedBits {
    pub first: u32,
    pub second: u32,
}

#[derive(CubeType, CubeTypeMut, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct PackedReach {
    bits: PackedBits,
    total: u32,
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct PackedGuess {
    pub bits: PackedBits,
    pub valid: bool,
}

#[cube]
impl<H: Float> PackedRow<H> {
    pub fn new(
        input: &[Vector<u32, Const<4>>],
        start: usize,
        team: Team,
        #[comptime] largest: bool,
    ) -> PackedRow<H> {
        let mut loads = Sequence::<Vector<u32, Const<4>>>::new();
        #[unroll]
        for load in 0..8usize {
            loads.push(input[start + team.column(load) as usize / 8]);
        }
        let mut words = Sequence::<PackedPair<H>>::new();
        #[unroll]
        for word in 0..WORDS {
            let load = comptime!(word / HALF_WORDS * 4 + word % HALF_WORDS / 8);
            let place = comptime!(word % 8 / 2);
            let upper = Bytes::reinterpret(loads[load].extract(place));
            let lower = Bytes::reinterpret(loads[comptime!(load + 2)].extract(place));
            let byte = comptime!(word % 2 * 2);
            let mut both = Bytes::zeroed();
            both.insert(0usize, lower.extract(byte));
            both.insert(1usize, lower.extract(comptime!(byte + 1)));
            both.insert(2usize, upper.extract(byte));
            both.insert(3usize, upper.extract(comptime!(byte + 1)));
            let both = u32::reinterpret(both);
            let both = if comptime!(largest) { both } else { both ^ SIGNS };
            words.push(PackedPair::<H>::reinterpret(both));
        }
        PackedRow::<H> { words, team }
    }

    pub fn guess(&self, k: u32, normal: &Normal) -> PackedGuess {
        let wanted = f32::cast_from(k);
        let model = self.model(normal);
        let usable = model.usable();
        let slope = normal.slope * model.spread;
        let mut bracket = ValueBracket::new(model.mean, model.spread, self.team.cols);
        let mut value = H::cast_from(model.value(normal));
        let mut reach = PackedReach {
            bits: PackedBits { first: 0u32.runtime(), second: 0u32.runtime() },
            total: 0u32.runtime(),
        };
        let mut settled = false.runtime();
        let mut step = 0u32;
        let mut running = plane_any(usable);
        while running {
            reach = self.reach(value);
            let missed = f32::cast_from(reach.total) - wanted;
            let single = f32::cast_from(value);
            settled = settled || (usable && f32::abs(missed) <= 1.0);
            bracket.narrow(single, f32::cast_from(reach.total), missed >= 0.0);
            let near = bracket.inside(single + missed * slope);
            let mut next = H::cast_from(select(step == 0, near, bracket.rooted(wanted)));
            if step >= PACKED_TIES {
                let middle = H::cast_from(0.5 * bracket.low + 0.5 * bracket.high);
                let single = f32::cast_from(middle);
                let counted = bracket.low_count < f32::cast_from(self.team.cols)
                    && bracket.high_count != UNCOUNTED;
                let none = single == bracket.low || single == bracket.high;
                settled = settled || (usable && counted && none);
                let single = f32::cast_from(next);
                let end = single == bracket.low || single == bracket.high;
                next = select(end, middle, next);
            }
            value = select(settled, value, next);
            step += 1;
            running = plane_any(usable && !settled) && step < PACKED_COUNTS;
        }
        self.select_exactly(value, &reach, &bracket, k, settled)
    }

    fn model(&self, normal: &Normal) -> Model {
        let mean = self.team.sum::<f32>(self.sum(H::from_int(0), false)) * normal.inverse;
        let centered = self.sum(H::cast_from(mean), true);
        let spread = DEVIATION * self.team.sum::<f32>(centered) * normal.inverse;
        let infinite = infinity::<f32>();
        Model { mean, spread: select(spread < infinite, spread, infinite) }
    }

    fn sum(&self, value: H, #[comptime] away: bool) -> f32 {
        let offset = PackedPair::<H>::new(H::from_int(0) - value);
        let mut sums = Array::<PackedPair<H>>::new(4usize);
        #[unroll]
        for word in 0..WORDS {
            let item = if comptime!(away) {
                PackedPair::<H>::abs(self.words[word] + offset)
            } else {
                self.words[word]
            };
            if comptime!(word < 4) {
                sums[word] = item;
            } else {
                sums[comptime!(word % 4)] += item;
            }
        }
        both::<H>(sums[0usize] + sums[1usize]) + both::<H>(sums[2usize] + sums[3usize])
    }

    fn reach(&self, value: H) -> PackedReach {
        let bits = self.bits(value);
        PackedReach { bits, total: self.total(&bits) }
    }

    fn bits(&self, value: H) -> PackedBits {
        // Not `-value`: minus zero's sign would pass for a difference's.
        let offset = PackedPair::<H>::new(H::from_int(0) - value);
        let first = self.misses(offset, 0usize);
        let second = self.misses(offset, 1usize);
        PackedBits { first: !first, second: !second }
    }

    fn misses(&self, offset: PackedPair<H>, #[comptime] strip: usize) -> u32 {
        let mut bits = 0u32;
        #[unroll]
        for step in 0..comptime!(HALF_WORDS / 2) {
            let word = comptime!(strip * HALF_WORDS + HALF_WORDS / 2 - 1 - step);
            let first = Bytes::reinterpret(self.words[word] + offset);
            let second = Bytes::reinterpret(self.words[comptime!(word + HALF_WORDS / 2)] + offset);
            let mut signs = Bytes::zeroed();
            signs.insert(0usize, second.extract(1usize));
            signs.insert(1usize, first.extract(1usize));
            signs.insert(2usize, second.extract(3usize));
            signs.insert(3usize, first.extract(3usize));
            bits = (bits >> 1) | (u32::reinterpret(signs) & BYTE_SIGNS);
        }
        bits
    }

    fn total(&self, bits: &PackedBits) -> u32 {
        self.team.sum::<u32>(bits.first.count_ones() + bits.second.count_ones())
    }

    fn select_exactly(
        &self,
        value: H,
        reach: &PackedReach,
        bracket: &ValueBracket,
        k: u32,
        settled: bool,
    ) -> PackedGuess {
        let mut bits = PackedBits { first: reach.bits.first, second: reach.bits.second };
        let mut valid = settled && reach.total == k;
        let missed = settled && reach.total != k;
        if plane_any(missed) {
            // Too few: take the first greatest other. Too many: drop the last least.
            let few = reach.total < k;
            let room = max(reach.total, k) - min(reach.total, k);
            let single = room == 1;
            let own = bits_of::<H>(value);
            let from = half::<H>(select(few, next_below(own), own));
            let sign = select(few, H::from_int(-1), H::from_int(1));
            let distance = self.nearest(from, sign);
            let nearest = from + distance * sign;
            // Else the next value may pass for the nearest.
            let exact = distance <= H::abs(from) * H::new(0.5);
            let next = half::<H>(next_above(bits_of::<H>(nearest)));
            let next = select(few, nearest, next);
            let end = H::cast_from(select(few, bracket.low, bracket.high));
            let other = self.bits(select(single, next, end));
            let level = PackedBits {
                first: reach.bits.first ^ other.first,
                second: reach.bits.second ^ other.second,
            };
            let levels = self.total(&level);
            let sure = exact || levels == 1;
            let one = self.outermost(&level, few);
            let alone = missed && single && sure && one.valid;
            bits.first ^= select(alone, one.bits.first, 0);
            bits.second ^= select(alone, one.bits.second, 0);
            let several = missed && !single;
            valid = valid || alone || several;
            if plane_any(several) {
                let cut = self.take_first(&reach.bits, &other, few, k);
                bits.first = select(several, cut.first, bits.first);
                bits.second = select(several, cut.second, bits.second);
            }
        }
        PackedGuess { bits, valid }
    }

    fn outermost(&self, items: &PackedBits, first: bool) -> PackedGuess {
        let second = select(first, items.first == 0, items.second != 0);
        let word = select(second, items.second, items.first);
        let least = word & (0 - word);
        let item = select(first, word, least).leading_zeros();
        let load = (item >> 3) + select(second, 4u32, 0u32);
        let lanes = comptime!(self.team.shape.lanes);
        let column = (load * lanes + self.team.lane) * 8 + (item & 7);
        let place = select(first, column, !column);
        let place = select(word != 0, place, u32::MAX);
        let outer = self.team.min::<u32>(place);
        let chosen = place == outer && word != 0;
        let bit = select(chosen, 0x8000_0000u32 >> (item & 31), 0);
        PackedGuess {
            bits: PackedBits { first: select(second, 0, bit), second: select(second, bit, 0) },
            valid: outer != u32::MAX,
        }
    }

    /// `reached`, then the first `others`; reversed unless `few`.
    fn take_first(
        &self,
        reached: &PackedBits,
        others: &PackedBits,
        few: bool,
        k: u32,
    ) -> PackedBits {
        let above_first = select(few, reached.first, others.first);
        let above_second = select(few, reached.second, others.second);
        let level_first = reached.first ^ others.first;
        let level_second = reached.second ^ others.second;
        let over = self.team.sum::<u32>(above_first.count_ones() + above_second.count_ones());
        let levels = self.team.sum::<u32>(level_first.count_ones());
        let quota = k - min(over, k);
        let first = ColumnBits::new(level_first, &self.team).first(quota, &self.team);
        let rest = quota - min(levels, quota);
        let second = ColumnBits::new(level_second, &self.team).first(rest, &self.team);
        PackedBits { first: above_first | first, second: above_second | second }
    }

    fn nearest(&self, from: H, sign: H) -> H {
        let signs = PackedPair::<H>::new(sign);
        let offset = PackedPair::<H>::new(H::from_int(0) - from * sign);
        let mut least = Vector::<u16, Const<2>>::new(u16::MAX);
        #[unroll]
        for word in 0..WORDS {
            let distance = fma(self.words[word], signs, offset);
            least = min(least, Vector::<u16, Const<2>>::reinterpret(distance));
        }
        let least = u32::cast_from(min(least.extract(0usize), least.extract(1usize)));
        half::<H>(self.team.min::<u32>(least))
    }
}

#[cube]
fn both<H: Float>(pair: PackedPair<H>) -> f32 {
    f32::cast_from(pair.extract(0usize)) + f32::cast_from(pair.extract(1usize))
}

#[cube]
fn bits_of<H: Float>(value: H) -> u32 {
    u32::cast_from(u16::reinterpret(value))
}

#[cube]
fn half<H: Float>(bits: u32) -> H {
    H::reinterpret(u16::cast_from(bits))
}

/// For finite floats but the greatest.
#[cube]
fn next_above(bits: u32) -> u32 {
    let negative = bits >> 15 == 1;
    select(negative, select(bits == 0x8000, 1u32, bits - 1), bits + 1)
}

#[cube]
fn next_below(bits: u32) -> u32 {
    next_above(bits ^ 0x8000) ^ 0x8000
}
