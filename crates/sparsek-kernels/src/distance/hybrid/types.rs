//! HEAD
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]
#![allow(clippy::manual_div_ceil, reason = "kernels round up by hand")]

use cubecl::prelude::*;

use super::table::Layout;

/// No row.
pub(super) const NONE: i32 = -1;

/// Which columns add to the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pass {
    /// Those of both rows.
    Both,
    /// All of the row that is scanned, zero being what the other lacks.
    Either,
    /// Those that the row that is held lacks, the matrices being exchanged.
    Lacking,
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct HybridConfig {
    /// Units of a plane, and planes of a cube.
    pub plane: u32,
    pub planes: u32,
    pub pass: Pass,
    pub layout: Layout,
}

impl HybridConfig {
    /// Sums of a plane for others to see, in arrays of whole times 16 bytes.
    pub fn slots(self) -> usize {
        slots(self.planes)
    }
}

fn slots(planes: u32) -> usize {
    planes.next_multiple_of(4) as usize
}

/// Shared memory for the sums of rows that lie in several stretches.
pub(super) fn carried_bytes(planes: u32, size: usize) -> usize {
    slots(planes) * (4 * size + size_of::<i32>())
}

/// Rows that are held and rows that are scanned: the first, how many, and how far they are apart in the output.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct HybridShape {
    pub held: usize,
    pub held_rows: usize,
    pub held_step: usize,
    pub scanned: usize,
    pub scanned_rows: usize,
    pub scanned_step: usize,
    /// Units of a cube.
    pub units: usize,
}

/// The entries that a plane goes through. They begin within the row `head` and end within the row `tail`, or in neither.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct PlaneRange {
    pub start: usize,
    pub stop: usize,
    pub head: i32,
    pub tail: i32,
}

#[cube]
impl PlaneRange {
    /// The share of the plane of the entries from `first` to `last`.
    pub fn new(
        rows: &[i32],
        first: usize,
        last: usize,
        shape: &HybridShape,
        #[comptime] plane: u32,
    ) -> PlaneRange {
        let windows = (last - first + shape.units - 1) / shape.units;
        let entries = windows * comptime!(plane as usize);
        let start = min(first + UNIT_POS_Y as usize * entries, last);
        let stop = min(start + entries, last);
        let offset = shape.scanned as i32;
        let mut head = NONE.runtime();
        let mut tail = NONE.runtime();
        if start < stop {
            if start > first {
                if rows[start - 1] == rows[start] {
                    head = rows[start] - offset;
                }
            }
            if stop < last {
                if rows[stop - 1] == rows[stop] {
                    tail = rows[stop] - offset;
                }
            }
        }
        PlaneRange {
            start,
            stop,
            head,
            tail,
        }
    }
}
