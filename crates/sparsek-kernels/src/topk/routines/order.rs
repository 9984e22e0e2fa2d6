//! Listed members put in order by value, then index, before they are written.
//!
//! Floats are sorted by their distance from the least member, in as many bits as a word has beside the place in the
//! list: between their bits where few of a row are wanted, which are then hardly ever close to zero, else as numbers.
//! Where neighbours then have the same number, their keys are looked at. If these are not in order, if a distance does
//! not fit, or if there is none, the row is sorted by the digits of the keys instead, the lower one first.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::{
    codes::Codes,
    layout::{RowLayout, element_offset},
    plane::PlaneBlueprint,
    team::Team,
};
use crate::topk::{
    element::{Element, ordered_key},
    search::rough_inverse,
};

/// Most members that a unit sorts in its registers.
const ITEMS: usize = 16;
/// Distances, and what makes floats of them whose lower bits are an integer.
const LEVELS: f32 = 4_194_304.0;
const TO_BITS: f32 = 8_388_608.0;
/// Bits of infinity.
const INFINITY: u32 = 0x7f80_0000;
/// Bits of a key that a pass sorts by.
const DIGIT: u32 = 16;
/// How members are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Order {
    /// Members of a row that a unit sorts.
    pub items: usize,
    /// Whether all of them exist.
    pub full: bool,
    pub keys: Keys,
}

/// What tells members apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Keys {
    /// f32: the distance from the least member, where few of a row are wanted in its bits, else as a number.
    Float { few: bool },
    /// Floats of 16 bits, as f32 of which so many lower bits are zero: the key.
    Half { zeros: u32 },
    /// Integers of 32 bits: the lower digit of the key, then the upper one.
    Word,
}

impl Order {
    /// The order of k members of a row that `lanes` units share, or fewer where it is ragged, unless there are too
    /// many.
    pub fn new(k: usize, lanes: u32, ragged: bool, keys: Keys) -> Option<Order> {
        let items = k.next_power_of_two().div_ceil(lanes as usize);
        (items <= ITEMS).then_some(Order {
            items,
            full: !ragged && k == items * lanes as usize,
            keys,
        })
    }

    /// Lower bits of the keys that tell nothing.
    fn zeros(&self) -> u32 {
        match self.keys {
            Keys::Half { zeros } => zeros,
            Keys::Float { .. } | Keys::Word => 0,
        }
    }

    /// Digits of the keys that tell members apart.
    fn digits(&self) -> u32 {
        if self.zeros() > 0 { 1 } else { 2 }
    }

    /// Bits that hold a slot of the list.
    pub fn bits(&self, lanes: u32) -> u32 {
        lanes.ilog2() + self.items.ilog2()
    }

    /// Distances between bits that fit beside the slot; no more than what leaves floats below, since NaN have none.
    fn room(&self, lanes: u32) -> u32 {
        1 << (32 - self.bits(lanes)).min(30)
    }

    fn by_bits(&self) -> bool {
        self.keys == Keys::Float { few: true }
    }

    fn is_float(&self) -> bool {
        matches!(self.keys, Keys::Float { .. })
    }
}

/// The list of a row's members.
#[derive(CubeType)]
pub(super) struct List {
    /// Where it begins in shared memory.
    pub start: u32,
    pub k: u32,
    pub team: Team,
    /// Where the row begins, and how it lies.
    pub row: usize,
    pub layout: RowLayout,
    #[cube(comptime)]
    pub blueprint: PlaneBlueprint,
    #[cube(comptime)]
    pub order: Order,
}

/// Where in the list the member of a place stands once in order: units write runs of places, and leave a word out
/// after each, so that they do not meet in the same bank.
#[cube]
pub(super) fn spaced(place: u32, #[comptime] order: Order) -> u32 {
    place + place / comptime!(order.items as u32)
}

