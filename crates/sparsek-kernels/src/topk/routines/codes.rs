//! Words that hold a digit of a member's value and its place in a list, sorted by the units of a plane that share a
//! row: Batcher's odd-even merge sort in the registers of each, then bitonic merges of units with units.

use cubecl::prelude::*;

use super::{order::Order, team::Team};

/// A word for each member: a digit of its value, and below it how far its slot is from the last. Greater ones come
/// first, and those without a member last.
#[derive(CubeType)]
pub(super) struct Codes {
    words: Array<u32>,
    lane: u32,
    #[cube(comptime)]
    lanes: u32,
    #[cube(comptime)]
    order: Order,
}

#[cube]
impl Codes {
    pub fn new(team: &Team, #[comptime] order: Order) -> Codes {
        Codes {
            words: Array::<u32>::new(comptime!(order.items)),
            lane: team.lane,
            lanes: comptime!(team.shape.lanes),
            order,
        }
    }

    /// The slot of the list from which an item comes: neighbouring units read neighbouring slots.
    pub fn slot(&self, #[comptime] item: usize) -> u32 {
        self.lane + comptime!(item as u32 * self.lanes)
    }

    /// The place to which an item goes once sorted.
    pub fn place(&self, #[comptime] item: usize) -> u32 {
        self.lane * comptime!(self.order.items as u32) + comptime!(item as u32)
    }

    /// Takes a digit, of which bits that do not fit must be the same for all. Slots without a member come last anyway.
    pub fn put(&mut self, #[comptime] item: usize, digit: u32, exists: bool) {
        let bits = comptime!(self.order.bits(self.lanes));
        let digit = if comptime!(self.order.full) {
            digit
        } else {
            select(exists, digit, 0u32)
        };
        // How far the slot is from the last one.
        let lane = comptime!(self.lanes - 1) - self.lane;
        let rest = lane | comptime!((self.order.items - 1 - item) as u32 * self.lanes);
        self.words[item] = (digit << bits) | rest;
    }

    /// The slot of the item that came to a place.
    pub fn source(&self, #[comptime] item: usize) -> u32 {
        comptime!((1u32 << self.order.bits(self.lanes)) - 1)
            - (self.words[item] & comptime!((1u32 << self.order.bits(self.lanes)) - 1))
    }

    /// Whether this unit has the last places.
    pub fn is_last(&self) -> bool {
        self.lane == comptime!(self.lanes - 1)
    }

    /// Whether the digits of two neighbours among the first k may be the same.
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

    /// Sorts the words, the greatest first: each unit its own, then units with units.
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

    /// The greater of two words of this unit comes first.
    fn exchange(&mut self, #[comptime] first: usize, #[comptime] second: usize) {
        let a = self.words[first];
        let b = self.words[second];
        self.words[first] = max(a, b);
        self.words[second] = min(a, b);
    }

    /// Each place with the same place of another unit.
    fn trade(&mut self, #[comptime] distance: u32) {
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            let own = self.words[item];
            let other = plane_shuffle_xor(own, distance);
            self.words[item] = self.better(own, other, distance);
        }
    }

    /// Each place with the mirrored place of another unit, the last with the first.
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

    /// The greater of two words for the first of two units, the less for the other.
    fn better(&self, own: u32, other: u32, #[comptime] bit: u32) -> u32 {
        select(self.lane & bit == 0, max(own, other), min(own, other))
    }
}

/// Batcher's odd-even merge sort: the pairs to compare, in order.
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
    use super::*;

    /// A network that sorts all sequences of zeros and ones sorts all.
    #[test]
    fn the_network_sorts() {
        for (items, length) in [(1, 0), (2, 1), (4, 5), (8, 19), (16, 63)] {
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
}
