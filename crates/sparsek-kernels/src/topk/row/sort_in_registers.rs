//! Sorts selected columns by value, then index.
//!
//! A word holds a digit of the value above the distance from the last slot. Units use Batcher's
//! odd-even merge sort, then merge bitonically.
//!
//! A float's digit is its distance from the least selected value: of bits for small k, else of
//! numbers. If that fails, key digits are sorted, lower first.

#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::{
    config::{RegisterConfig, SortConfig},
    layout::{RowLayout, element_offset},
};
use crate::{
    primitives::{
        approx::approx_inverse,
        infinity::{INFINITY_BITS, infinity},
        team::Team,
    },
    topk::key::{Element, ordered_key},
};

const LEVELS: f32 = 4_194_304.0;
const TO_BITS: f32 = 8_388_608.0;
const DIGIT: u32 = 16;

#[derive(CubeType)]
pub(super) struct SelectedList {
    pub start: u32,
    pub k: u32,
    pub team: Team,
    pub row: usize,
    pub layout: RowLayout,
    #[cube(comptime)]
    pub config: RegisterConfig,
    #[cube(comptime)]
    pub order: SortConfig,
}

/// Gaps avoid bank conflicts.
#[cube]
pub(super) fn spaced(place: u32, #[comptime] order: SortConfig) -> u32 {
    place + place / comptime!(order.items as u32)
}

#[cube]
impl SelectedList {
    pub fn new(
        start: u32,
        k: u32,
        row: usize,
        layout: RowLayout,
        #[comptime] config: RegisterConfig,
        #[comptime] order: SortConfig,
    ) -> SelectedList {
        SelectedList {
            start,
            k,
            team: Team::new(layout.cols, comptime!(config.shape.of_a_plane())),
            row,
            layout,
            config,
            order,
        }
    }

    pub fn sort<E: Element>(&self, elements: &[E], columns: &mut Shared<[u32]>) {
        let mut sorted = false.runtime();
        if comptime!(self.order.is_float()) {
            sorted = self.sort_by_distance(elements, columns);
        }
        if !sorted {
            for digit in 0..comptime!(self.order.digits()) {
                self.again().sort_by_digit(elements, columns, digit);
            }
        }
    }

    fn again(&self) -> SelectedList {
        SelectedList {
            start: plane_shuffle(self.start, UNIT_POS_X),
            k: self.k,
            team: Team {
                lane: plane_shuffle(self.team.lane, UNIT_POS_X),
                cols: self.team.cols,
                shape: self.team.shape,
                ragged: self.team.ragged,
            },
            row: self.row,
            layout: self.layout,
            config: self.config,
            order: self.order,
        }
    }

