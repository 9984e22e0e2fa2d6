//! A row of halves in the registers of a team, two to a word: what [`super::guess`] does, with half of the
//! instructions.
//!
//! A unit holds 64 items. Item i of each 32 stands in the upper half of a word, item i + 16 in the lower one, so that the
//! signs of differences, shifted together, are in order.

use cubecl::prelude::*;

use super::{
    guess::{Model, Normal},
    span::{Span, UNCOUNTED},
    strip::Strip,
    team::Team,
};

/// Two items.
type Pair<H> = Vector<H, Const<2>>;

/// Words of a unit, and of each of its two strips of 32 items.
const WORDS: usize = 32;
const STRIP: usize = WORDS / 2;
/// The bytes of two items.
type Bytes = Vector<u8, Const<4>>;

/// The first bit of each byte of a word.
const BYTE_SIGNS: u32 = 0x8080_8080;
/// The signs of both halves of a word.
const SIGNS: u32 = 0x8000_8000;
/// Counts before the row is left to the search among single items.
const COUNTS: u32 = 10;
/// Counts after which values that are equal are looked for.
const FEW: u32 = 3;
/// Deviations from the mean for each mean absolute deviation of normal values.
const DEVIATION: f32 = 1.253_314_1;

/// The items of this unit, greater ones wanted.
#[derive(CubeType)]
pub(super) struct Pairs<H: Float> {
    words: Sequence<Pair<H>>,
    /// With the shape of one of the strips.
    team: Team,
}

/// Members among the items of this unit, a bit each, for each of its strips the first item's the highest.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct PairBits {
    pub first: u32,
    pub second: u32,
}

/// Members that were counted.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct PairReach {
    bits: PairBits,
    total: u32,
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct PairChoice {
    pub bits: PairBits,
    pub valid: bool,
}

#[cube]
impl<H: Float> Pairs<H> {
    /// Reads a row that begins with the load `start`, in loads of eight items.
    pub fn new(
        input: &[Vector<u32, Const<4>>],
        start: usize,
        team: Team,
        #[comptime] largest: bool,
    ) -> Pairs<H> {
        let mut loads = Sequence::<Vector<u32, Const<4>>>::new();
        #[unroll]
        for load in 0..8usize {
            loads.push(input[start + team.column(load) as usize / 8]);
        }
        let mut words = Sequence::<Pair<H>>::new();
        #[unroll]
        for word in 0..WORDS {
            let load = comptime!(word / STRIP * 4 + word % STRIP / 8);
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
            let both = if comptime!(largest) {
                both
            } else {
                both ^ SIGNS
            };
            words.push(Pair::<H>::reinterpret(both));
        }
        Pairs::<H> { words, team }
    }

    /// The k greatest of the row, valid where they were found.
    pub fn guess(&self, k: u32, normal: &Normal) -> PairChoice {
        let wanted = f32::cast_from(k);
        let model = self.model(normal);
        let usable = model.usable();
        let slope = normal.slope * model.spread;
        let mut span = Span::new(model.mean, model.spread, self.team.cols);
        let mut value = H::cast_from(model.value(normal));
        let mut reach = PairReach {
            bits: PairBits {
                first: 0u32.runtime(),
                second: 0u32.runtime(),
            },
            total: 0u32.runtime(),
        };
        let mut settled = false.runtime();
        let mut step = 0u32;
        let mut running = plane_any(usable);
        while running {
            let reached = self.reach(value);
            reach.bits.first = reached.bits.first;
            reach.bits.second = reached.bits.second;
            reach.total = reached.total;
            let missed = f32::cast_from(reached.total) - wanted;
            let single = f32::cast_from(value);
            settled = settled || (usable && f32::abs(missed) <= 1.0);
            span.narrow(single, f32::cast_from(reached.total), missed >= 0.0);
            let near = span.inside(single + missed * slope);
            let mut next = H::cast_from(select(step == 0, near, span.rooted(wanted)));
            if step >= FEW {
                // Many equal values: the ends may be neighbours, both counted.
                let middle = H::cast_from(0.5 * span.low + 0.5 * span.high);
                let single = f32::cast_from(middle);
                let counted =
                    span.low_count < f32::cast_from(self.team.cols) && span.high_count != UNCOUNTED;
                let none = single == span.low || single == span.high;
                settled = settled || (usable && counted && none);
                let single = f32::cast_from(next);
                let end = single == span.low || single == span.high;
                next = select(end, middle, next);
            }
            value = select(settled, value, next);
            step += 1;
            running = plane_any(usable && !settled) && step < COUNTS;
        }
        self.settle(value, &reach, &span, k, settled)
    }

