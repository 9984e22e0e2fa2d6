//! Register row of floats or keys, greater wanted. Floats compare by signs of differences.

use cubecl::prelude::*;

use super::{
    cube_reduce::CubeReduce,
    histogram::{
        BINS, KeySet, KeySetExpand, clear_bins, count_key, histogram_threshold, key_range,
    },
    search::{KeyBracket, KeyRange, SearchParams, SearchRow, SearchRowExpand, find_threshold},
};
use crate::{
    primitives::{
        bit_set::{ColumnBits, SelectedItems, bit, mask},
        team::Team,
    },
    topk::{
        key::{Element, ordered_is_finite},
        options::SearchConfig,
    },
};

/// 2^-100: differences of greater floats are normal, so devices agree on their signs.
pub(crate) const LEAST_SURE: f32 = 7.888_609e-31;
const NEAR_ZERO: f32 = 0.5 * LEAST_SURE;

/// Items past the end are least.
#[derive(CubeType)]
pub(crate) struct RegisterRow<T: Numeric> {
    pub items: Sequence<T>,
    pub team: Team,
}

/// The first item is in bit 31.
#[derive(CubeType, Clone, Copy)]
pub(crate) struct Guess {
    pub bits: u32,
    pub valid: bool,
    /// Wrong for [unsure](RegisterRow::has_unsure) values.
    pub near_zero: bool,
}

#[derive(CubeType, CubeTypeMut, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Reach {
    pub bits: u32,
    pub total: u32,
}

#[cube]
impl<T: Numeric> RegisterRow<T> {
    pub fn new(items: Sequence<T>, team: Team) -> RegisterRow<T> {
        RegisterRow::<T> { items, team }
    }

    pub fn count(&self, value: T) -> f32 {
        let mut counts = 0.0f32;
        let mut others = 0.0f32;
        #[unroll]
        for item in 0..self.items.len() {
            let count = select(self.items[item] >= value, 1.0f32, 0.0f32);
            if comptime!(item % 2 == 0) {
                counts += count;
            } else {
                others += count;
            }
        }
        self.team.sum::<f32>(counts + others)
    }

    pub fn reaching(&self, value: T) -> u32 {
        let mut bits = 0u32;
        #[unroll]
        for item in 0..self.items.len() {
            bits |= select(self.items[item] >= value, comptime!(bit(item)), 0u32);
        }
        bits
    }

    pub fn total(&self, bits: u32) -> u32 {
        self.team.sum::<u32>(bits.count_ones())
    }

    /// The first `quota` of `bits`.
    fn first(&self, bits: u32, quota: u32) -> u32 {
        if comptime!(self.team.shape.can_transpose()) {
            ColumnBits::new(bits, &self.team).first(quota, &self.team)
        } else {
            SelectedItems::new(bits, self.team, true).first(quota)
        }
    }

    /// `above`, then the first of `reach`.
    pub fn take_first(&self, reach: u32, above: u32, k: u32) -> Guess {
        let over = self.total(above);
        let quota = k - min(over, k);
        let level = reach ^ above;
        let levels = self.total(level);
        Guess {
            bits: above | self.first(level, quota),
            valid: over < k && over + levels >= k,
            near_zero: false.runtime(),
        }
    }

    fn exceeding(&self, value: T) -> u32 {
        let mut bits = 0u32;
        #[unroll]
        for item in 0..self.items.len() {
            bits |= select(self.items[item] > value, comptime!(bit(item)), 0u32);
        }
        bits
    }

    /// All above `high`, then the first from `low`.
    pub fn select_between(&self, low: T, high: T, k: u32) -> u32 {
        self.take_first(self.reaching(low), self.exceeding(high), k).bits
    }
}

#[cube]
impl RegisterRow<f32> {
    /// Uncertain for infinities, NaN, and below [`LEAST_SURE`], except zero if no others are that
    /// small.
    pub fn sign_compare(&self, value: f32) -> u32 {
        let offset = select(value == 0.0, NEAR_ZERO, -value);
        let mut misses = 0u32;
        #[unroll]
        for item in 0..self.items.len() {
            misses = (misses << 1) | (u32::reinterpret(self.items[item] + offset) >> 31);
        }
        let items = comptime!(self.items.len() as u32);
        (misses << comptime!(32 - items)) ^ comptime!(mask(items))
    }

    pub fn above(&self, value: f32) -> u32 {
        let value = select(value == 0.0, NEAR_ZERO, value);
        let mut signs = 0u32;
        #[unroll]
        for item in 0..self.items.len() {
            signs = (signs << 1) | (u32::reinterpret(value - self.items[item]) >> 31);
        }
        signs << comptime!(32 - self.items.len() as u32)
    }

