//! Types that several kernels share.

use cubecl::prelude::*;

use super::histogram::BINS;
use crate::topk::routines::team::Shape;

/// The division of a vector into subranges.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct SubrangeLayout {
    pub length: usize,
    /// Delegates of the vector, and delegates or groups that a finishing cube holds in registers.
    pub delegates: u32,
    pub in_registers: u32,
    pub k: u32,
    /// Subranges have `2^exponent` elements.
    pub exponent: u32,
}

/// Bytes of a load of delegates.
const LOAD_BYTES: usize = 16;

/// Configuration of a cube that finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FinishConfig {
    /// Units of the cube, and width of their loads of the vector.
    pub shape: Shape,
    /// Delegates or groups that a unit holds; 0 if a separate launch has selected the k best.
    pub delegate_items: usize,
    /// Subranges of a group, as an exponent, and delegates of the best groups that a unit holds; 0
    /// without groups.
    pub group_exponent: u32,
    pub grouped_items: usize,
    /// Delegates β of each subrange.
    pub beta: u32,
    /// Loads that a unit has in flight.
    pub loads_in_flight: usize,
    /// Bounds of k, and of the candidates in shared memory.
    pub max_k: usize,
    pub room: usize,
    /// Different keys differ by at least `2^spacing`, except infinities and NaN.
    pub spacing: u32,
    pub largest: bool,
}

impl FinishConfig {
    /// Delegates of a load, so that each unit holds whole loads.
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
