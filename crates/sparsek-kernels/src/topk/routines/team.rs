//! The units that share a row, and what they do together: reductions and scans by shuffles, and through
//! shared memory where a row takes several planes.
//!
//! A plane holds `PLANE_DIM / lanes` rows, each in a team of `lanes` neighbouring units, a power of
//! two; or a cube holds one row, in a team of all its units. Neighbouring units read neighbouring loads:
//! load, unit and element in this order are the index order.

use cubecl::prelude::*;

/// How a row lies in the registers of its team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    /// Units that share a row.
    pub lanes: u32,
    /// Planes that share a row: 1, or all of the cube.
    pub planes: u32,
    /// Elements of a load.
    pub width: usize,
    /// Loads of a unit.
    pub loads: usize,
    /// Whether the units' items cover the row exactly.
    pub exact_fit: bool,
}

impl Shape {
    /// The units of a cube, which share whatever there is an element at a time.
    pub fn of_cube(units: u32, plane: u32) -> Self {
        Self {
            lanes: units,
            planes: units / plane,
            width: 1,
            loads: 1,
            exact_fit: true,
        }
    }

    /// Elements that a unit holds.
    pub fn items(&self) -> usize {
        self.loads * self.width
    }

    /// Units of a plane that share a row.
    pub fn plane_lanes(&self) -> u32 {
        self.lanes / self.planes
    }

    /// The units of a plane alone.
    pub fn of_a_plane(self) -> Shape {
        Shape {
            lanes: self.plane_lanes(),
            planes: 1,
            ..self
        }
    }

    /// Bits that hold a position in the row, and the members of the loads that share a word.
    fn bits(&self) -> u32 {
        let items = self.lanes as usize * self.items();
        if items < 256 || (items == 256 && self.loads > 4) {
            8
        } else {
            16
        }
    }

    /// Loads whose positions share a word.
    fn fields(&self) -> usize {
        (32 / self.bits()) as usize
    }

    /// Words for the positions of all loads.
    fn words(&self) -> usize {
        self.loads.div_ceil(self.fields())
    }
}

/// This unit's place in the team of its row.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Team {
    pub lane: u32,
    pub cols: u32,
    #[cube(comptime)]
    pub shape: Shape,
    /// Whether the row may end within a load.
    #[cube(comptime)]
    pub ragged: bool,
}

#[cube]
impl Team {
    pub fn new(cols: u32, #[comptime] shape: Shape) -> Team {
        Team::of(cols, shape, false)
    }

    pub fn of(cols: u32, #[comptime] shape: Shape, #[comptime] ragged: bool) -> Team {
        let lane = if comptime!(shape.planes > 1) {
            UNIT_POS
        } else {
            UNIT_POS_X % comptime!(shape.lanes)
        };
        Team {
            lane,
            cols,
            shape,
            ragged,
        }
    }

    /// The first column of a load.
    pub fn column(&self, #[comptime] load: usize) -> u32 {
        let skipped = comptime!(load as u32 * self.shape.lanes);
        (self.lane + skipped) * comptime!(self.shape.width as u32)
    }

    /// The column of an item.
    pub fn item_column(&self, #[comptime] item: usize) -> u32 {
        self.column(comptime!(item / self.shape.width))
            + comptime!((item % self.shape.width) as u32)
    }

    /// Whether a load of this unit lies in the row. Rows hold whole loads, unless they are ragged.
    pub fn loads(&self, #[comptime] load: usize) -> bool {
        if comptime!(self.shape.exact_fit) {
            true.runtime()
        } else {
            self.column(load) < self.cols
        }
    }

    /// Whether an item of this unit lies in the row.
    pub fn holds(&self, #[comptime] item: usize) -> bool {
        if comptime!(self.ragged) {
            self.item_column(item) < self.cols
        } else {
            self.loads(comptime!(item / self.shape.width))
        }
    }

    pub fn sum<T: Numeric>(&self, value: T) -> T {
        let mut total = value;
        #[unroll]
        for step in 0..comptime!(self.shape.plane_lanes().ilog2()) {
            total += plane_shuffle_xor(total, comptime!(1u32 << step));
        }
        if comptime!(self.shape.planes > 1) {
            let slots = exchange::<T>(total, self.shape);
            total = slots[0];
            #[unroll]
            for plane in 1..comptime!(self.shape.planes as usize) {
                total += slots[plane];
            }
        }
        total
    }

