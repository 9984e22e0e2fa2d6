//! Members regrouped: where the loads of a team are its units', each unit gets the bits of neighbouring columns.

use cubecl::prelude::*;

use super::{
    members::bit,
    team::{Shape, Team},
};

/// Items of a unit whose members can be regrouped, a bit each. Loads of a power of two hold as many; those that a
/// row lacks have no members.
const ITEMS: usize = 32;
/// Members of a unit from which on all its items are gone through instead of the members: 10 instructions for
/// each of these, 5 for each of those.
const MANY: u32 = 16;

impl Shape {
    /// Whether members can be regrouped.
    pub fn regroups(&self) -> bool {
        let loads = self.loads.next_power_of_two();
        self.planes == 1 && self.width * loads == ITEMS && self.lanes as usize >= loads
    }

    /// Bits of the number of a load.
    fn load_bits(&self) -> u32 {
        self.loads.next_power_of_two().ilog2()
    }

    /// Bits of the number of a unit that say which of the units that share a load it is, once regrouped.
    fn sharers(&self) -> u32 {
        self.lanes.ilog2() - self.load_bits()
    }
}

/// The members among 32 neighbouring columns.
#[derive(CubeType)]
pub(super) struct Strip {
    /// A bit each, the first column's the highest.
    pub bits: u32,
    /// The first column.
    pub column: u32,
    /// Members of the row before it.
    pub position: u32,
}

#[cube]
impl Strip {
    /// Regroups members, a bit each.
    pub fn new(members: u32, team: &Team) -> Strip {
        let shape = comptime!(team.shape);
        let mut bits = traded(members, team);
        let sharers = comptime!(shape.sharers());
        if comptime!(sharers > 0) {
            // Units that share a load become neighbours.
            let source = (team.lane >> sharers)
                | ((team.lane & comptime!((1u32 << sharers) - 1)) << comptime!(shape.load_bits()));
            bits = plane_shuffle(bits, UNIT_POS_X - team.lane + source);
        }
        let count = bits.count_ones();
        Strip {
            bits,
            column: team.lane * comptime!(ITEMS as u32),
            position: team.running_sum(count) - count,
        }
    }

    /// The members among the first `quota` of the row, each with its own unit again.
    pub fn first(&self, quota: u32, team: &Team) -> u32 {
        let room = quota - min(self.position, quota);
        // The columns before the first member that is not among them.
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
        traded(bits, team)
    }

    /// Lists the columns of the members, where `cut` those among the first `end` of the row.
    pub fn list(&self, columns: &mut Shared<[u32]>, start: u32, end: u32, #[comptime] cut: bool) {
        let mut position = start + self.position;
        let end = start + end;
        if plane_any(self.bits.count_ones() > MANY) {
            #[unroll]
            for item in 0..ITEMS {
                let member = self.bits & comptime!(bit(item)) != 0;
                if member && (!comptime!(cut).runtime() || position < end) {
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

/// Load and unit change places, bit by bit of their numbers; a second time undoes it.
#[cube]
fn traded(members: u32, team: &Team) -> u32 {
    let shape = comptime!(team.shape);
    let mut bits = members;
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

/// A one for each item whose number, divided by `length`, is even.
fn evens(length: usize) -> u32 {
    (0..ITEMS)
        .filter(|item| (item / length).is_multiple_of(2))
        .fold(0, |bits, item| bits | bit(item))
}
