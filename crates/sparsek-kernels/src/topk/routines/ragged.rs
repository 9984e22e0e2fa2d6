//! Ragged rows: of each only the first elements exist. What a routine takes from such a row, and what it
//! leaves in the slots that get no member.

use cubecl::prelude::*;

use super::{guess::Normal, layout::RowLayout, unit::MemoryBlueprint};
use crate::topk::search::SearchParams;

/// What is taken from one row.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Request {
    /// Where the row lies; `cols` of its elements exist.
    pub layout: RowLayout,
    /// `k` is the number of its members.
    pub params: SearchParams,
    /// Elements of a dense row.
    pub cols: u32,
    /// Slots of the output, members or not.
    pub slots: u32,
}

#[cube]
impl Request {
    /// All of a row.
    pub fn whole(layout: RowLayout, params: &SearchParams) -> Request {
        Request {
            layout,
            params: SearchParams {
                k: params.k,
                max_iter: params.max_iter,
                eps: params.eps,
            },
            cols: layout.cols,
            slots: params.k,
        }
    }

    /// The part of a row that exists.
    pub fn new(
        lengths: ComptimeOption<&[u32]>,
        row: usize,
        layout: RowLayout,
        params: SearchParams,
    ) -> Request {
        #[comptime]
        match lengths {
            ComptimeOption::Some(lengths) => {
                let cols = min(lengths[row], layout.cols);
                Request {
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
            ComptimeOption::None => Request::whole(layout, &params),
        }
    }

    /// The request to a search that wants a member at least, of no matter what.
    pub fn search(&self) -> SearchParams {
        SearchParams {
            k: max(self.params.k, 1),
            max_iter: self.params.max_iter,
            eps: self.params.eps,
        }
    }

    /// Zeros behind the elements and the members of row `index`; unit `unit` of `units` writes its share.
    pub fn pad<E: Numeric, I: Numeric>(
        &self,
        values: &mut [E],
        indices: &mut [I],
        index: usize,
        unit: u32,
        units: u32,
        #[comptime] blueprint: MemoryBlueprint,
    ) {
        if comptime!(blueprint.dense) {
            let mut column = self.layout.cols + unit;
            while column < self.cols {
                values[index * self.cols as usize + column as usize] = E::from_int(0);
                column += units;
            }
        }
        let mut slot = self.params.k + unit;
        while slot < self.slots {
            let target = index * self.slots as usize + slot as usize;
            if comptime!(blueprint.values && !blueprint.dense) {
                values[target] = E::from_int(0);
            }
            if comptime!(blueprint.indices) {
                indices[target] = missing::<I>();
            }
            slot += units;
        }
    }
}

/// The index of a slot without a member: all bits set.
#[cube]
pub(super) fn missing<I: Numeric>() -> I {
    I::from_int(-1)
}

/// How many of `k` slots of a row have a member.
#[cube]
pub(crate) fn members(lengths: ComptimeOption<&[u32]>, row: usize, k: u32) -> u32 {
    #[comptime]
    match lengths {
        ComptimeOption::Some(lengths) => min(lengths[row], k),
        ComptimeOption::None => k,
    }
}

/// [`Normal`] for k of `cols` values, both at least 1: as on the host, but with a rough logarithm, and the
/// density from the tail.
#[cube]
pub(super) fn normal(k: u32, cols: u32) -> Normal {
    let cols = f32::cast_from(cols);
    let inverse = 1.0 / cols;
    let least = 0.25 * inverse;
    let share = max(min((f32::cast_from(k) - 0.5) * inverse, 1.0 - least), least);
    let tail = min(share, 1.0 - share);
    let t = f32::sqrt(2.0 * rough_logarithm(1.0 / tail));
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let distance = t - above / below;
    // The density over the tail: exact in the middle and far out.
    let hazard = 0.5 * (distance + f32::sqrt(distance * distance + 2.546_479));
    Normal {
        quantile: select(share < 0.5, distance, -distance),
        slope: inverse / (tail * hazard),
        inverse,
        deviation: f32::sqrt(cols * share * (1.0 - share)),
    }
}

/// About the natural logarithm of a normal number, to 0.006: devices lack a fast one or its library.
#[cube]
pub(super) fn rough_logarithm(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    let exponent = f32::cast_from(bits >> 23) - 127.0;
    let rest = f32::reinterpret((bits & 0x007f_ffffu32) | 0x3f80_0000u32) - 1.0;
    (exponent + rest * (1.34 - 0.34 * rest)) * comptime!(std::f32::consts::LN_2)
}
