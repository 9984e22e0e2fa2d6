use cubecl::prelude::*;

use super::{bounds::RowBounds, config::MemoryConfig};
use crate::topk::{
    key::{Element, ordered_key},
    threshold::search::{Placement, SearchParams},
};

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

#[cube]
pub(super) fn row_start(
    row: usize,
    column: u32,
    layout: &RowLayout,
    #[comptime] strided: bool,
) -> usize {
    row * layout.row_stride + element_offset(column, layout, strided)
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct RowRequest {
    /// `cols` counts existing elements.
    pub layout: RowLayout,
    /// First column; others count from it.
    pub first: u32,
    /// `k` counts selected elements.
    pub params: SearchParams,
    pub cols: u32,
    pub slots: u32,
}

#[cube]
impl RowRequest {
    pub fn whole(layout: RowLayout, params: &SearchParams) -> RowRequest {
        RowRequest {
            layout,
            first: 0u32,
            params: SearchParams { k: params.k, max_iter: params.max_iter, eps: params.eps },
            cols: layout.cols,
            slots: params.k,
        }
    }

    pub fn new(
        bounds: &RowBounds,
        row: usize,
        layout: RowLayout,
        params: SearchParams,
    ) -> RowRequest {
        #[comptime]
        match bounds.ends {
            ComptimeOption::Some(ends) => {
                let end = min(ends[row], bounds.cols);
                let first = min(bounds.start(row), end);
                let cols = end - first;
                RowRequest {
                    layout: RowLayout {
                        rows: layout.rows,
                        cols,
                        row_stride: layout.row_stride,
                        col_stride: layout.col_stride,
                    },
                    first,
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

    /// `k` ≥ 1.
    pub fn search(&self) -> SearchParams {
        SearchParams {
            k: max(self.params.k, 1),
            max_iter: self.params.max_iter,
            eps: self.params.eps,
        }
    }
}

#[derive(CubeType)]
pub(super) struct RowElements<'a, E: Element> {
    elements: &'a [E],
    start: usize,
    layout: RowLayout,
    #[cube(comptime)]
    pub config: MemoryConfig,
}

#[cube]
impl<'a, E: Element> RowElements<'a, E> {
    pub fn new(
        elements: &'a [E],
        row: usize,
        first: u32,
        layout: RowLayout,
        #[comptime] config: MemoryConfig,
    ) -> RowElements<'a, E> {
        let start = row_start(row, first, &layout, config.strided);
        RowElements::<'a, E> { elements, start, layout, config }
    }

    pub fn value(&self, column: u32) -> E {
        self.elements[self.start + element_offset(column, &self.layout, self.config.strided)]
    }

    pub fn key(&self, column: u32) -> E::Key {
        ordered_key::<E>(self.value(column), self.config.search.largest)
    }
}

#[derive(CubeType, CubeLaunch)]
pub(crate) struct MemoryCall<E: Element, I: Numeric> {
    pub elements: &'static [E],
    values: &'static mut [E],
    indices: &'static mut [I],
    bounds: RowBounds,
    pub layout: RowLayout,
    pub params: SearchParams,
}

#[cube]
impl<E: Element, I: Numeric> MemoryCall<E, I> {
    pub fn output<'a>(
        &'a mut self,
        row: usize,
        #[comptime] config: MemoryConfig,
    ) -> MemoryOutput<'a, E, I> {
        let request = RowRequest::new(&self.bounds, row, self.layout, self.params);
        MemoryOutput::<'a, E, I> {
            values: self.values,
            indices: self.indices,
            row,
            request,
            config,
        }
    }
}

#[derive(CubeType)]
pub(super) struct MemoryOutput<'a, E: Numeric, I: Numeric> {
    values: &'a mut [E],
    indices: &'a mut [I],
    pub row: usize,
    pub request: RowRequest,
    #[cube(comptime)]
    pub config: MemoryConfig,
}

#[cube]
impl<'a, E: Numeric, I: Numeric> MemoryOutput<'a, E, I> {
    /// Fills empty slots and rest of dense rows.
    pub fn pad(&mut self, unit: u32, units: u32) {
        let request = self.request;
        if comptime!(self.config.dense) {
            let start = self.row * request.cols as usize;
            let mut column = unit;
            while column < request.cols {
                // Columns before the first wrap around.
                if column - request.first >= request.layout.cols {
                    self.values[start + column as usize] = E::from_int(0);
                }
                column += units;
            }
        }
        let mut slot = request.params.k + unit;
        while slot < request.slots {
            self.put(slot, E::from_int(0), missing_index::<I>());
            slot += units;
        }
    }

    pub fn write(&mut self, column: u32, value: E, place: &Placement) {
        if comptime!(self.config.dense) {
            self.set_dense(column, select(place.member, value, E::from_int(0)));
        }
        if place.member {
            self.set(place.position, value, column);
        }
    }

    pub fn set_dense(&mut self, column: u32, value: E) {
        let column = self.request.first + column;
        let target = self.row * self.request.cols as usize + column as usize;
        self.values[target] = value;
    }

    /// Writes a slot; the value unless dense.
    pub fn set(&mut self, slot: u32, value: E, column: u32) {
        self.put(slot, value, I::cast_from(self.request.first + column));
    }

    fn put(&mut self, slot: u32, value: E, index: I) {
        let target = self.row * self.request.slots as usize + slot as usize;
        if comptime!(self.config.values && !self.config.dense) {
            self.values[target] = value;
        }
        if comptime!(self.config.indices) {
            self.indices[target] = index;
        }
    }
}

/// All bits set.
#[cube]
pub(crate) fn missing_index<I: Numeric>() -> I {
    I::from_int(-1)
}
