//! Compile keys of kernels.

use crate::{
    primitives::team::TeamShape,
    topk::{options::SearchConfig, tuning::SORTED_ITEMS},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemoryConfig {
    pub search: SearchConfig,
    /// `col_stride` is not 1.
    pub strided: bool,
    pub values: bool,
    pub indices: bool,
    /// `values` is the dense row.
    pub dense: bool,
    pub ragged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RegisterConfig {
    pub search: SearchConfig,
    pub shape: TeamShape,
    /// Searched as floats first.
    pub floats: bool,
    /// Searched by histograms of keys.
    pub histogram: bool,
    pub strided: bool,
    pub values: bool,
    pub indices: bool,
    pub dense: bool,
    pub ragged: bool,
    /// Capacity; 0 writes from registers.
    pub listed: usize,
    pub quantized_midpoints: u32,
    /// None for index order.
    pub order: Option<SortConfig>,
    /// Per plane.
    pub rows: usize,
    pub cube_rows: usize,
}

impl RegisterConfig {
    pub fn list_length(&self) -> usize {
        let spaces = self.order.map_or(0, |_| self.shape.plane_lanes() as usize);
        self.listed + spaces
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CandidateConfig {
    pub memory: MemoryConfig,
    pub floats: bool,
    /// Sample, or delegates.
    pub sample: TeamShape,
    /// What a plane reads at once.
    pub part: TeamShape,
    pub list: TeamShape,
}

impl CandidateConfig {
    pub fn capacity(&self) -> usize {
        self.list.lanes as usize * self.list.loads
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SortConfig {
    pub items: usize,
    pub full: bool,
    pub keys: SortKeys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SortKeys {
    /// Distance from the least selected value, of bits if `bitwise`.
    Float {
        bitwise: bool,
    },
    /// 16-bit float; its f32 ends in `zeros` zero bits.
    Half {
        zeros: u32,
    },
    Word,
}

impl SortConfig {
    /// None for too large k.
    pub fn new(k: usize, lanes: u32, ragged: bool, keys: SortKeys) -> Option<SortConfig> {
        let items = k.next_power_of_two().div_ceil(lanes as usize);
        (items <= SORTED_ITEMS).then_some(SortConfig {
            items,
            full: !ragged && k == items * lanes as usize,
            keys,
        })
    }

    pub fn zeros(&self) -> u32 {
        match self.keys {
            SortKeys::Half { zeros } => zeros,
            SortKeys::Float { .. } | SortKeys::Word => 0,
        }
    }

    pub fn digits(&self) -> u32 {
        if self.zeros() > 0 { 1 } else { 2 }
    }

    pub fn bits(&self, lanes: u32) -> u32 {
        lanes.ilog2() + self.items.ilog2()
    }

    /// Distances that fit beside a slot number.
    pub fn room(&self, lanes: u32) -> u32 {
        1 << (32 - self.bits(lanes)).min(30)
    }

    pub fn by_bits(&self) -> bool {
        self.keys == SortKeys::Float { bitwise: true }
    }

    pub fn is_float(&self) -> bool {
        matches!(self.keys, SortKeys::Float { .. })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const KEYS: SortKeys = SortKeys::Float { bitwise: true };

    #[rstest]
    #[case(1, Some((1, false)))]
    #[case(32, Some((4, true)))]
    #[case(33, Some((8, false)))]
    #[case(128, Some((16, true)))]
    #[case(129, None)]
    fn few_enough_members_for_each_unit(#[case] k: usize, #[case] expected: Option<(usize, bool)>) {
        let order = SortConfig::new(k, 8, false, KEYS);
        assert_eq!(order.map(|order| (order.items, order.full)), expected);
    }

    #[rstest]
    fn there_are_floats_that_far_below_infinity(#[values(1, 2, 4, 32)] lanes: u32) {
        let order = SortConfig::new(1, lanes, false, KEYS);
        assert!(order.is_some_and(|order| order.room(lanes) < 0x7f80_0000));
    }
}
