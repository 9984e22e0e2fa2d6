//! Where the rows of a matrix lie.

use cubecl::prelude::*;

/// Where a row lies.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct RowLayout {
    pub rows: usize,
    pub cols: u32,
    pub row_stride: usize,
    pub col_stride: usize,
}

#[cube]
pub(super) fn element_offset(column: u32, layout: &RowLayout, #[comptime] strided: bool) -> usize {
    let column = column as usize;
    if strided {
        column * layout.col_stride
    } else {
        column
    }
}
