//! Types that kernels share.

use cubecl::prelude::*;

use super::histogram::BINS;
use crate::primitives::team::TeamShape;

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct SubrangeLayout {
    pub length: usize,
    /// Length of the delegate vector, and delegates or groups that a cube holds.
    pub delegates: u32,
    pub in_registers: u32,
    pub k: u32,
    /// Subranges have `2^exponent` elements.
    pub exponent: u32,
}

const LOAD_BYTES: usize = 16;

/// Configuration of a cube that finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FinishConfig {
    /// Units of the cube, and width of their loads.
    pub shape: TeamShape,
    /// Delegates or groups per unit; 0 after a separate launch.
    pub delegate_items: usize,
    /// Groups of `2^group_exponent` subranges, and delegates of the best ones per unit; 0 without.
    pub group_exponent: u32,
    pub grouped_items: usize,
    pub beta: u32,
    pub loads_in_flight: usize,
    /// Bounds of k and of the candidates.
    pub max_k: usize,
    pub room: usize,
    /// Different keys differ by at least `2^spacing`, except infinities and NaN.
    pub spacing: u32,
    pub largest: bool,
}

impl FinishConfig {
    /// Delegates per load: each unit holds whole loads.
    pub fn delegate_width(&self, key: usize) -> usize {
        let least = if self.group_exponent > 0 {
            self.delegate_items.min(self.grouped_items)
        } else {
            self.delegate_items
        };
        least.clamp(1, LOAD_BYTES / key)
    }

    /// Approximate bytes of shared memory.
    pub fn shared_bytes(&self, key: usize) -> usize {
        let candidates = self.room * (key + size_of::<u32>());
        let lists = 5 * self.max_k * size_of::<u32>();
        BINS * size_of::<u32>() + candidates + lists + 4 * self.shape.planes as usize * key
    }
}