    /// Nonzero values too small to compare.
    pub fn has_unsure(&self) -> bool {
        let mut found = 0.0f32;
        #[unroll]
        for item in 0..self.items.len() {
            let value = self.items[item];
            // Some devices flush subnormals.
            let unsure = f32::abs(value) < LEAST_SURE && u32::reinterpret(value) << 1 != 0;
            found = select(unsure, 1.0f32, found);
        }
        self.team.max::<f32>(found) > 0.0f32
    }

    pub fn reach(&self, value: f32) -> Reach {
        let bits = self.sign_compare(value);
        Reach { bits, total: self.total(bits) }
    }
}

#[derive(CubeType)]
pub(crate) struct KeyRow<E: Element> {
    pub row: RegisterRow<E::Key>,
    #[cube(comptime)]
    pub search: SearchConfig,
}

#[cube]
impl<E: Element> KeyRow<E> {
    /// Selected bits.
    pub fn select(&self, params: &SearchParams) -> u32 {
        let threshold = find_threshold::<E, KeyRow<E>>(self, params, self.search);
        self.row.select_between(threshold.low, threshold.high, params.k)
    }

    /// Selected bits of a cube's row, exact.
    pub fn select_by_histogram(&self, k: u32) -> u32 {
        let shape = comptime!(self.row.team.shape);
        let bins = Shared::<[Atomic<u32>]>::new_slice(BINS);
        let reduce = CubeReduce::new(shape);
        clear_bins(&bins, comptime!(shape.lanes));
        let bracket = self.bracket(k);
        let all = key_range::<E::Key>(bracket.low, bracket.high);
        let threshold =
            histogram_threshold::<E::Key, KeyRow<E>>(self, &all, k, &bins, &reduce, 0u32);
        let mut bits = self.row.exceeding(threshold.high);
        if threshold.above < k {
            let level = self.row.reaching(threshold.low) ^ bits;
            bits |= self.row.first(level, k - threshold.above);
        }
        bits
    }
}

#[cube]
impl<E: Element> KeySet<E::Key> for KeyRow<E> {
    fn count_keys(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<E::Key>, shift: u32) {
        #[unroll]
        for item in 0..self.row.items.len() {
            if self.row.team.holds(item) {
                count_key::<E::Key>(bins, self.row.items[item], range, shift);
            }
        }
    }
}

#[cube]
impl<E: Element> SearchRow<E> for KeyRow<E> {
    fn bracket(&self, k: u32) -> KeyBracket<E::Key> {
        let mut high = E::Key::min_value();
        #[unroll]
        for item in 0..self.row.items.len() {
            high = max(high, self.row.items[item]);
        }
        // For k up to the lanes, the least unit maximum bounds the kth.
        let items = self.row.items.len();
        let lanes = comptime!(self.row.team.shape.lanes);
        let mut low = high;
        let mut expected = f32::cast_from(self.row.team.cols) * comptime!(expected_share(items));
        if k > lanes {
            #[unroll]
            for item in 0..self.row.items.len() {
                let key = self.row.items[item];
                low = min(low, select(self.row.team.holds(item), key, E::Key::max_value()));
            }
            expected = f32::cast_from(self.row.team.cols);
        }
        KeyBracket::<E::Key> {
            low: self.row.team.min::<E::Key>(low),
            high: self.row.team.max::<E::Key>(high),
            expected,
        }
    }

    fn finite_range(&self) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        #[unroll]
        for item in 0..self.row.items.len() {
            let key = self.row.items[item];
            let counts =
                ordered_is_finite::<E>(key, self.search.largest) && self.row.team.holds(item);
            low = min(low, select(counts, key, E::Key::max_value()));
            high = max(high, select(counts, key, E::Key::min_value()));
        }
        KeyRange::<E::Key> {
            low: self.row.team.min::<E::Key>(low),
            high: self.row.team.max::<E::Key>(high),
        }
    }

    fn count(&self, key: E::Key) -> u32 {
        u32::cast_from(self.row.count(key))
    }

    fn greatest(&self, key: E::Key) -> E::Key {
        let mut greatest = E::Key::min_value();
        #[unroll]
        for item in 0..self.row.items.len() {
            let other = self.row.items[item];
            greatest = max(greatest, select(other <= key, other, E::Key::min_value()));
        }
        self.row.team.max::<E::Key>(greatest)
    }

    fn agreed(&self, condition: bool) -> bool {
        plane_any(condition)
    }
}

fn expected_share(items: usize) -> f32 {
    1.0 - (1.0f32 / 33.0).powf(1.0 / items as f32)
}
