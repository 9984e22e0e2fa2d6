//! Types that several kernels share.

use cubecl::prelude::*;

use super::histogram::BINS;
use crate::topk::routines::team::Shape;

/// What a vector was cut into.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct SubrangeLayout {
    pub length: usize,
    /// Delegates, and those of groups, or all, that a cube holds.
    pub delegates: u32,
    pub in_registers: u32,
    pub k: u32,
    /// SubrangeLayout have `2^exponent` elements.
    pub exponent: u32,
}

/// Bytes of a load of delegates.
const LOAD_BYTES: usize = 16;

/// How a cube finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FinishConfig {
    /// The units of the cube, and their loads of the vector.
    pub shape: Shape,
    /// Delegates that a unit holds, or of groups; 0 where the k best have been found before.
    pub delegate_items: usize,
    /// Groups of `2^group_exponent` subranges, and their delegates that a unit holds; 0 where there are none.
    pub group_exponent: u32,
    pub grouped_items: usize,
    /// Delegates of a subrange, β.
    pub beta: u32,
    /// Loads of a unit under way at a time.
    pub loads_in_flight: usize,
    /// Most max_k, and most candidates in shared memory.
    pub max_k: usize,
    pub room: usize,
    /// Keys that differ do so by `2^spacing` or more, but for infinity and NaN.
    pub spacing: u32,
    pub largest: bool,
}

impl FinishConfig {
    /// Delegates of a load: what a unit holds is whole ones.
    pub fn delegate_width(&self, key: usize) -> usize {
        let least = if self.group_exponent > 0 {
            self.delegate_items.min(self.grouped_items)
        } else {
            self.delegate_items
        };
        least.clamp(1, LOAD_BYTES / key)
    }

    /// Bytes of shared memory, about.
    pub fn shared_bytes(&self, key: usize) -> usize {
        let candidates = self.room * (key + size_of::<u32>());
        let lists = 5 * self.max_k * size_of::<u32>();
        BINS * size_of::<u32>() + candidates + lists + 4 * self.shape.planes as usize * key
    }
}