    /// Mean and deviation, in the arithmetic of halves.
    fn model(&self, normal: &Normal) -> Model {
        let mean = self.team.sum::<f32>(self.sum()) * normal.inverse;
        let centred = self.away(H::cast_from(mean));
        let spread = DEVIATION * self.team.sum::<f32>(centred) * normal.inverse;
        let number = spread < f32::INFINITY;
        Model {
            mean,
            spread: select(number, spread, f32::INFINITY),
        }
    }

    fn sum(&self) -> f32 {
        let mut sums = Array::<Pair<H>>::new(4usize);
        #[unroll]
        for chain in 0..4usize {
            sums[chain] = self.words[chain];
        }
        #[unroll]
        for word in 4..WORDS {
            sums[comptime!(word % 4)] += self.words[word];
        }
        both::<H>(sums[0usize] + sums[1usize]) + both::<H>(sums[2usize] + sums[3usize])
    }

    /// The sum of the distances from a value.
    fn away(&self, value: H) -> f32 {
        let offset = Pair::<H>::new(H::from_int(0) - value);
        let mut sums = Array::<Pair<H>>::new(4usize);
        #[unroll]
        for word in 0..WORDS {
            let distance = Pair::<H>::abs(self.words[word] + offset);
            if comptime!(word < 4) {
                sums[word] = distance;
            } else {
                sums[comptime!(word % 4)] += distance;
            }
        }
        both::<H>(sums[0usize] + sums[1usize]) + both::<H>(sums[2usize] + sums[3usize])
    }

    /// The items that reach `value`, and how many they are.
    fn reach(&self, value: H) -> PairReach {
        let bits = self.bits(value);
        PairReach {
            bits,
            total: self.total(&bits),
        }
    }

    fn bits(&self, value: H) -> PairBits {
        // Not `-value`: minus zero would take the sign of zeros for that of a difference.
        let offset = Pair::<H>::new(H::from_int(0) - value);
        let first = self.misses(offset, 0usize);
        let second = self.misses(offset, 1usize);
        PairBits {
            first: !first,
            second: !second,
        }
    }

    fn misses(&self, offset: Pair<H>, #[comptime] strip: usize) -> u32 {
        let mut bits = 0u32;
        #[unroll]
        for step in 0..comptime!(STRIP / 2) {
            let word = comptime!(strip * STRIP + STRIP / 2 - 1 - step);
            let first = Bytes::reinterpret(self.words[word] + offset);
            let second = Bytes::reinterpret(self.words[comptime!(word + STRIP / 2)] + offset);
            let mut signs = Bytes::zeroed();
            signs.insert(0usize, second.extract(1usize));
            signs.insert(1usize, first.extract(1usize));
            signs.insert(2usize, second.extract(3usize));
            signs.insert(3usize, first.extract(3usize));
            bits = (bits >> 1) | (u32::reinterpret(signs) & BYTE_SIGNS);
        }
        bits
    }

    fn total(&self, bits: &PairBits) -> u32 {
        self.team
            .sum::<u32>(bits.first.count_ones() + bits.second.count_ones())
    }