    fn sort_by_digit<E: Element>(&self, elements: &[E], columns: &mut Shared<[u32]>, digit: u32) {
        let mut words = SortWords::new(&self.team, self.order);
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            let slot = words.slot(item);
            let key = self.key(elements, &*columns, slot);
            words.put(item, self.digit(key, digit), self.exists(slot));
        }
        words.sort();
        self.permute(columns, &words, digit + 1 == comptime!(self.order.digits()));
    }

    fn digit(&self, key: u32, digit: u32) -> u32 {
        let zeros = comptime!(self.order.zeros());
        if comptime!(zeros > 0) {
            // Before inversion, positive keys end in a one; NaN follows infinity.
            let inverted = comptime!(if self.config.search.largest { 0u32 } else { u32::MAX });
            (((key ^ inverted) + comptime!((1u32 << zeros) - 2)) >> zeros) ^ (inverted >> zeros)
        } else {
            (key >> (digit * DIGIT)) & comptime!((1u32 << DIGIT) - 1)
        }
    }

    /// Ragged rows may have no filled slot.
    fn clamped(&self, slot: u32) -> u32 {
        if comptime!(self.order.full) {
            slot
        } else if comptime!(self.config.ragged) {
            min(slot, max(self.k, 1) - 1)
        } else {
            min(slot, self.k - 1)
        }
    }

    fn exists(&self, slot: u32) -> bool {
        comptime!(self.order.full).runtime() || slot < self.k
    }

    fn offset(&self, columns: &Shared<[u32]>, slot: u32) -> usize {
        let column = columns[(self.start + self.clamped(slot)) as usize];
        let column =
            if comptime!(self.config.ragged) { select(self.k == 0, 0u32, column) } else { column };
        self.row + element_offset(column, &self.layout, self.config.strided)
    }

    /// If not sorted, nothing changed.
    fn sort_by_distance<E: Element>(&self, elements: &[E], columns: &mut Shared<[u32]>) -> bool {
        let mut words = SortWords::new(&self.team, self.order);
        let mut values = Array::<f32>::new(comptime!(self.order.items));
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            values[item] = E::single(elements[self.offset(&*columns, words.slot(item))]);
        }
        let distinct = if comptime!(self.order.by_bits()) {
            self.put_bits(&values, &mut words)
        } else {
            self.put_numbers(&values, &mut words)
        };
        let mut sorted = false.runtime();
        if plane_all(distinct) {
            words.sort();
            sorted = true.runtime();
            if comptime!(!self.order.by_bits()) {
                if plane_any(words.any_close(self.k)) {
                    sorted = plane_all(self.is_ordered(elements, &*columns, &words));
                }
            }
            if sorted {
                self.permute(columns, &words, true);
            }
        }
        sorted
    }

    fn put_bits(&self, values: &Array<f32>, words: &mut SortWords) -> bool {
        let mut least = infinity::<f32>();
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            least = min(least, self.wanted(values[item]));
        }
        let room = comptime!(self.order.room(self.team.shape.lanes));
        let base = u32::reinterpret(self.team.min::<f32>(least));
        // Negation may flush subnormals.
        let sign = comptime!(if self.config.search.largest { 0u32 } else { 1 << 31 });
        let mut distances = 0u32;
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            let distance = (u32::reinterpret(values[item]) ^ sign) - base;
            distances |= distance;
            words.put(item, distance, self.exists(words.slot(item)));
        }
        // Negative floats and NaN are never that near infinity.
        base <= comptime!(INFINITY_BITS - room) && distances < room
    }

    fn put_numbers(&self, values: &Array<f32>, words: &mut SortWords) -> bool {
        let mut least = infinity::<f32>();
        let mut greatest = -infinity::<f32>();
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            let value = self.wanted(values[item]);
            least = min(least, value);
            greatest = max(greatest, value);
        }
        least = self.team.min::<f32>(least);
        let width = self.team.max::<f32>(greatest) - least;
        let scale = select(width > 0.0, LEVELS * approx_inverse(width), 0.0);
        let mut finite = true.runtime();
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            let distance = fma(self.wanted(values[item]) - least, scale, TO_BITS);
            finite = finite && distance >= TO_BITS;
            let exists = self.exists(words.slot(item));
            words.put(item, u32::reinterpret(distance), exists);
        }
        finite
    }

    fn wanted(&self, value: f32) -> f32 {
        if comptime!(self.config.search.largest) { value } else { -value }
    }

    /// By keys: devices may equate small values.
    fn is_ordered<E: Element>(
        &self,
        elements: &[E],
        columns: &Shared<[u32]>,
        words: &SortWords,
    ) -> bool {
        let items = comptime!(self.order.items);
        let first = self.key(elements, columns, words.source(0usize));
        let mut key = first;
        let mut ordered = true.runtime();
        #[unroll]
        for item in 1..items {
            let next = self.key(elements, columns, words.source(item));
            ordered = ordered && (next <= key || words.place(item) >= self.k);
            key = next;
        }
        let next = plane_shuffle_down(first, 1);
        ordered && (next <= key || words.place(items) >= self.k || words.is_last())
    }

    fn key<E: Element>(&self, elements: &[E], columns: &Shared<[u32]>, slot: u32) -> u32 {
        let value = elements[self.offset(columns, slot)];
        u32::cast_from(ordered_key::<E>(value, self.config.search.largest))
    }

    fn permute(&self, columns: &mut Shared<[u32]>, words: &SortWords, last: bool) {
        let items = comptime!(self.order.items);
        let mut moved = Array::<u32>::new(items);
        #[unroll]
        for item in 0..items {
            let source = self.clamped(words.source(item));
            moved[item] = columns[(self.start + source) as usize];
        }
        sync_plane();
        #[unroll]
        for item in 0..items {
            let place = words.place(item);
            if self.exists(place) {
                let target = self.start + select(last, spaced(place, self.order), place);
                columns[target as usize] = moved[item];
            }
        }
        sync_plane();
    }
}

/// Greater first, empty slots last.
#[derive(CubeType)]
pub(super) struct SortWords {
    words: Array<u32>,
    lane: u32,
    #[cube(comptime)]
    lanes: u32,
    #[cube(comptime)]
    order: SortConfig,
}

#[cube]
impl SortWords {
    pub fn new(team: &Team, #[comptime] order: SortConfig) -> SortWords {
        SortWords {
            words: Array::<u32>::new(comptime!(order.items)),
            lane: team.lane,
            lanes: comptime!(team.shape.lanes),
            order,
        }
    }

    /// Neighbors read neighboring slots.
    pub fn slot(&self, #[comptime] item: usize) -> u32 {
        self.lane + comptime!(item as u32 * self.lanes)
    }

    pub fn place(&self, #[comptime] item: usize) -> u32 {
        self.lane * comptime!(self.order.items as u32) + comptime!(item as u32)
    }

