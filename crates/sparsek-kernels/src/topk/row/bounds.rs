//! Bounds of ragged rows.

use cubecl::prelude::*;

/// Which columns of each row exist; all without `ends`, from 0 without `starts`.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct RowBounds {
    pub starts: ComptimeOption<&'static [u32]>,
    pub ends: ComptimeOption<&'static [u32]>,
    /// Ends are cut to it.
    pub cols: u32,
}

#[cube]
impl RowBounds {
    /// First column of a row.
    pub fn start(&self, row: usize) -> u32 {
        #[comptime]
        match self.starts {
            ComptimeOption::Some(starts) => starts[row],
            ComptimeOption::None => 0u32,
        }
    }

    /// Number of elements to select, up to k.
    pub fn selected_count(&self, row: usize, k: u32) -> u32 {
        #[comptime]
        match self.ends {
            ComptimeOption::Some(ends) => {
                let end = min(ends[row], self.cols);
                min(end - min(self.start(row), end), k)
            }
            ComptimeOption::None => k,
        }
    }
}
