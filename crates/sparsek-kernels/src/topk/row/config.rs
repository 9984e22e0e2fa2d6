//! Comptime configurations: what each kernel is compiled for, besides dtypes and vector sizes.

use crate::{
    primitives::team::TeamShape,
    topk::{options::SearchConfig, tuning::SORTED_ITEMS},
};

/// Configuration of kernels that read a row from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemoryConfig {
    pub search: SearchConfig,
    /// Whether the elements of a row are `col_stride` apart instead of 1.
    pub strided: bool,
    pub values: bool,
    pub indices: bool,
    /// Whether `values` is the dense row, zero except at selected elements.
    pub dense: bool,
    /// Whether each row has its own length.
    pub ragged: bool,
}

/// Configuration of kernels that hold rows in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RegisterConfig {
    pub search: SearchConfig,
    pub shape: TeamShape,
    /// Whether rows are searched as floats first: floats of at most 32 bits, all methods but
    /// `Precision`.
    pub floats: bool,
    /// Whether the elements of a row are `col_stride` apart instead of 1.
    pub strided: bool,
    pub values: bool,
    pub indices: bool,
    /// Whether `values` is the dense row, zero except at selected elements.
    pub dense: bool,
    /// Whether each row has its own length.
    pub ragged: bool,
    /// Capacity of the list of a row in shared memory; 0 to write from registers.
    pub listed: usize,
    /// Midpoints of early stop that are compared quantized.
    pub quantized_midpoints: u32,
    /// Sorts the list; none for index order.
    pub order: Option<SortConfig>,
    /// Rows of a plane; 1 if a row takes several planes.
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

/// Configuration of kernels that list candidates, the columns at or above a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CandidateConfig {
    pub memory: MemoryConfig,
    /// Whether sample and list are searched as floats first: floats of at most 32 bits.
    pub floats: bool,
    /// The sample or the delegates, in the registers of the cube.
    pub sample: TeamShape,
    /// The part of the row that a plane reads at a time.
    pub part: TeamShape,
    /// The list, in the registers of the cube.
    pub list: TeamShape,
}

impl CandidateConfig {
    /// Capacity of the list, in columns.
    pub fn capacity(&self) -> usize {
        self.list.lanes as usize * self.list.loads
    }
}

/// How the list of a row is sorted in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SortConfig {
    /// Selected elements that a unit sorts.
    pub items: usize,
    /// Whether all slots are filled.
    pub full: bool,
    pub keys: SortKeys,
}

/// The value that sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SortKeys {
    /// f32: its distance from the least selected value, between their bits if `bitwise`, else as
    /// numbers.
    Float { bitwise: bool },
    /// 16-bit floats: the key, whose `zeros` lower bits as f32 are zero.
    Half { zeros: u32 },
    /// 32-bit integers: the lower digit of the key, then the upper one.
    Word,
}

impl SortConfig {
    /// Sorts k selected elements of a row that `lanes` units share, fewer if ragged. None if there
    /// are too many.
    pub fn new(k: usize, lanes: u32, ragged: bool, keys: SortKeys) -> Option<SortConfig> {
        let items = k.next_power_of_two().div_ceil(lanes as usize);
        (items <= SORTED_ITEMS).then_some(SortConfig {
            items,
            full: !ragged && k == items * lanes as usize,
            keys,
        })
    }

    /// Lower bits of the keys that are always equal.
    pub fn zeros(&self) -> u32 {
        match self.keys {
            SortKeys::Half { zeros } => zeros,
            SortKeys::Float { .. } | SortKeys::Word => 0,
        }
    }

    /// Digits of the keys to sort by.
    pub fn digits(&self) -> u32 {
        if self.zeros() > 0 { 1 } else { 2 }
    }

    /// Bits of a slot number.
    pub fn bits(&self, lanes: u32) -> u32 {
        lanes.ilog2() + self.items.ilog2()
    }

    /// Bound of the distances between bits that fit beside a slot number. Capped so that all
    /// distances lie below infinity: NaN have none.
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