    /// Overflowing bits of `digit` must agree.
    pub fn put(&mut self, #[comptime] item: usize, digit: u32, exists: bool) {
        let bits = comptime!(self.order.bits(self.lanes));
        let digit = if comptime!(self.order.full) { digit } else { select(exists, digit, 0u32) };
        let lane = comptime!(self.lanes - 1) - self.lane;
        let rest = lane | comptime!((self.order.items - 1 - item) as u32 * self.lanes);
        self.words[item] = (digit << bits) | rest;
    }

    /// Slot of the sorted item.
    pub fn source(&self, #[comptime] item: usize) -> u32 {
        comptime!((1u32 << self.order.bits(self.lanes)) - 1)
            - (self.words[item] & comptime!((1u32 << self.order.bits(self.lanes)) - 1))
    }

    pub fn is_last(&self) -> bool {
        self.lane == comptime!(self.lanes - 1)
    }

    pub fn any_close(&self, k: u32) -> bool {
        let items = comptime!(self.order.items);
        let least = comptime!(1u32 << self.order.bits(self.lanes));
        let full = comptime!(self.order.full).runtime();
        let mut close = false.runtime();
        #[unroll]
        for item in 1..items {
            let step = self.words[comptime!(item - 1)] - self.words[item];
            close = close || (step < least && (full || self.place(item) < k));
        }
        let next = plane_shuffle_down(self.words[0], 1);
        let step = self.words[comptime!(items - 1)] - next;
        close || (step < least && (full || self.place(items) < k) && !self.is_last())
    }

    /// Within units, then across.
    pub fn sort(&mut self) {
        let items = comptime!(self.order.items);
        #[unroll]
        for pair in 0..comptime!(network(items).len()) {
            let compared = comptime!(network(items)[pair]);
            self.exchange(comptime!(compared.0), comptime!(compared.1));
        }
        #[unroll]
        for level in 0..comptime!(self.lanes.ilog2()) {
            self.trade_mirrored(comptime!((2u32 << level) - 1));
            #[unroll]
            for step in 0..level {
                self.trade(comptime!(1u32 << (level - 1 - step)));
            }
            #[unroll]
            for step in 0..comptime!(items.ilog2()) {
                let distance = comptime!(items >> (step + 1));
                #[unroll]
                for pair in 0..comptime!(items / 2) {
                    let first = comptime!(pair / distance * 2 * distance + pair % distance);
                    self.exchange(first, comptime!(first + distance));
                }
            }
        }
    }

    fn exchange(&mut self, #[comptime] first: usize, #[comptime] second: usize) {
        let a = self.words[first];
        let b = self.words[second];
        self.words[first] = max(a, b);
        self.words[second] = min(a, b);
    }

    fn trade(&mut self, #[comptime] distance: u32) {
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            let own = self.words[item];
            let other = plane_shuffle_xor(own, distance);
            self.words[item] = self.better(own, other, distance);
        }
    }

    fn trade_mirrored(&mut self, #[comptime] mask: u32) {
        let items = comptime!(self.order.items);
        let bit = comptime!(mask.div_ceil(2));
        #[unroll]
        for item in 0..comptime!(items.div_ceil(2)) {
            let mirrored = comptime!(items - 1 - item);
            let own = self.words[item];
            let far = self.words[mirrored];
            let other = plane_shuffle_xor(far, mask);
            self.words[item] = self.better(own, other, bit);
            if comptime!(mirrored != item) {
                let other = plane_shuffle_xor(own, mask);
                self.words[mirrored] = self.better(far, other, bit);
            }
        }
    }

    fn better(&self, own: u32, other: u32, #[comptime] bit: u32) -> u32 {
        select(self.lane & bit == 0, max(own, other), min(own, other))
    }
}

fn network(items: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut run = 1;
    while run < items {
        let mut distance = run;
        while distance > 0 {
            for start in (distance % run..items - distance).step_by(2 * distance) {
                pairs.extend(
                    (start..(start + distance).min(items - distance))
                        .map(|first| (first, first + distance))
                        .filter(|(a, b)| a / (2 * run) == b / (2 * run)),
                );
            }
            distance /= 2;
        }
        run *= 2;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(1, 0)]
    #[case(2, 1)]
    #[case(4, 5)]
    #[case(8, 19)]
    #[case(16, 63)]
    fn the_network_sorts(#[case] items: usize, #[case] length: usize) {
        let network = network(items);
        assert_eq!(network.len(), length);
        for input in 0..1u32 << items {
            let sorted = network.iter().fold(input, |bits, (a, b)| {
                let swap = bits >> a & 1 == 0 && bits >> b & 1 == 1;
                if swap { bits ^ (1 << a | 1 << b) } else { bits }
            });
            assert_eq!(sorted, (1u32 << input.count_ones()) - 1);
        }
    }
}