    /// The members, from a value that they reach, or one too few or too many do, or one of two neighbours between
    /// which the last of them lie.
    fn settle(
        &self,
        value: H,
        reach: &PairReach,
        span: &Span,
        k: u32,
        settled: bool,
    ) -> PairChoice {
        let mut bits = PairBits {
            first: reach.bits.first,
            second: reach.bits.second,
        };
        let mut valid = settled && reach.total == k;
        let missed = settled && reach.total != k;
        if plane_any(missed) {
            // Too few: the first of the greatest of the others are members. Too many: the last of the least are none.
            let few = reach.total < k;
            let room = max(reach.total, k) - min(reach.total, k);
            let single = room == 1;
            let own = bits_of::<H>(value);
            let from = half::<H>(select(few, next_below(own), own));
            let sign = select(few, H::from_int(-1), H::from_int(1));
            let distance = self.nearest(from, sign);
            let nearest = from + distance * sign;
            // Such differences are exact. Others may take some of the next values for the nearest.
            let exact = distance <= H::abs(from) * H::new(0.5);
            let next = half::<H>(next_above(bits_of::<H>(nearest)));
            let next = select(few, nearest, next);
            let end = H::cast_from(select(few, span.low, span.high));
            let other = self.bits(select(single, next, end));
            let level = PairBits {
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
                let cut = self.cut(&reach.bits, &other, few, k);
                bits.first = select(several, cut.first, bits.first);
                bits.second = select(several, cut.second, bits.second);
            }
        }
        PairChoice { bits, valid }
    }

    /// The first of some items of the row, or the last of them, valid where there is one.
    fn outermost(&self, items: &PairBits, first: bool) -> PairChoice {
        let second = select(first, items.first == 0, items.second != 0);
        let word = select(second, items.second, items.first);
        let least = word & (0 - word);
        let item = select(first, word, least).leading_zeros();
        // Columns are in the order of loads, units and items of a load.
        let load = (item >> 3) + select(second, 4u32, 0u32);
        let lanes = comptime!(self.team.shape.lanes);
        let column = (load * lanes + self.team.lane) * 8 + (item & 7);
        let place = select(first, column, !column);
        let place = select(word != 0, place, u32::MAX);
        let outer = self.team.min::<u32>(place);
        let chosen = place == outer && word != 0;
        let bit = select(chosen, 0x8000_0000u32 >> (item & 31), 0);
        PairChoice {
            bits: PairBits {
                first: select(second, 0, bit),
                second: select(second, bit, 0),
            },
            valid: outer != u32::MAX,
        }
    }

    /// Where `few`, those that reach a threshold, then the first of the others that reach the next one; otherwise the
    /// other way round. k in all.
    fn cut(&self, reached: &PairBits, others: &PairBits, few: bool, k: u32) -> PairBits {
        let above_first = select(few, reached.first, others.first);
        let above_second = select(few, reached.second, others.second);
        let level_first = reached.first ^ others.first;
        let level_second = reached.second ^ others.second;
        let over = self
            .team
            .sum::<u32>(above_first.count_ones() + above_second.count_ones());
        let levels = self.team.sum::<u32>(level_first.count_ones());
        let quota = k - min(over, k);
        let first = Strip::new(level_first, &self.team).first(quota, &self.team);
        let rest = quota - min(levels, quota);
        let second = Strip::new(level_second, &self.team).first(rest, &self.team);
        PairBits {
            first: above_first | first,
            second: above_second | second,
        }
    }

    /// The least distance of an item from a value, in the direction of `sign`.
    fn nearest(&self, from: H, sign: H) -> H {
        let signs = Pair::<H>::new(sign);
        let offset = Pair::<H>::new(H::from_int(0) - from * sign);
        // As integers, distances to the other side are greater than all others.
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
fn both<H: Float>(pair: Pair<H>) -> f32 {
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

/// The bits of the half above a finite one that is not the greatest.
#[cube]
fn next_above(bits: u32) -> u32 {
    let negative = bits >> 15 == 1;
    select(negative, select(bits == 0x8000, 1u32, bits - 1), bits + 1)
}

/// The bits of the half below a finite one that is not the least.
#[cube]
fn next_below(bits: u32) -> u32 {
    next_above(bits ^ 0x8000) ^ 0x8000
}
