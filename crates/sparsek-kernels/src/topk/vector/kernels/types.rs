use cubecl::prelude::*;

use crate::{
    primitives::team::TeamShape,
    topk::{key::Element, threshold::histogram::BINS},
};

/// Subranges have `2^exponent` elements.
#[derive(CubeType, CubeLaunch)]
pub(crate) struct CutVector<E: Element, N: Size> {
    /// Whole loads.
    pub input: &'static [Vector<E, N>],
    pub elements: &'static [E],
    pub length: usize,
    pub exponent: u32,
}

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct DelegateCounts {
    pub delegates: u32,
    pub in_registers: u32,
    pub k: u32,
}

#[derive(CubeType, CubeLaunch)]
pub(crate) struct FinishCall<E: Element, I: Numeric, N: Size> {
    pub vector: CutVector<E, N>,
    pub values: &'static mut [E],
    pub indices: &'static mut [I],
    pub stats: ComptimeOption<&'static mut [u32]>,
    pub counts: DelegateCounts,
}

const LOAD_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FinishConfig {
    pub shape: TeamShape,
    /// Per unit; 0 after a separate launch.
    pub delegate_items: usize,
    /// Log2 of subranges per group; 0 without.
    pub group_exponent: u32,
    pub grouped_items: usize,
    pub beta: u32,
    pub loads_in_flight: usize,
    /// Bounds k.
    pub max_k: usize,
    pub room: usize,
    /// Keys differ by ≥ `2^spacing`, except infinities and NaN.
    pub spacing: u32,
    pub largest: bool,
}

impl FinishConfig {
    /// Whole loads per unit.
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
