//! Sets of a row's items, the first in bit 31.
//!
//! [`SelectedItems`] scans each load. With 32 items per unit, [`ColumnBits`] transposes, so a unit
//! scans neighboring columns once.

use cubecl::prelude::*;

use super::team::{Team, TeamShape};

const ITEMS: usize = 32;

/// Above, visiting all items is cheaper.
const MANY: u32 = 16;

impl TeamShape {
    fn bits(&self) -> u32 {
        let items = self.lanes as usize * self.items();
        if items < 256 || (items == 256 && self.loads > 4) { 8 } else { 16 }
    }

    fn fields(&self) -> usize {
        (32 / self.bits()) as usize
    }

    fn words(&self) -> usize {
        self.loads.div_ceil(self.fields())
    }
}

/// Counts, then positions, of this unit's loads; no field overflows.
#[derive(CubeType)]
pub(crate) struct Positions {
    words: Array<u32>,
    team: Team,
}

#[cube]
impl Positions {
    pub fn new(team: Team) -> Positions {
        let mut words = Array::<u32>::new(comptime!(team.shape.words()));
        #[unroll]
        for word in 0..comptime!(team.shape.words()) {
            words[word] = 0u32;
        }
        Positions { words, team }
    }

    pub fn put(&mut self, #[comptime] load: usize, selected: u32) {
        let shift = comptime!(shift(self.team.shape, load));
        self.words[comptime!(load / self.team.shape.fields())] += selected << shift;
    }

    pub fn scan(&mut self) {
        let lanes = comptime!(self.team.shape.plane_lanes());
        let last = (UNIT_POS_X - UNIT_POS_X % lanes) + comptime!(lanes - 1);
        let words = comptime!(self.team.shape.words());
        let mut totals = Array::<u32>::new(words);
        #[unroll]
        for word in 0..words {
            let own = self.words[word];
            let sum = self.team.running_sum(own);
            self.words[word] = sum - own;
            totals[word] = plane_shuffle(sum, last);
        }
        if comptime!(self.team.shape.planes > 1) {
            self.scan_planes(&mut totals);
        }
        // Times `ones`, each field sums the fields up to it.
        let bits = comptime!(self.team.shape.bits());
        let ones = comptime!(ones(bits));
        let mut earlier = 0u32;
        #[unroll]
        for word in 0..words {
            let total = totals[word] * ones;
            self.words[word] += (total << bits) + earlier * ones;
            earlier += total >> comptime!(32 - bits);
        }
    }

    /// From plane to cube; a unit scans each word.
    fn scan_planes(&mut self, totals: &mut Array<u32>) {
        let words = comptime!(self.team.shape.words());
        let planes = comptime!(self.team.shape.planes as usize);
        let pitch = comptime!(planes + 1);
        let mut sums = Shared::<[u32]>::new_slice(comptime!(words * pitch));
        // Others may still read.
        sync_cube();
        if UNIT_POS_X == 0 {
            #[unroll]
            for word in 0..words {
                sums[comptime!(word * pitch) + UNIT_POS_Y as usize] = totals[word];
            }
        }
        sync_cube();
        if UNIT_POS < comptime!(words as u32) {
            let first = UNIT_POS as usize * pitch;
            let mut before = 0u32;
            #[unroll]
            for plane in 0..planes {
                let sum = sums[first + plane];
                sums[first + plane] = before;
                before += sum;
            }
            sums[first + planes] = before;
        }
        sync_cube();
        #[unroll]
        for word in 0..words {
            let first = comptime!(word * pitch);
            self.words[word] += sums[first + UNIT_POS_Y as usize];
            totals[word] = sums[first + planes];
        }
    }

    pub fn of(&self, #[comptime] load: usize) -> u32 {
        let mask = comptime!((1u32 << self.team.shape.bits()) - 1);
        (self.words[comptime!(load / self.team.shape.fields())]
            >> comptime!(shift(self.team.shape, load)))
            & mask
    }
}

fn shift(shape: TeamShape, load: usize) -> u32 {
    (load % shape.fields()) as u32 * shape.bits()
}

pub(crate) fn ones(bits: u32) -> u32 {
    u32::MAX / (u32::MAX >> (32 - bits))
}

#[derive(CubeType)]
pub(crate) struct SelectedItems {
    pub bits: u32,
    team: Team,
    positions: Positions,
}

#[cube]
impl SelectedItems {
    /// Positions are valid only if `ordered`.
    pub fn new(bits: u32, team: Team, #[comptime] ordered: bool) -> SelectedItems {
        let width = comptime!(team.shape.width as u32);
        let mut positions = Positions::new(team);
        if comptime!(ordered) {
            #[unroll]
            for load in 0..comptime!(team.shape.loads) {
                let first = comptime!(load as u32 * width);
                let group = bits & comptime!(mask(width) >> first);
                positions.put(load, group.count_ones());
            }
            positions.scan();
        }
        SelectedItems { bits, team, positions }
    }

    pub fn start(&self, #[comptime] load: usize) -> u32 {
        self.positions.of(load)
    }

    pub fn holds(&self, #[comptime] item: usize) -> bool {
        self.bits & comptime!(bit(item)) != 0
    }

