//! Teams of units that share a row.
//!
//! A plane holds teams of `lanes` neighboring units, a power of two; or a cube is one team. Index
//! order is by load, unit, element.

use cubecl::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TeamShape {
    pub lanes: u32,
    /// 1, or all of the cube.
    pub planes: u32,
    pub width: usize,
    pub loads: usize,
    /// Items cover the row.
    pub exact_fit: bool,
}

impl TeamShape {
    pub fn of_cube(units: u32, plane: u32) -> Self {
        Self { lanes: units, planes: units / plane, width: 1, loads: 1, exact_fit: true }
    }

    pub fn items(&self) -> usize {
        self.loads * self.width
    }

    pub fn plane_lanes(&self) -> u32 {
        self.lanes / self.planes
    }

    pub fn of_a_plane(self) -> TeamShape {
        TeamShape { lanes: self.plane_lanes(), planes: 1, ..self }
    }
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Team {
    pub lane: u32,
    pub cols: u32,
    #[cube(comptime)]
    pub shape: TeamShape,
    /// Rows may end within loads.
    #[cube(comptime)]
    pub ragged: bool,
}

#[cube]
impl Team {
    pub fn new(cols: u32, #[comptime] shape: TeamShape) -> Team {
        Team::of(cols, shape, false)
    }

    pub fn of(cols: u32, #[comptime] shape: TeamShape, #[comptime] ragged: bool) -> Team {
        let lane = if comptime!(shape.planes > 1) {
            UNIT_POS
        } else {
            UNIT_POS_X % comptime!(shape.lanes)
        };
        Team { lane, cols, shape, ragged }
    }

    pub fn column(&self, #[comptime] load: usize) -> u32 {
        let skipped = comptime!(load as u32 * self.shape.lanes);
        (self.lane + skipped) * comptime!(self.shape.width as u32)
    }

    pub fn item_column(&self, #[comptime] item: usize) -> u32 {
        self.column(comptime!(item / self.shape.width))
            + comptime!((item % self.shape.width) as u32)
    }

    /// A load starts in the row.
    pub fn loads(&self, #[comptime] load: usize) -> bool {
        if comptime!(self.shape.exact_fit) { true.runtime() } else { self.column(load) < self.cols }
    }

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

    /// Inclusive, over this plane.
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

    /// Exclusive. Every unit must call it.
    pub fn prefix_sum(&self, value: u32) -> u32 {
        let through = self.running_sum(value);
        let mut before = through - value;
        if comptime!(self.shape.planes > 1) {
            let last = comptime!(self.shape.plane_lanes() - 1);
            let slots = exchange::<u32>(plane_shuffle(through, last), self.shape);
            #[unroll]
            for plane in 0..comptime!(self.shape.planes as usize) {
                before += select(UNIT_POS_Y > comptime!(plane as u32), slots[plane], 0u32);
            }
        }
        before
    }

    pub fn max<T: Numeric>(&self, value: T) -> T {
        let mut greatest = value;
        #[unroll]
        for step in 0..comptime!(self.shape.plane_lanes().ilog2()) {
            greatest = max(greatest, plane_shuffle_xor(greatest, comptime!(1u32 << step)));
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

#[cube]
pub(crate) fn exchange<T: Numeric>(value: T, #[comptime] shape: TeamShape) -> Shared<[T]> {
    let mut slots = Shared::<[T]>::new_slice(shape.planes as usize);
    // Others may still read.
    sync_cube();
    if UNIT_POS_X == 0 {
        slots[UNIT_POS_Y as usize] = value;
    }
    sync_cube();
    slots
}
