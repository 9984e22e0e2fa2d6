//! Sorts rows by digits of [`DIGIT_BITS`], least significant first.
//!
//! ```text
//! per digit: count each digit in each tile of a row
//!            start of a digit in a tile <- elements of lower digits, and of it in earlier tiles
//!            move each element to the start + its rank among equal digits of the tile
//! ```
//!
//! Every pass is stable. Rows that fit a tile take one launch; longer ones three per digit, and two
//! more. Ballots find equal digits, without atomics.
//!
//! Keys are inverted: the best sort first. Ragged rows end with the greatest key.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    bounds::RowBounds,
    layout::{RowLayout, row_start},
};
use crate::{
    primitives::team::{Team, TeamShape},
    topk::{
        key::{Element, ordered_key, ordered_refined, ordered_rough, short_word},
        tuning::RADIX_UNITS,
    },
};

const UNITS: u32 = RADIX_UNITS;
pub(super) const DIGITS: u32 = UNITS;
pub(super) const DIGIT_BITS: u32 = DIGITS.ilog2();

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RadixConfig {
    /// At most 32.
    pub plane: u32,
    /// Per unit.
    pub items: usize,
    pub largest: bool,
    /// 16-bit keys.
    pub short: bool,
    pub strided: bool,
    /// Writes values.
    pub values: bool,
}

impl RadixConfig {
    pub fn tile(&self) -> usize {
        UNITS as usize * self.items
    }

    pub fn planes(&self) -> u32 {
        UNITS / self.plane
    }

    fn shape(&self) -> TeamShape {
        TeamShape::of_cube(UNITS, self.plane)
    }
}

#[derive(CubeType, CubeLaunch)]
pub(super) struct UnsortedRows<E: Element, I: Numeric> {
    values: &'static [E],
    indices: ComptimeOption<&'static [I]>,
    bounds: RowBounds,
    layout: RowLayout,
}

#[cube]
impl<E: Element, I: Numeric> UnsortedRows<E, I> {
    fn value(&self, row: usize, place: u32, #[comptime] strided: bool) -> E {
        self.values[row_start(row, place, &self.layout, strided)]
    }

    fn index(&self, row: usize, place: u32) -> I {
        #[comptime]
        match self.indices {
            ComptimeOption::Some(indices) => {
                indices[row * self.layout.cols as usize + place as usize]
            }
            ComptimeOption::None => I::cast_from(place),
        }
    }

    fn filled(&self, row: usize) -> u32 {
        self.bounds.selected_count(row, self.layout.cols)
    }

    fn key(&self, row: usize, place: u32, filled: u32, #[comptime] config: RadixConfig) -> E::Key {
        let mut key = E::Key::max_value();
        if place < filled {
            let value = self.value(row, place, config.strided);
            key = if comptime!(config.short) {
                let rough = ordered_rough::<E>(value, true, config.largest);
                let upper = ordered_refined::<E>(rough, true, config.largest);
                E::Key::cast_from(0xffffu32 - short_word::<E::Key>(upper, config.largest))
            } else {
                !ordered_key::<E>(value, config.largest)
            };
        }
        key
    }
}

/// Index order: plane, item, unit.
#[derive(CubeType)]
struct Tile<K: Int> {
    keys: Array<K>,
    places: Array<u32>,
    /// Counts, then starts.
    counts: Shared<[u32]>,
    #[cube(comptime)]
    config: RadixConfig,
}

#[cube]
impl<K: Int> Tile<K> {
    fn new(#[comptime] config: RadixConfig) -> Tile<K> {
        Tile::<K> {
            keys: Array::<K>::new(config.items),
            places: Array::<u32>::new(config.items),
            counts: Shared::<[u32]>::new_slice(comptime!((config.planes() * DIGITS) as usize)),
            config,
        }
    }

    fn position(&self, #[comptime] item: usize) -> u32 {
        let items = comptime!(self.config.items as u32);
        (UNIT_POS_Y * items + comptime!(item as u32)) * comptime!(self.config.plane) + UNIT_POS_X
    }

    fn slot(&self, #[comptime] item: usize, shift: u32) -> u32 {
        UNIT_POS_Y * DIGITS + digit_of::<K>(self.keys[item], shift)
    }

    fn rank(&self, shift: u32) -> Array<u32> {
        let mut counts = self.counts.clone();
        let mut ranks = Array::<u32>::new(comptime!(self.config.items));
        #[unroll]
        for plane in 0..comptime!(self.config.planes()) {
            counts[(UNIT_POS + comptime!(plane * UNITS)) as usize] = 0u32;
        }
        sync_cube();
        let below = (1u32 << UNIT_POS_X) - 1;
        #[unroll]
        for item in 0..comptime!(self.config.items) {
            let slot = self.slot(item, shift);
            let same = units_with(digit_of::<K>(self.keys[item], shift), self.config.plane);
            let before = counts[slot as usize];
            let rank = (same & below).count_ones();
            sync_plane();
            if rank == 0 {
                counts[slot as usize] = before + same.count_ones();
            }
            sync_plane();
            ranks[item] = before + rank;
        }
        sync_cube();
        ranks
    }

