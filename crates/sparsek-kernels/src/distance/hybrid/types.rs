use cubecl::prelude::*;

use super::table::Layout;

pub(super) const NONE: i32 = -1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pass {
    Both,
    Either,
    /// Not in the held row; swapped.
    Lacking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct HybridConfig {
    pub plane: u32,
    pub planes: u32,
    pub pass: Pass,
    pub layout: Layout,
}

impl HybridConfig {
    pub fn slots(self) -> usize {
        slots(self.planes)
    }
}

fn slots(planes: u32) -> usize {
    planes.next_multiple_of(4) as usize
}

pub(super) fn carried_bytes(planes: u32, size: usize) -> usize {
    slots(planes) * (4 * size + size_of::<i32>())
}

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct HybridShape {
    pub held: usize,
    pub held_rows: usize,
    pub held_step: usize,
    pub scanned: usize,
    pub scanned_rows: usize,
    pub scanned_step: usize,
    pub units: usize,
}

/// From inside row `head` to inside row `tail`.
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
        PlaneRange { start, stop, head, tail }
    }
}