    /// The sum up to this unit of its plane.
    pub fn running_sum(&self, value: u32) -> u32 {
        let lanes = comptime!(self.shape.plane_lanes());
        let lane = UNIT_POS_X % lanes;
        let mut sum = value;
        #[unroll]
        for step in 0..comptime!(lanes.ilog2()) {
            let distance = comptime!(1u32 << step);
            let other = plane_shuffle_up(sum, distance);
            sum += select(lane >= distance, other, 0u32);
        }
        sum
    }

    pub fn max<T: Numeric>(&self, value: T) -> T {
        let mut greatest = value;
        #[unroll]
        for step in 0..comptime!(self.shape.plane_lanes().ilog2()) {
            greatest = max(
                greatest,
                plane_shuffle_xor(greatest, comptime!(1u32 << step)),
            );
        }
        if comptime!(self.shape.planes > 1) {
            let slots = exchange::<T>(greatest, self.shape);
            #[unroll]
            for plane in 0..comptime!(self.shape.planes as usize) {
                greatest = max(greatest, slots[plane]);
            }
        }
        greatest
    }

    pub fn min<T: Numeric>(&self, value: T) -> T {
        let mut least = value;
        #[unroll]
        for step in 0..comptime!(self.shape.plane_lanes().ilog2()) {
            least = min(least, plane_shuffle_xor(least, comptime!(1u32 << step)));
        }
        if comptime!(self.shape.planes > 1) {
            let slots = exchange::<T>(least, self.shape);
            #[unroll]
            for plane in 0..comptime!(self.shape.planes as usize) {
                least = min(least, slots[plane]);
            }
        }
        least
    }
}

/// A value of each plane of the cube, for all to see.
#[cube]
fn exchange<T: Numeric>(value: T, #[comptime] shape: Shape) -> Shared<[T]> {
    let mut slots = Shared::<[T]>::new_slice(shape.planes as usize);
    // The last exchange has been read before its slots are written again.
    sync_cube();
    if UNIT_POS_X == 0 {
        slots[UNIT_POS_Y as usize] = value;
    }
    sync_cube();
    slots
}

/// Where the members among this unit's items begin, load by load, packed into words. First counts, then
/// positions; both stay within their fields, because a position is less than the length of the row.
#[derive(CubeType)]
pub(super) struct Positions {
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

    /// Says how many members a load of this unit has.
    pub fn put(&mut self, #[comptime] load: usize, members: u32) {
        let shift = comptime!(shift(self.team.shape, load));
        self.words[comptime!(load / self.team.shape.fields())] += members << shift;
    }

    /// Turns the counts of a team's units into positions.
    pub fn scan(&mut self) {
        let lanes = comptime!(self.team.shape.plane_lanes());
        let last = (UNIT_POS_X - UNIT_POS_X % lanes) + comptime!(lanes - 1);
        // Multiplied by it, a word holds in each field the sum of the fields up to there.
        let ones = comptime!(ones(self.team.shape.bits()));
        let mut earlier = 0u32;
        #[unroll]
        for word in 0..comptime!(self.team.shape.words()) {
            let own = self.words[word];
            let sum = self.team.running_sum(own);
            let mut before = sum - own;
            let mut total = plane_shuffle(sum, last);
            if comptime!(self.team.shape.planes > 1) {
                let slots = exchange::<u32>(total, self.team.shape);
                total = 0u32;
                #[unroll]
                for plane in 0..comptime!(self.team.shape.planes as usize) {
                    before += select(UNIT_POS_Y > comptime!(plane as u32), slots[plane], 0u32);
                    total += slots[plane];
                }
            }
            let total = total * ones;
            let bits = comptime!(self.team.shape.bits());
            self.words[word] = before + (total << bits) + earlier * ones;
            earlier += total >> comptime!(32 - bits);
        }
    }

    /// Where this unit's items of a load begin.
    pub fn of(&self, #[comptime] load: usize) -> u32 {
        let mask = comptime!((1u32 << self.team.shape.bits()) - 1);
        (self.words[comptime!(load / self.team.shape.fields())]
            >> comptime!(shift(self.team.shape, load)))
            & mask
    }
}

/// Where the field of a load begins in its word.
fn shift(shape: Shape, load: usize) -> u32 {
    (load % shape.fields()) as u32 * shape.bits()
}

/// A one in every field of so many bits.
pub(super) fn ones(bits: u32) -> u32 {
    u32::MAX / (u32::MAX >> (32 - bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_one_in_each_field() {
        assert_eq!(ones(16), 0x0001_0001);
        assert_eq!(ones(8), 0x0101_0101);
        assert_eq!(ones(4), 0x1111_1111);
    }
}
