use cubecl::prelude::*;

/// All columns without `ends`, from 0 without `starts`.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct RowBounds {
    pub starts: ComptimeOption<&'static [u32]>,
    pub ends: ComptimeOption<&'static [u32]>,
    /// Caps the ends.
    pub cols: u32,
}

#[cube]
impl RowBounds {
    /// First column.
    pub fn start(&self, row: usize) -> u32 {
        #[comptime]
        match self.starts {
            ComptimeOption::Some(starts) => starts[row],
            ComptimeOption::None => 0u32,
        }
    }

    /// Up to k.
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