    /// Makes `counts` relative to the first plane.
    fn total(&self) -> u32 {
        let mut counts = self.counts.clone();
        let mut total = 0u32;
        #[unroll]
        for plane in 0..comptime!(self.config.planes()) {
            let at = (UNIT_POS + comptime!(plane * DIGITS)) as usize;
            let count = counts[at];
            counts[at] = total;
            total += count;
        }
        total
    }

    fn start(&self) -> u32 {
        let mut counts = self.counts.clone();
        let total = self.total();
        let team = Team::new(0u32.runtime(), comptime!(self.config.shape()));
        let start = team.prefix_sum(total);
        #[unroll]
        for plane in 0..comptime!(self.config.planes()) {
            counts[(UNIT_POS + comptime!(plane * DIGITS)) as usize] += start;
        }
        sync_cube();
        start
    }

    fn move_by_digit(&mut self, shift: u32, ranks: &Array<u32>, scratch: &Scratch<K>) {
        let (mut keys, mut places) = (scratch.keys.clone(), scratch.places.clone());
        #[unroll]
        for item in 0..comptime!(self.config.items) {
            let target = (self.counts[self.slot(item, shift) as usize] + ranks[item]) as usize;
            keys[target] = self.keys[item];
            places[target] = self.places[item];
        }
        sync_cube();
        #[unroll]
        for item in 0..comptime!(self.config.items) {
            let at = self.position(item) as usize;
            self.keys[item] = keys[at];
            self.places[item] = places[at];
        }
    }
}

#[derive(CubeType)]
struct Scratch<K: Int> {
    keys: Shared<[K]>,
    places: Shared<[u32]>,
}

#[cube]
impl<K: Int> Scratch<K> {
    fn new(#[comptime] config: RadixConfig) -> Scratch<K> {
        Scratch::<K> {
            keys: Shared::<[K]>::new_slice(comptime!(config.tile())),
            places: Shared::<[u32]>::new_slice(comptime!(config.tile())),
        }
    }
}

#[cube]
fn digit_of<K: Int>(key: K, shift: u32) -> u32 {
    u32::cast_from(key >> K::cast_from(shift)) & comptime!(DIGITS - 1)
}

