//! What a cube multiplies: lines of either panel in shared memory, two bf16 for each element.

use crate::primitives::mma::Load;
use cubecl::{
    cmma::{self, Matrix, MatrixIdent, MatrixLayout},
    prelude::*,
};
use half::bf16;

use super::ACROSS;
use super::Blueprint;
use super::DOWN;
use super::FIRST_PLANES;
use super::INNER;
use super::LINE;
use super::LINES;
use super::PLANES;
use super::TILE;
use super::WIDTH;

type Half = Vector<bf16, Const<4>>;

/// A cube multiplies 128 lines with 128 others, 16 inner elements at a time, while those of its next step are loaded.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "two matrices, and sizes")]
pub(super) fn split_kernel(
    first: &[Load],
    second: &[Load],
    bias: &[f32],
    output: &mut [Load],
    first_lines: usize,
    second_lines: usize,
    inner: usize,
    first_pitch: usize,
    second_pitch: usize,
    workers: usize,
    #[comptime] blueprint: Blueprint,
) {
    let across = second_lines.div_ceil(LINES);
    let down = first_lines.div_ceil(LINES);
    let block = CUBE_POS / across;
    let worker = block / down;
    let top = (block - worker * down) * LINES;
    let left = (CUBE_POS - block * across) * LINES;
    if worker >= workers {
        terminate!();
    }
    let mut a = Stage::new(
        top,
        first_lines,
        first_pitch,
        blueprint.plane,
        blueprint.along[0],
    );
    let mut b = Stage::new(
        left,
        second_lines,
        second_pitch,
        blueprint.plane,
        blueprint.along[1],
    );
    let mut sums = Sequence::<Matrix<f32>>::new();
    #[unroll]
    for _ in 0..DOWN * ACROSS {
        sums.push(Matrix::<f32>::from_value(
            MatrixIdent::Accumulator,
            TILE,
            TILE,
            TILE,
            MatrixLayout::Undefined,
            0.0,
        ));
    }
    let stride = workers * TILE;
    let mut at = worker * TILE;
    a.read(first, at, inner);
    b.read(second, at, inner);
    while at < inner {
        sync_cube();
        a.keep();
        b.keep();
        sync_cube();
        at += stride;
        a.read(first, at, inner);
        b.read(second, at, inner);
        multiply(&a, &b, &sums);
    }
    write(output, bias, &sums, &a, &b, worker, blueprint);
}

/// The lines of a panel that a cube multiplies: a step of them in shared memory, the next under way.
#[derive(CubeType)]
struct Stage {
    /// Rounded, and what is left.
    high: Shared<[Half]>,
    low: Shared<[Half]>,
    loads: Array<Load>,
    first: usize,
    lines: usize,
    pitch: usize,
    #[cube(comptime)]
    units: usize,
    #[cube(comptime)]
    along: bool,
}

#[cube]
impl Stage {
    fn new(
        first: usize,
        lines: usize,
        pitch: usize,
        #[comptime] plane: usize,
        #[comptime] along: bool,
    ) -> Stage {
        let units = comptime!(plane * PLANES);
        let room = comptime!((if along { LINES * LINE } else { TILE * INNER }) / WIDTH);
        Stage {
            high: Shared::<[Half]>::new_slice(room),
            low: Shared::<[Half]>::new_slice(room),
            loads: Array::<Load>::new(comptime!(LINES * TILE / WIDTH / units)),
            first,
            lines,
            pitch,
            units,
            along,
        }
    }

    /// Begins to read a step; zero past the end.
    fn read(&mut self, matrix: &[Load], at: usize, inner: usize) {
        #[unroll]
        for load in 0..comptime!(LINES * TILE / WIDTH / self.units) {
            let place = UNIT_POS as usize + comptime!(load * self.units);
            let mut line = self.first;
            let mut own = at;
            if comptime!(self.along) {
                line += place / comptime!(TILE / WIDTH);
                own += place % comptime!(TILE / WIDTH) * WIDTH;
            } else {
                line += place % comptime!(LINES / WIDTH) * WIDTH;
                own += place / comptime!(LINES / WIDTH);
            }
            let mut four = Load::zeroed();
            if line < self.lines && own < inner {
                let from = if comptime!(self.along) {
                    line * self.pitch + own
                } else {
                    own * self.pitch + line
                };
                four = matrix[from / WIDTH];
            }
            self.loads[load] = four;
        }
    }

