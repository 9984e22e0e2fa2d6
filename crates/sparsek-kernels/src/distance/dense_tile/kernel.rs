use cubecl::{ir::ElemType, prelude::*};

use super::tile::{Block, DenseTileConfig, Tile, any_finite, next_row};
use crate::{
    distance::{
        merge::pair::{Matrices, RowPair},
        semiring::{Dense, Semiring, infinity},
    },
    primitives::csr::first_from,
};

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct DenseTileShape {
    first: usize,
    rows: usize,
    chunk: usize,
    chunks: usize,
    from: usize,
    across: usize,
    blocks: usize,
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn starts_kernel(
    indptr: &[i32],
    indices: &[i32],
    starts: &mut [i32],
    first: usize,
    block: usize,
    blocks: usize,
) {
    if ABSOLUTE_POS >= starts.len() {
        terminate!();
    }
    let row = ABSOLUTE_POS / (blocks + 1);
    let number = ABSOLUTE_POS - row * (blocks + 1);
    let end = indptr[first + row + 1];
    let from = select(number == blocks, end, indptr[first + row]);
    let column = i32::cast_from(number * block);
    starts[ABSOLUTE_POS] = first_from(indices, from, end, column);
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn dense_tile_kernel<M: Semiring, S: Float>(
    matrices: Matrices<S>,
    x_starts: &[i32],
    y_starts: &[i32],
    output: &mut [S],
    shape: DenseTileShape,
    #[comptime] config: DenseTileConfig,
    #[define(S)] _dtype: ElemType,
) {
    let plane = comptime!(config.plane as usize);
    let pair = RowPair::<S>::new(&matrices);
    let tile = CUBE_POS / shape.chunks;
    let chunk = CUBE_POS - tile * shape.chunks;
    let first = tile * comptime!(config.width());
    let begin = chunk * shape.chunk;
    let mut last = min(begin + shape.chunk, shape.rows);
    if comptime!(config.half) {
        last = min(last, first + comptime!(config.width()));
    }
    if first >= shape.across || begin >= last {
        terminate!();
    }
    let mut dense = Tile::<S>::new(pair.p, config);
    let taken = Shared::<[Atomic<u32>]>::new_slice(4usize);
    for block in 0..shape.blocks {
        let place = Block { number: block, of: shape.blocks };
        sync_cube();
        dense.column = block * comptime!(config.block);
        dense.clear::<M>();
        if UNIT_POS == 0 {
            taken[0].store(0);
        }
        sync_cube();
        dense.fill::<M>(pair.right(), y_starts, first, shape.across, &place);
        sync_cube();
        let mut row = begin + next_row(&taken, comptime!(config.plane));
        while row < last {
            let at_start = place.start_index(row);
            let last_block = block + 1 == shape.blocks;
            let from = x_starts[at_start] as usize;
            let mut to = x_starts[at_start + 1] as usize;
            let mut written = true;
            if comptime!(M::ALGEBRA.covered) {
                if block > 0 && !any_sum_finite::<S>(&*output, row, first, &shape, config) {
                    to = from;
                    written = last_block;
                }
            }
            let sums = dense.multiply_row::<M>(pair.left(), from, to);
            #[unroll]
            for r in 0..comptime!(config.rows) {
                let j = first + comptime!(r * plane) + UNIT_POS_X as usize;
                if j < shape.across && written {
                    let at = row * shape.across + j;
                    let mut sum = sums[r];
                    if block > 0 {
                        sum = M::reduce::<S>(sum, output[at]);
                    }
                    if comptime!(!M::STRATEGY.two_passes()) {
                        if last_block {
                            let i = shape.first + row;
                            let mut other = S::new(0.0);
                            if comptime!(M::STRATEGY.dense == Some(Dense::Left)) {
                                // The total includes columns the right row lacks.
                                other = pair.left().norm(i);
                            }
                            sum = pair.finish::<M>(i, shape.from + j, sum, other);
                        }
                    }
                    output[at] = sum;
                }
            }
            row = begin + next_row(&taken, comptime!(config.plane));
        }
    }
}

#[cube]
fn any_sum_finite<S: Float>(
    output: &[S],
    row: usize,
    first: usize,
    shape: &DenseTileShape,
    #[comptime] config: DenseTileConfig,
) -> bool {
    let mut least = infinity::<S>();
    #[unroll]
    for r in 0..comptime!(config.rows) {
        let j = first + comptime!(r * config.plane as usize) + UNIT_POS_X as usize;
        let j = min(j, shape.across - 1);
        least = min(least, output[row * shape.across + j]);
    }
    any_finite::<S>(least, config.plane)
}