#[cube]
fn units_with(digit: u32, #[comptime] plane: u32) -> u32 {
    let mut same = comptime!(u32::MAX >> (32 - plane)).runtime();
    #[unroll]
    for bit in 0..DIGIT_BITS {
        let own = (digit >> bit) & 1;
        let ones = plane_ballot(own == 1).extract(0usize);
        same &= ones ^ (own - 1);
    }
    same
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn sort_tiles<E: Element, I: Numeric>(
    input: &UnsortedRows<E, I>,
    sorted_values: &mut [E],
    sorted_indices: &mut [I],
    #[comptime] config: RadixConfig,
    #[comptime] key_bits: u32,
    #[define(I)] _index: ElemType,
) {
    let row = CUBE_POS;
    if row >= input.layout.rows {
        terminate!();
    }
    let filled = input.filled(row);
    let scratch = Scratch::<E::Key>::new(config);
    let mut tile = Tile::<E::Key>::new(config);
    #[unroll]
    for item in 0..comptime!(config.items) {
        let place = tile.position(item);
        tile.keys[item] = input.key(row, place, filled, config);
        tile.places[item] = place;
    }
    let mut shift = 0u32;
    while shift < key_bits {
        let ranks = tile.rank(shift);
        tile.start();
        tile.move_by_digit(shift, &ranks, &scratch);
        shift += DIGIT_BITS;
    }
    let start = row * input.layout.cols as usize;
    #[unroll]
    for item in 0..comptime!(config.items) {
        let position = tile.position(item);
        if position < input.layout.cols {
            let place = tile.places[item];
            if comptime!(config.values) {
                sorted_values[start + position as usize] = input.value(row, place, config.strided);
            }
            sorted_indices[start + position as usize] = input.index(row, place);
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn write_keys<E: Element, I: Numeric>(
    input: &UnsortedRows<E, I>,
    keys: &mut [E::Key],
    #[comptime] config: RadixConfig,
    #[define(I)] _index: ElemType,
) {
    if ABSOLUTE_POS >= keys.len() {
        terminate!();
    }
    let row = ABSOLUTE_POS / input.layout.cols as usize;
    let place = (ABSOLUTE_POS - row * input.layout.cols as usize) as u32;
    keys[ABSOLUTE_POS] = input.key(row, place, input.filled(row), config);
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn gather_sorted<E: Element, I: Numeric>(
    input: &UnsortedRows<E, I>,
    places: &[u32],
    sorted_values: &mut [E],
    sorted_indices: &mut [I],
    #[comptime] config: RadixConfig,
    #[define(I)] _index: ElemType,
) {
    if ABSOLUTE_POS >= places.len() {
        terminate!();
    }
    let row = ABSOLUTE_POS / input.layout.cols as usize;
    let place = places[ABSOLUTE_POS];
    if comptime!(config.values) {
        sorted_values[ABSOLUTE_POS] = input.value(row, place, config.strided);
    }
    sorted_indices[ABSOLUTE_POS] = input.index(row, place);
}

/// The kernel cache ignores which optional arguments exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pass {
    First,
    Middle,
    Last,
}

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct TiledRows {
    pub rows: usize,
    pub cols: u32,
    /// Per row.
    pub tiles: u32,
    /// Digit's lowest bit.
    pub shift: u32,
}

#[cube]
impl TiledRows {
    fn row(&self) -> usize {
        CUBE_POS / self.tiles as usize
    }

    fn tile(&self, row: usize) -> u32 {
        (CUBE_POS - row * self.tiles as usize) as u32
    }
}

#[cube]
fn load_keys<K: Int>(keys: &[K], tile: &mut Tile<K>, start: usize, elements: u32) {
    #[unroll]
    for item in 0..comptime!(tile.config.items) {
        let position = tile.position(item);
        let mut key = K::max_value();
        if position < elements {
            key = keys[start + position as usize];
        }
        tile.keys[item] = key;
    }
}

/// Padding counts in the last digit.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn count_digits<K: Int>(
    keys: &[K],
    counts: &mut [u32],
    call: TiledRows,
    #[comptime] config: RadixConfig,
) {
    let row = call.row();
    if row >= call.rows {
        terminate!();
    }
    let number = call.tile(row);
    let first = number * comptime!(config.tile() as u32);
    let mut tile = Tile::<K>::new(config);
    load_keys::<K>(keys, &mut tile, row * call.cols as usize + first as usize, call.cols - first);
    tile.rank(call.shift);
    let at = (row * DIGITS as usize + UNIT_POS as usize) * call.tiles as usize + number as usize;
    counts[at] = tile.total();
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn sum_counts(
    counts: &mut [u32],
    totals: &mut [u32],
    tiles: u32,
    #[comptime] config: RadixConfig,
) {
    let digit = CUBE_POS * comptime!(config.planes() as usize) + UNIT_POS_Y as usize;
    if digit >= totals.len() {
        terminate!();
    }
    let team = Team::new(0u32.runtime(), comptime!(config.shape()));
    let start = digit * tiles as usize;
    let mut total = 0u32;
    let mut first = 0u32;
    while first < tiles {
        let tile = first + UNIT_POS_X;
        let mut count = 0u32;
        if tile < tiles {
            count = counts[start + tile as usize];
        }
        let sum = team.running_sum(count);
        if tile < tiles {
            counts[start + tile as usize] = total + sum - count;
        }
        total += plane_shuffle(sum, comptime!(config.plane - 1));
        first += comptime!(config.plane);
    }
    if UNIT_POS_X == 0 {
        totals[digit] = total;
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(unused_variables, reason = "a pass is part of the compile key only")]
pub(super) fn scatter_digits<K: Int>(
    keys: &[K],
    places: ComptimeOption<&[u32]>,
    counts: &[u32],
    totals: &[u32],
    sorted_keys: ComptimeOption<&mut [K]>,
    sorted_places: &mut [u32],
    call: TiledRows,
    #[comptime] pass: Pass,
    #[comptime] config: RadixConfig,
) {
    let row = call.row();
    if row >= call.rows {
        terminate!();
    }
    let number = call.tile(row);
    let first = number * comptime!(config.tile() as u32);
    let start = row * call.cols as usize;
    let elements = call.cols - first;
    let scratch = Scratch::<K>::new(config);
    let mut tile = Tile::<K>::new(config);
    load_keys::<K>(keys, &mut tile, start + first as usize, elements);
    #[unroll]
    for item in 0..comptime!(config.items) {
        let column = first + tile.position(item);
        tile.places[item] = #[comptime]
        match places {
            ComptimeOption::Some(places) => places[start + min(column, call.cols - 1) as usize],
            ComptimeOption::None => column,
        };
    }
    let ranks = tile.rank(call.shift);
    let own = tile.start();
    tile.move_by_digit(call.shift, &ranks, &scratch);

    let digit = row * DIGITS as usize + UNIT_POS as usize;
    let team = Team::new(0u32.runtime(), comptime!(config.shape()));
    let in_row = team.prefix_sum(totals[digit]);
    let before = counts[digit * call.tiles as usize + number as usize];
    let mut distances = Shared::<[u32]>::new_slice(DIGITS as usize);
    distances[UNIT_POS as usize] = in_row + before - own;
    sync_cube();
    let mut targets = Array::<u32>::new(config.items);
    #[unroll]
    for item in 0..comptime!(config.items) {
        let position = tile.position(item);
        let digit = digit_of::<K>(tile.keys[item], call.shift);
        targets[item] = position + distances[digit as usize];
        if position < elements {
            sorted_places[start + targets[item] as usize] = tile.places[item];
        }
    }
    #[comptime]
    match sorted_keys {
        ComptimeOption::Some(sorted_keys) =>
        {
            #[unroll]
            for item in 0..comptime!(config.items) {
                if tile.position(item) < elements {
                    sorted_keys[start + targets[item] as usize] = tile.keys[item];
                }
            }
        }
        ComptimeOption::None => {}
    }
}
