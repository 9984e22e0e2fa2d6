//! Cube reductions and scans: planes shuffle, then exchange values in shared memory.
//!
//! All units must call each. Loops need a barrier: a call site has one set of slots.

use cubecl::prelude::*;

use super::search::KeyRange;
use crate::primitives::team::{Team, TeamShape};

/// Without planes, each unit is a plane.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct CubeReduce {
    team: Team,
    #[cube(comptime)]
    pub shape: TeamShape,
}

#[derive(CubeType, Clone, Copy)]
pub(crate) struct PrefixSum {
    pub before: u32,
    pub total: u32,
}

fn has_lane_per_plane(shape: TeamShape) -> bool {
    shape.plane_lanes() > 1 && shape.planes <= shape.plane_lanes()
}

#[cube]
impl CubeReduce {
    pub fn new(#[comptime] shape: TeamShape) -> CubeReduce {
        CubeReduce { team: Team::new(0u32, comptime!(shape.of_a_plane())), shape }
    }

    fn share_per_plane<T: Numeric>(&self, value: T) -> Shared<[T]> {
        let mut slots = Shared::<[T]>::new_slice(comptime!(self.shape.planes as usize));
        if UNIT_POS_X == comptime!(self.shape.plane_lanes() - 1) {
            slots[UNIT_POS_Y as usize] = value;
        }
        sync_cube();
        slots
    }

    pub fn prefix_sum(&self, value: u32) -> PrefixSum {
        let through = self.team.running_sum(value);
        let slots = self.share_per_plane::<u32>(through);
        let planes = comptime!(self.shape.planes);
        let mut before = through - value;
        let mut total = 0u32;
        if comptime!(has_lane_per_plane(self.shape)) {
            let lane = self.team.lane;
            let sum = select(lane < planes, slots[self.plane_slot()], 0u32);
            let sums = self.team.running_sum(sum);
            before += plane_shuffle(sums - sum, UNIT_POS_Y);
            total = plane_shuffle(sums, comptime!(planes - 1));
        } else {
            for plane in 0..planes {
                let sum = slots[plane as usize];
                before += select(plane < UNIT_POS_Y, sum, 0u32);
                total += sum;
            }
        }
        PrefixSum { before, total }
    }

    pub fn range<K: Int>(&self, low: K, high: K) -> KeyRange<K> {
        let mut low = self.team.min::<K>(low);
        let mut high = self.team.max::<K>(high);
        let lows = self.share_per_plane::<K>(low);
        let highs = self.share_per_plane::<K>(high);
        if comptime!(has_lane_per_plane(self.shape)) {
            low = self.team.min::<K>(lows[self.plane_slot()]);
            high = self.team.max::<K>(highs[self.plane_slot()]);
        } else {
            for plane in 0..comptime!(self.shape.planes) {
                low = min(low, lows[plane as usize]);
                high = max(high, highs[plane as usize]);
            }
        }
        KeyRange::<K> { low, high }
    }

    pub fn max<K: Int>(&self, key: K) -> K {
        let own = self.team.max::<K>(key);
        let others = self.share_per_plane::<K>(own);
        let mut greatest = own;
        if comptime!(has_lane_per_plane(self.shape)) {
            greatest = self.team.max::<K>(others[self.plane_slot()]);
        } else {
            for plane in 0..comptime!(self.shape.planes) {
                greatest = max(greatest, others[plane as usize]);
            }
        }
        greatest
    }

    /// From the least maximum of ≥ `groups` groups of units.
    pub fn range_of_best<K: Int>(&self, greatest: K, #[comptime] groups: u32) -> KeyRange<K> {
        let lanes = comptime!((self.shape.lanes / groups).min(self.shape.plane_lanes()));
        let mut greatest = greatest;
        #[unroll]
        for step in 0..comptime!(lanes.max(1).ilog2()) {
            let other = plane_shuffle_xor(greatest, comptime!(1u32 << step));
            greatest = max(greatest, other);
        }
        let low = if comptime!(groups <= self.shape.lanes) { greatest } else { K::min_value() };
        self.range::<K>(low, greatest)
    }

    fn plane_slot(&self) -> usize {
        min(self.team.lane, comptime!(self.shape.planes - 1)) as usize
    }
}