    pub fn first(&self, quota: u32) -> u32 {
        let width = comptime!(self.team.shape.width);
        let mut kept = 0u32;
        #[unroll]
        for load in 0..comptime!(self.team.shape.loads) {
            let mut position = self.start(load);
            if plane_any(position < quota) {
                #[unroll]
                for i in 0..width {
                    let item = comptime!(load * width + i);
                    let is_selected = self.holds(item);
                    kept |= select(is_selected && position < quota, comptime!(bit(item)), 0u32);
                    position += select(is_selected, 1u32, 0u32);
                }
            }
        }
        kept
    }
}

pub(crate) fn bit(item: usize) -> u32 {
    (1u32 << 31) >> item
}

pub(crate) fn mask(items: u32) -> u32 {
    u32::MAX << (32 - items)
}

impl TeamShape {
    pub fn can_transpose(&self) -> bool {
        let loads = self.loads.next_power_of_two();
        self.planes == 1 && self.width * loads == ITEMS && self.lanes as usize >= loads
    }

    fn load_bits(&self) -> u32 {
        self.loads.next_power_of_two().ilog2()
    }

    /// log2 of units per load.
    fn sharers(&self) -> u32 {
        self.lanes.ilog2() - self.load_bits()
    }
}

#[derive(CubeType)]
pub(crate) struct ColumnBits {
    /// The first is in bit 31.
    pub bits: u32,
    pub column: u32,
    /// Selected elements before them.
    pub position: u32,
}

#[cube]
impl ColumnBits {
    pub fn new(selected: u32, team: &Team) -> ColumnBits {
        let shape = comptime!(team.shape);
        let mut bits = transpose(selected, team);
        let sharers = comptime!(shape.sharers());
        if comptime!(sharers > 0) {
            let source = (team.lane >> sharers)
                | ((team.lane & comptime!((1u32 << sharers) - 1)) << comptime!(shape.load_bits()));
            bits = plane_shuffle(bits, UNIT_POS_X - team.lane + source);
        }
        let count = bits.count_ones();
        ColumnBits {
            bits,
            column: team.lane * comptime!(ITEMS as u32),
            position: team.running_sum(count) - count,
        }
    }

    /// As bits of items.
    pub fn first(&self, quota: u32, team: &Team) -> u32 {
        let room = quota - min(self.position, quota);
        let mut length = 0u32;
        #[unroll]
        for step in 0..comptime!(ITEMS.ilog2()) {
            let longer = length + comptime!(ITEMS as u32 >> (step + 1));
            let fits = (self.bits >> (32 - longer)).count_ones() <= room;
            length = select(fits, longer, length);
        }
        let kept = self.bits & !(u32::MAX >> length);
        let kept = select(self.bits.count_ones() <= room, self.bits, kept);
        let shape = comptime!(team.shape);
        let mut bits = kept;
        if comptime!(shape.sharers() > 0) {
            let loads = comptime!(shape.load_bits());
            let source = (team.lane >> loads)
                | ((team.lane & comptime!((1u32 << loads) - 1)) << comptime!(shape.sharers()));
            bits = plane_shuffle(bits, UNIT_POS_X - team.lane + source);
        }
        transpose(bits, team)
    }

    /// With `cut`, only the row's first `end`.
    pub fn list(&self, columns: &mut Shared<[u32]>, start: u32, end: u32, #[comptime] cut: bool) {
        let mut position = start + self.position;
        let end = start + end;
        if plane_any(self.bits.count_ones() > MANY) {
            #[unroll]
            for item in 0..ITEMS {
                let is_selected = self.bits & comptime!(bit(item)) != 0;
                if is_selected && (!comptime!(cut).runtime() || position < end) {
                    columns[position as usize] = self.column + comptime!(item as u32);
                    position += 1;
                }
            }
        } else {
            let mut rest = self.bits;
            while rest != 0 {
                let item = rest.leading_zeros();
                if !comptime!(cut).runtime() || position < end {
                    columns[position as usize] = self.column + item;
                }
                rest &= 0x7fff_ffffu32 >> item;
                position += 1;
            }
        }
    }
}

/// Swaps load and unit number. Its own inverse.
#[cube]
fn transpose(selected: u32, team: &Team) -> u32 {
    let shape = comptime!(team.shape);
    let mut bits = selected;
    #[unroll]
    for step in 0..comptime!(shape.load_bits()) {
        let distance = comptime!((shape.width as u32) << step);
        let odd = (team.lane >> step) & 1;
        let other = plane_shuffle_xor(bits, comptime!(1u32 << step));
        let kept = comptime!(evens(shape.width << step)) ^ (0 - odd);
        let amount = select(odd == 1, distance, 32 - distance);
        let up = other << amount;
        let down = other >> (32 - amount);
        bits = (bits & kept) | ((up | down) & !kept);
    }
    bits
}

fn evens(length: usize) -> u32 {
    (0..ITEMS)
        .filter(|item| (item / length).is_multiple_of(2))
        .fold(0, |bits, item| bits | bit(item))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(16, 0x0001_0001)]
    #[case(8, 0x0101_0101)]
    #[case(4, 0x1111_1111)]
    fn a_one_in_each_field(#[case] bits: u32, #[case] expected: u32) {
        assert_eq!(ones(bits), expected);
    }
}
