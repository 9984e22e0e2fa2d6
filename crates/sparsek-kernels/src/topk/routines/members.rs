//! The members of a row in registers, and their places.

use cubecl::prelude::*;

use super::team::{Positions, Team};

/// The members among this unit's items, and where they begin in the row.
#[derive(CubeType)]
pub(super) struct Members {
    pub bits: u32,
    team: Team,
    positions: Positions,
}

#[cube]
impl Members {
    /// `bits` has a one for each member among this unit's items. Places are told only where `ordered`.
    pub fn new(bits: u32, team: Team, #[comptime] ordered: bool) -> Members {
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
        Members {
            bits,
            team,
            positions,
        }
    }

    /// Place of the first member of a load.
    pub fn start(&self, #[comptime] load: usize) -> u32 {
        self.positions.of(load)
    }

    /// Whether an item of this unit is a member.
    pub fn holds(&self, #[comptime] item: usize) -> bool {
        self.bits & comptime!(bit(item)) != 0
    }

    /// The members among the first `quota` of the row.
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
                    let member = self.holds(item);
                    kept |= select(member && position < quota, comptime!(bit(item)), 0u32);
                    position += select(member, 1u32, 0u32);
                }
            }
        }
        kept
    }
}

/// A one for an item.
pub(super) fn bit(item: usize) -> u32 {
    (1u32 << 31) >> item
}

/// A one for each of the first `items`.
pub(super) fn mask(items: u32) -> u32 {
    u32::MAX << (32 - items)
}
