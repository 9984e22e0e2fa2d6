//! Where rows lie in memory, and which part of a ragged row exists.

use cubecl::prelude::*;

use super::config::MemoryConfig;
use crate::topk::threshold::search::SearchParams;

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
    if strided { column * layout.col_stride } else { column }
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct RowRequest {
    /// `cols` counts elements that exist.
    pub layout: RowLayout,
    /// `k` counts elements to select.
    pub params: SearchParams,
    pub cols: u32,
    pub slots: u32,
}

#[cube]
impl RowRequest {
    pub fn whole(layout: RowLayout, params: &SearchParams) -> RowRequest {
        RowRequest {
            layout,
            params: SearchParams { k: params.k, max_iter: params.max_iter, eps: params.eps },
            cols: layout.cols,
            slots: params.k,
        }
    }

    pub fn new(
        lengths: ComptimeOption<&[u32]>,
        row: usize,
        layout: RowLayout,
        params: SearchParams,
    ) -> RowRequest {
        #[comptime]
        match lengths {
            ComptimeOption::Some(lengths) => {
                let cols = min(lengths[row], layout.cols);
                RowRequest {
                    layout: RowLayout {
                        rows: layout.rows,
                        cols,
                        row_stride: layout.row_stride,
                        col_stride: layout.col_stride,
                    },
                    params: SearchParams {
                        k: min(params.k, cols),
                        max_iter: params.max_iter,
                        eps: params.eps,
                    },
                    cols: layout.cols,
                    slots: params.k,
                }
            }
            ComptimeOption::None => RowRequest::whole(layout, &params),
        }
    }

    /// With `k` at least 1.
    pub fn search(&self) -> SearchParams {
        SearchParams {
            k: max(self.params.k, 1),
            max_iter: self.params.max_iter,
            eps: self.params.eps,
        }
    }

    /// Fills the dense row past its elements and the empty slots.
    pub fn pad<E: Numeric, I: Numeric>(
        &self,
        values: &mut [E],
        indices: &mut [I],
        index: usize,
        unit: u32,
        units: u32,
        #[comptime] config: MemoryConfig,
    ) {
        if comptime!(config.dense) {
            let mut column = self.layout.cols + unit;
            while column < self.cols {
                values[index * self.cols as usize + column as usize] = E::from_int(0);
                column += units;
            }
        }
        let mut slot = self.params.k + unit;
        while slot < self.slots {
            let target = index * self.slots as usize + slot as usize;
            if comptime!(config.values && !config.dense) {
                values[target] = E::from_int(0);
            }
            if comptime!(config.indices) {
                indices[target] = missing_index::<I>();
            }
            slot += units;
        }
    }
}

/// All bits set.
#[cube]
pub(super) fn missing_index<I: Numeric>() -> I {
    I::from_int(-1)
}

#[cube]
pub(crate) fn selected_count(lengths: ComptimeOption<&[u32]>, row: usize, k: u32) -> u32 {
    #[comptime]
    match lengths {
        ComptimeOption::Some(lengths) => min(lengths[row], k),
        ComptimeOption::None => k,
    }
}
