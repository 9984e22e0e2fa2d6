//! What the kernels are compiled for.

use crate::{
    primitives::team::TeamShape,
    topk::{options::SearchConfig, tuning::SORTED_ITEMS},
};

/// What a kernel that reads rows from memory is compiled for, besides the dtypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemoryConfig {
    pub search: SearchConfig,
    /// Whether neighbouring elements of a row are `col_stride` apart instead of 1.
    pub strided: bool,
    pub values: bool,
    pub indices: bool,
    /// Whether `values` is the dense row with everything but the members set to zero.
    pub dense: bool,
    /// Whether rows have lengths of their own.
    pub ragged: bool,
}

/// What a plane kernel is compiled for, besides the dtypes and the vector sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RegisterConfig {
    pub search: SearchConfig,
    pub shape: TeamShape,
    /// Whether rows are searched as floats first: all methods but `Precision`, floats of at most 32
    /// bits.
    pub floats: bool,
    /// Whether neighbouring elements of a row are `col_stride` apart instead of 1.
    pub strided: bool,
    pub values: bool,
    pub indices: bool,
    /// Whether the dense row is written, with everything but the members set to zero.
    pub dense: bool,
    /// Whether rows have lengths of their own.
    pub ragged: bool,
    /// SelectedItems of a row listed in shared memory before they are written, 0 to write from registers.
    pub listed: usize,
    /// Midpoints of early stop that are compared by codes.
    pub quantized_midpoints: u32,
    /// How listed members are put in order, none for index order.
    pub order: Option<SortConfig>,
    /// Rows of a plane, 1 where a row takes several planes.
    pub rows: usize,
    /// Rows of a cube.
    pub cube_rows: usize,
}

impl RegisterConfig {
    /// Words of the list of a row.
    pub fn list_length(&self) -> usize {
        let spaces = self.order.map_or(0, |_| self.shape.plane_lanes() as usize);
        self.listed + spaces
    }
}

/// What a kernel that lists what reaches a threshold is compiled for, besides the dtypes and the vector size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CandidateConfig {
    pub memory: MemoryConfig,
    /// Whether sample and list are searched as floats first: floats of at most 32 bits.
    pub floats: bool,
    /// The sample, or the delegates, in the registers of the cube.
    pub sample: TeamShape,
    /// The part of the row that a plane reads at a time.
    pub part: TeamShape,
    /// The list in the registers of the cube.
    pub list: TeamShape,
}

impl CandidateConfig {
    /// Columns that the list holds.
    pub fn capacity(&self) -> usize {
        self.list.lanes as usize * self.list.loads
    }
}

/// How members are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SortConfig {
    /// SelectedItems of a row that a unit sorts.
    pub items: usize,
    /// Whether all of them exist.
    pub full: bool,
    pub keys: SortKeys,
}

/// What tells members apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SortKeys {
    /// f32: the distance from the least member, where few of a row are wanted in its bits, else as a number.
    Float { bitwise: bool },
    /// Floats of 16 bits, as f32 of which so many lower bits are zero: the key.
    Half { zeros: u32 },
    /// Integers of 32 bits: the lower digit of the key, then the upper one.
    Word,
}

impl SortConfig {
    /// The order of k members of a row that `lanes` units share, or fewer where it is ragged, unless there are too
    /// many.
    pub fn new(k: usize, lanes: u32, ragged: bool, keys: SortKeys) -> Option<SortConfig> {
        let items = k.next_power_of_two().div_ceil(lanes as usize);
        (items <= SORTED_ITEMS).then_some(SortConfig {
            items,
            full: !ragged && k == items * lanes as usize,
            keys,
        })
    }

    /// Lower bits of the keys that tell nothing.
    pub fn zeros(&self) -> u32 {
        match self.keys {
            SortKeys::Half { zeros } => zeros,
            SortKeys::Float { .. } | SortKeys::Word => 0,
        }
    }

    /// Digits of the keys that tell members apart.
    pub fn digits(&self) -> u32 {
        if self.zeros() > 0 { 1 } else { 2 }
    }

    /// Bits that hold a slot of the list.
    pub fn bits(&self, lanes: u32) -> u32 {
        lanes.ilog2() + self.items.ilog2()
    }

    /// Distances between bits that fit beside the slot; no more than what leaves floats below, since NaN have none.
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
    use super::*;

    #[test]
    fn few_enough_members_for_each_unit() {
        let order = |k, lanes| -> Option<(usize, bool)> {
            let order = SortConfig::new(k, lanes, false, SortKeys::Float { bitwise: true })?;
            Some((order.items, order.full))
        };
        assert_eq!(order(1, 8), Some((1, false)));
        assert_eq!(order(32, 8), Some((4, true)));
        assert_eq!(order(33, 8), Some((8, false)));
        assert_eq!(order(128, 8), Some((16, true)));
        assert_eq!(order(129, 8), None);
    }

    #[test]
    fn there_are_floats_that_far_below_infinity() {
        for lanes in [1, 2, 4, 32] {
            let order = SortConfig::new(1, lanes, false, SortKeys::Float { bitwise: true });
            assert!(order.is_some_and(|order| order.room(lanes) < 0x7f80_0000));
        }
    }
}
