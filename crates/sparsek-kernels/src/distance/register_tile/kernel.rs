use cubecl::{ir::ElemType, prelude::*};

use super::{
    slab::{RegisterTileConfig, Side, Slab},
    sums::{UnitSums, sums_direct},
};
use crate::distance::{
    merge::pair::{Matrices, RowPair},
    semiring::Semiring,
};

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct RegisterTileShape {
    first: usize,
    rows: usize,
    across: usize,
    columns: usize,
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn register_tile_kernel<M: Semiring, S: Float>(
    matrices: Matrices<S>,
    output: &mut [S],
    shape: RegisterTileShape,
    #[comptime] config: RegisterTileConfig,
    #[define(S)] _dtype: ElemType,
) {
    let height = comptime!(config.rows(Side::Left));
    let width = comptime!(config.rows(Side::Right));
    let tiles = shape.across.div_ceil(width);
    let top = CUBE_POS / tiles * height;
    let from = CUBE_POS % tiles * width;
    let mut outside = top >= shape.rows;
    if comptime!(config.half) {
        outside = outside || from + width <= top;
    }
    if outside {
        terminate!();
    }
    let pair = RowPair::<S>::new(&matrices);
    let down = min(shape.rows - top, height);
    let mut left = Slab::<S>::new(shape.first + top, down, Side::Left, config);
    let mut right = Slab::<S>::new(from, min(shape.across - from, width), Side::Right, config);
    let mut sums = UnitSums::<S>::new::<M>(config);
    if comptime!(config.full) {
        // Loads one block ahead.
        let mut next_left = left.load(pair.left(), 0usize, shape.columns);
        let mut next_right = right.load(pair.right(), 0usize, shape.columns);
        let mut column = 0usize;
        while column < shape.columns {
            let end = min(column + comptime!(config.depth), shape.columns);
            left.store(&next_left);
            right.store(&next_right);
            sync_cube();
            if end < shape.columns {
                next_left = left.load(pair.left(), end, shape.columns);
                next_right = right.load(pair.right(), end, shape.columns);
            }
            sums.add_block::<M>(&left, &right, end - column, pair.p);
            sync_cube();
            column = end;
        }
    } else {
        left.start(pair.left());
        right.start(pair.right());
        let mut column = 0usize;
        let mut turn = 0usize;
        while column < shape.columns {
            let end = min(column + comptime!(config.depth), shape.columns);
            left.clear();
            right.clear();
            sync_cube();
            left.fill(pair.left(), column, end, turn);
            right.fill(pair.right(), column, end, turn);
            sync_cube();
            sums.add_block::<M>(&left, &right, end - column, pair.p);
            sync_cube();
            turn = 1 - turn;
            column = end;
        }
    }
    #[unroll]
    for down in 0..comptime!(config.pairs[1]) {
        #[unroll]
        for across in 0..comptime!(config.pairs[0]) {
            let number = comptime!(down * config.pairs[0] + across);
            let row = top + UNIT_POS_Y as usize + comptime!(down * config.units[1] as usize);
            let j = from + UNIT_POS_X as usize + comptime!(across * config.units[0] as usize);
            if row < shape.rows && j < shape.across {
                let i = shape.first + row;
                let (sum, other) = (sums.sum(number), sums.other(number));
                let distance = if comptime!(sums_direct(&M::STRATEGY)) {
                    pair.finish_core::<M>(i, j, sum, other)
                } else {
                    pair.finish::<M>(i, j, sum, other)
                };
                output[row * shape.across + j] = distance;
            }
        }
    }
}
