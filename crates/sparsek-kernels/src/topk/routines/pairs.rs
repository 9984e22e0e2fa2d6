//! A row of halves in the registers of a team, two to a word: what [`super::guess`] does, with half of the
//! instructions.
//!
//! A unit holds 64 items. Item i of each 32 stands in the upper half of a word, item i + 16 in the lower one, so that the
//! signs of differences, shifted together, are in order.

use cubecl::prelude::*;

use super::{
    guess::{Model, Normal},
    span::Span,
    strip::Strip,
    team::Team,
};

/// Two items.
type Pair<H> = Vector<H, Const<2>>;

/// Words of a unit, and of each of its two strips of 32 items.
const WORDS: usize = 32;
const STRIP: usize = WORDS / 2;
/// The signs of both halves of a word.
const SIGNS: u32 = 0x8000_8000;
/// Counts before the row is left to the search among single items.
const COUNTS: u32 = 8;
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
    /// Reads a row that begins at `start`, in loads of eight items.
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
            let upper = loads[load].extract(place);
            let lower = loads[comptime!(load + 2)].extract(place);
            let both = if comptime!(word % 2 == 0) {
                (upper << 16) | (lower & 0xffff)
            } else {
                (upper & 0xffff_0000) | (lower >> 16)
            };
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
            settled = usable && f32::abs(missed) <= 1.0;
            span.narrow(single, f32::cast_from(reached.total), missed >= 0.0);
            let near = span.inside(single + missed * slope);
            let next = select(step == 0, near, span.rooted(wanted));
            value = select(settled, value, H::cast_from(next));
            step += 1;
            running = plane_any(usable && !settled) && step < COUNTS;
        }
        self.settle(value, &reach, k, settled)
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
            sums[comptime!(word % 4)] = sums[comptime!(word % 4)] + self.words[word];
        }
        both::<H>(sums[0usize] + sums[1usize]) + both::<H>(sums[2usize] + sums[3usize])
    }

    /// The sum of the distances from a value.
    fn away(&self, value: H) -> f32 {
        let offset = Pair::<H>::new(H::from_int(0) - value);
        let mut sums = Array::<Pair<H>>::new(4usize);
        #[unroll]
        for word in 0..WORDS {
            let distance = u32::reinterpret(self.words[word] + offset) & !SIGNS;
            let distance = Pair::<H>::reinterpret(distance);
            if comptime!(word < 4) {
                sums[word] = distance;
            } else {
                sums[comptime!(word % 4)] = sums[comptime!(word % 4)] + distance;
            }
        }
        both::<H>(sums[0usize] + sums[1usize]) + both::<H>(sums[2usize] + sums[3usize])
    }

    /// The items that reach `value`, and how many they are.
    fn reach(&self, value: H) -> PairReach {
        // Not `-value`: minus zero would take the sign of zeros for that of a difference.
        let offset = Pair::<H>::new(H::from_int(0) - value);
        let first = self.misses(offset, 0usize);
        let second = self.misses(offset, 1usize);
        let bits = PairBits {
            first: !first,
            second: !second,
        };
        PairReach {
            bits,
            total: self.total(&bits),
        }
    }

    fn misses(&self, offset: Pair<H>, #[comptime] strip: usize) -> u32 {
        let mut bits = 0u32;
        #[unroll]
        for step in 0..STRIP {
            let word = comptime!(strip * STRIP + STRIP - 1 - step);
            let difference = u32::reinterpret(self.words[word] + offset);
            bits = (bits >> 1) | (difference & SIGNS);
        }
        bits
    }

    fn total(&self, bits: &PairBits) -> u32 {
        self.team
            .sum::<u32>(bits.first.count_ones() + bits.second.count_ones())
    }

    /// The members, from a value that they reach, or one too few or too many do.
    fn settle(&self, value: H, reach: &PairReach, k: u32, settled: bool) -> PairChoice {
        let mut bits = PairBits {
            first: reach.bits.first,
            second: reach.bits.second,
        };
        let mut valid = settled && reach.total == k;
        let one_off = settled && reach.total != k;
        if plane_any(one_off) {
            // One too few: the greatest of the others is the last. One too many: the least goes.
            let few = reach.total < k;
            let own = bits_of::<H>(value);
            let from = half::<H>(select(few, next_below(own), own));
            let sign = select(few, H::from_int(-1), H::from_int(1));
            let distance = self.nearest(from, sign);
            let nearest = from + distance * sign;
            // Such differences are exact.
            let exact = distance <= H::abs(from) * H::new(0.5);
            let next = half::<H>(next_above(bits_of::<H>(nearest)));
            let other = self.reach(select(few, nearest, next));
            let hit = other.total == k;
            let past = select(few, other.total > k, other.total < k);
            let tied = one_off && exact && past;
            bits.first = select(one_off, other.bits.first, bits.first);
            bits.second = select(one_off, other.bits.second, bits.second);
            valid = valid || (one_off && hit);
            if plane_any(tied) {
                let cut = self.cut(&reach.bits, &other.bits, few, k);
                bits.first = select(tied, cut.first, bits.first);
                bits.second = select(tied, cut.second, bits.second);
                valid = valid || tied;
            }
        }
        PairChoice { bits, valid }
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