    /// Rounds what has been read.
    fn keep(&mut self) {
        #[unroll]
        for load in 0..comptime!(LINES * TILE / WIDTH / self.units) {
            let place = UNIT_POS as usize + comptime!(load * self.units);
            let to = if comptime!(self.along) {
                let line = place / comptime!(TILE / WIDTH);
                line * comptime!(LINE / WIDTH) + place % comptime!(TILE / WIDTH)
            } else {
                let own = place / comptime!(LINES / WIDTH);
                own * comptime!(INNER / WIDTH) + place % comptime!(LINES / WIDTH)
            };
            let four = self.loads[load];
            let high = Half::cast_from(four);
            self.high[to] = high;
            self.low[to] = Half::cast_from(four - Load::cast_from(high));
        }
    }
}

/// Adds the products of a step.
#[cube]
fn multiply(a: &Stage, b: &Stage, sums: &Sequence<Matrix<f32>>) {
    let plane = UNIT_POS_Y as usize;
    let (top, left) = (
        plane % FIRST_PLANES * comptime!(DOWN * TILE),
        plane / FIRST_PLANES * comptime!(ACROSS * TILE),
    );
    let mut highs = Sequence::<Matrix<Half>>::new();
    let mut lows = Sequence::<Matrix<Half>>::new();
    #[unroll]
    for tile in 0..DOWN {
        let line = top + comptime!(tile * TILE);
        highs.push(fragment(&a.high, line, MatrixIdent::A, a.along));
        lows.push(fragment(&a.low, line, MatrixIdent::A, a.along));
    }
    #[unroll]
    for tile in 0..ACROSS {
        let line = left + comptime!(tile * TILE);
        let high = fragment(&b.high, line, MatrixIdent::B, b.along);
        let low = fragment(&b.low, line, MatrixIdent::B, b.along);
        #[unroll]
        for other in 0..DOWN {
            let sum = &sums[comptime!(other * ACROSS + tile)];
            cmma::execute(&lows[other], &high, sum, sum);
            cmma::execute(&highs[other], &low, sum, sum);
            cmma::execute(&highs[other], &high, sum, sum);
        }
    }
}

/// 16 lines of a step, from one on.
#[cube]
fn fragment(
    stage: &Shared<[Half]>,
    line: usize,
    #[comptime] ident: MatrixIdent,
    #[comptime] along: bool,
) -> Matrix<Half> {
    // Inner elements are columns of the first factor and rows of the second.
    let layout = comptime!(if along == (ident == MatrixIdent::A) {
        MatrixLayout::RowMajor
    } else {
        MatrixLayout::ColMajor
    });
    let stride = comptime!((if along { LINE } else { INNER }) as u32);
    let from = if comptime!(along) {
        line * comptime!(LINE / WIDTH)
    } else {
        line / WIDTH
    };
    let end = stage.len();
    Matrix::<Half>::from_slice(ident, TILE, TILE, TILE, layout, &stage[from..end], stride)
}

/// Writes what lines have come to, a tile at a time by way of shared memory.
#[cube]
fn write(
    output: &mut [Load],
    bias: &[f32],
    sums: &Sequence<Matrix<f32>>,
    a: &Stage,
    b: &Stage,
    worker: usize,
    #[comptime] blueprint: Blueprint,
) {
    let plane = UNIT_POS_Y as usize;
    let size = comptime!(TILE * TILE / WIDTH);
    let mut tiles = Shared::<[Load]>::new_slice(comptime!(PLANES * TILE * TILE / WIDTH));
    let own = plane * size;
    let top = a.first + plane % FIRST_PLANES * comptime!(DOWN * TILE);
    let left = b.first + plane / FIRST_PLANES * comptime!(ACROSS * TILE);
    #[unroll]
    for tile in 0..DOWN * ACROSS {
        cmma::store(
            &mut tiles[own..own + size],
            &sums[tile],
            comptime!(TILE as u32),
            MatrixLayout::RowMajor,
        );
        sync_plane();
        #[unroll]
        for load in 0..comptime!(TILE * TILE / WIDTH / blueprint.plane) {
            let place = UNIT_POS_X as usize + comptime!(load * blueprint.plane);
            let line = top + comptime!(tile / ACROSS * TILE) + place / comptime!(TILE / WIDTH);
            let other =
                left + comptime!(tile % ACROSS * TILE) + place % comptime!(TILE / WIDTH) * WIDTH;
            if line < a.lines && other < b.lines {
                let mut four = tiles[own + place];
                if comptime!(blueprint.biased) {
                    let mut shift = Load::zeroed();
                    #[unroll]
                    for i in 0..WIDTH {
                        shift.insert(i, bias[other + i]);
                    }
                    four += shift;
                }
                output[((worker * a.lines + line) * b.lines + other) / WIDTH] = four;
            }
        }
        sync_plane();
    }
}
