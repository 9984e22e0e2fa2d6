//! Types that kernels share.

use cubecl::prelude::*;

use super::histogram::BINS;
use crate::primitives::team::TeamShape;

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct SubrangeLayout {
    pub length: usize,
    /// Delegates of the vector, and in registers.
    pub delegates: u32,
    pub in_registers: u32,
    pub k: u32,
    pub exponent: u32,
}

const LOAD_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FinishConfig {
    pub shape: TeamShape,
    /// Delegates or groups per unit; 0 after a separate launch.
    pub delegate_items: usize,
    /// Groups have `2^group_exponent` subranges; 0 without.
    pub group_exponent: u32,
    pub grouped_items: usize,
    pub beta: u32,
    pub loads_in_flight: usize,
    /// Bounds of k and candidates.
    pub max_k: usize,
    pub room: usize,
    /// Different keys differ by at least `2^spacing`, except infinities and NaN.
    pub spacing: u32,
    pub largest: bool,
}

impl FinishConfig {
    /// Each unit holds whole loads.
    pub fn delegate_width(&self, key: usize) -> usize {
        let least = if self.group_exponent > 0 {
            self.delegate_items.min(self.grouped_items)
        } else {
            self.delegate_items
        };
        least.clamp(1, LOAD_BYTES / key)
    }

    pub fn shared_bytes(&self, key: usize) -> usize {
        let candidates = self.room * (key + size_of::<u32>());
        let lists = 5 * self.max_k * size_of::<u32>();
        BINS * size_of::<u32>() + candidates + lists + 4 * self.shape.planes as usize * key
    }
}

/// Scanned subranges and candidates, if asked for.
#[cube]
pub(super) fn write_stats(stats: ComptimeOption<&mut [u32]>, subranges: u32, candidates: u32) {
    #[comptime]
    match stats {
        ComptimeOption::Some(stats) => {
            if UNIT_POS == 0 {
                stats[0] = subranges;
                stats[1] = candidates;
            }
        }
        ComptimeOption::None => {}
    };
}