#[cube]
impl List {
    /// The list of a row, for the units of one plane. It begins at `start`.
    pub fn new(
        start: u32,
        k: u32,
        row: usize,
        layout: &RowLayout,
        #[comptime] blueprint: PlaneBlueprint,
        #[comptime] order: Order,
    ) -> List {
        List {
            start,
            k,
            team: Team::new(layout.cols, comptime!(blueprint.shape.of_a_plane())),
            row,
            layout: RowLayout {
                rows: layout.rows,
                cols: layout.cols,
                row_stride: layout.row_stride,
                col_stride: layout.col_stride,
            },
            blueprint,
            order,
        }
    }

    /// Puts the columns in order, each where [`spaced`] says.
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

    /// The same list. Shuffled with itself: a compiler would keep what it has read and computed.
    fn again(&self) -> List {
        List {
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
            blueprint: self.blueprint,
            order: self.order,
        }
    }

    fn sort_by_digit<E: Element>(&self, elements: &[E], columns: &mut Shared<[u32]>, digit: u32) {
        let mut codes = Codes::new(&self.team, self.order);
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            let slot = codes.slot(item);
            let key = self.key(elements, &*columns, slot);
            codes.put(item, self.digit(key, digit), self.exists(slot));
        }
        codes.sort();
        self.permute(columns, &codes, digit + 1 == comptime!(self.order.digits()));
    }

    /// The digit of a key that a pass sorts by.
    fn digit(&self, key: u32, digit: u32) -> u32 {
        let zeros = comptime!(self.order.zeros());
        if comptime!(zeros > 0) {
            // Before they are inverted, keys of positive numbers end in a one; that of NaN is the one after
            // infinity's.
            let inverted = comptime!(if self.blueprint.search.largest {
                0u32
            } else {
                u32::MAX
            });
            (((key ^ inverted) + comptime!((1u32 << zeros) - 2)) >> zeros) ^ (inverted >> zeros)
        } else {
            (key >> (digit * DIGIT)) & comptime!((1u32 << DIGIT) - 1)
        }
    }

    /// A slot with a member: this one, or the last. Ragged rows may have none.
    fn clamped(&self, slot: u32) -> u32 {
        if comptime!(self.order.full) {
            slot
        } else if comptime!(self.blueprint.ragged) {
            min(slot, max(self.k, 1) - 1)
        } else {
            min(slot, self.k - 1)
        }
    }

    /// Whether a slot has a member.
    fn exists(&self, slot: u32) -> bool {
        comptime!(self.order.full).runtime() || slot < self.k
    }

    /// Where in the row a member stands, or an element for places without one.
    fn offset(&self, columns: &Shared<[u32]>, slot: u32) -> usize {
        let column = columns[(self.start + self.clamped(slot)) as usize];
        let column = if comptime!(self.blueprint.ragged) {
            select(self.k == 0, 0u32, column)
        } else {
            column
        };
        self.row + element_offset(column, &self.layout, self.blueprint.strided)
    }

    /// Puts floats in order by their distances from the least. Returns whether that is the order of all rows
    /// of the plane; otherwise nothing has changed.
    fn sort_by_distance<E: Element>(&self, elements: &[E], columns: &mut Shared<[u32]>) -> bool {
        let mut codes = Codes::new(&self.team, self.order);
        let mut values = Array::<f32>::new(comptime!(self.order.items));
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            values[item] = E::single(elements[self.offset(&*columns, codes.slot(item))]);
        }
        let distinct = if comptime!(self.order.by_bits()) {
            self.put_bits(&values, &mut codes)
        } else {
            self.put_numbers(&values, &mut codes)
        };
        let mut sorted = false.runtime();
        if plane_all(distinct) {
            codes.sort();
            sorted = true.runtime();
            if comptime!(!self.order.by_bits()) {
                if plane_any(codes.any_close(self.k)) {
                    sorted = plane_all(self.is_ordered(elements, &*columns, &codes));
                }
            }
            if sorted {
                self.permute(columns, &codes, true);
            }
        }
        sorted
    }

    /// Distances between the bits of positive floats. Returns whether they fit.
    fn put_bits(&self, values: &Array<f32>, codes: &mut Codes) -> bool {
        let mut least = f32::INFINITY.runtime();
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            least = min(least, self.wanted(values[item]));
        }
        let room = comptime!(self.order.room(self.team.shape.lanes));
        let base = u32::reinterpret(self.team.min::<f32>(least));
        // On the bits: devices may negate a small float to zero.
        let sign = comptime!(if self.blueprint.search.largest {
            0u32
        } else {
            1 << 31
        });
        let mut distances = 0u32;
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            let distance = (u32::reinterpret(values[item]) ^ sign) - base;
            distances |= distance;
            codes.put(item, distance, self.exists(codes.slot(item)));
        }
        // Neither negative floats nor NaN are so far below infinity and so near.
        base <= comptime!(INFINITY - room) && distances < room
    }

    /// Distances as numbers, from which bits are lost. Returns whether all members have one: NaN and infinities
    /// have none.
    fn put_numbers(&self, values: &Array<f32>, codes: &mut Codes) -> bool {
        let mut least = f32::INFINITY.runtime();
        let mut greatest = f32::NEG_INFINITY.runtime();
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            let value = self.wanted(values[item]);
            least = min(least, value);
            greatest = max(greatest, value);
        }
        least = self.team.min::<f32>(least);
        let width = self.team.max::<f32>(greatest) - least;
        let scale = select(width > 0.0, LEVELS * rough_inverse(width), 0.0);
        let mut finite = true.runtime();
        #[unroll]
        for item in 0..comptime!(self.order.items) {
            let distance = fma(self.wanted(values[item]) - least, scale, TO_BITS);
            finite = finite && distance >= TO_BITS;
            let exists = self.exists(codes.slot(item));
            codes.put(item, u32::reinterpret(distance), exists);
        }
        finite
    }

    /// The value, greater ones wanted.
    fn wanted(&self, value: f32) -> f32 {
        if comptime!(self.blueprint.search.largest) {
            value
        } else {
            -value
        }
    }

    /// Whether no value is greater than the one before it: by keys, because devices may take small values for
    /// equal.
    fn is_ordered<E: Element>(
        &self,
        elements: &[E],
        columns: &Shared<[u32]>,
        codes: &Codes,
    ) -> bool {
        let items = comptime!(self.order.items);
        let first = self.key(elements, columns, codes.source(0usize));
        let mut key = first;
        let mut ordered = true.runtime();
        #[unroll]
        for item in 1..items {
            let next = self.key(elements, columns, codes.source(item));
            ordered = ordered && (next <= key || codes.place(item) >= self.k);
            key = next;
        }
        let next = plane_shuffle_down(first, 1);
        ordered && (next <= key || codes.place(items) >= self.k || codes.is_last())
    }

    fn key<E: Element>(&self, elements: &[E], columns: &Shared<[u32]>, slot: u32) -> u32 {
        let value = elements[self.offset(columns, slot)];
        u32::cast_from(ordered_key::<E>(value, self.blueprint.search.largest))
    }

    /// Moves the columns to their places.
    fn permute(&self, columns: &mut Shared<[u32]>, codes: &Codes, last: bool) {
        let items = comptime!(self.order.items);
        let mut moved = Array::<u32>::new(items);
        #[unroll]
        for item in 0..items {
            let source = self.clamped(codes.source(item));
            moved[item] = columns[(self.start + source) as usize];
        }
        sync_plane();
        #[unroll]
        for item in 0..items {
            let place = codes.place(item);
            if self.exists(place) {
                let target = self.start + select(last, spaced(place, self.order), place);
                columns[target as usize] = moved[item];
            }
        }
        sync_plane();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_enough_members_for_each_unit() {
        let order = |k, lanes| -> Option<(usize, bool)> {
            let order = Order::new(k, lanes, false, Keys::Float { few: true })?;
            Some((order.items, order.full))
        };
        assert_eq!(order(1, 8), Some((1, false)));
        assert_eq!(order(32, 8), Some((4, true)));
        assert_eq!(order(33, 8), Some((8, false)));
        assert_eq!(order(128, 8), Some((16, true)));
        assert_eq!(order(129, 8), None);
    }

    #[test]
    fn there_are_floats_that_far_below_infinity() {
        for lanes in [1, 2, 4, 32] {
            let order = Order::new(1, lanes, false, Keys::Float { few: true });
            assert!(order.is_some_and(|order| order.room(lanes) < INFINITY));
        }
    }
}
