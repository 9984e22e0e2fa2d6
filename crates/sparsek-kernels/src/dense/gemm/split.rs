//! An f32 is two bf16, value and rounding error.
//!
//! ```text
//! a · b = a_high · b_high + a_high · b_low + a_low · b_high        (a_low · b_low is dropped)
//! ```
//!
//! Relative errors are about 2^-16.

use cubecl::{
    cmma::{self, Matrix, MatrixIdent, MatrixLayout},
    ir::FloatKind,
    prelude::*,
};
use half::bf16;

use super::types::{Call, Edge, LINES, PanelLayout, TILE, WIDTH};
use crate::{
    dense::tuning::{SPLIT_FIRST_PLANES, SPLIT_PLANES},
    device::plane_size,
    error::KernelError,
    primitives::mma::{Load, instruction},
};

const DOWN: usize = LINES / SPLIT_FIRST_PLANES / TILE;
const ACROSS: usize = LINES * SPLIT_FIRST_PLANES / SPLIT_PLANES / TILE;
/// Padded against bank conflicts.
const LINE: usize = TILE + 8;
const INNER: usize = LINES + 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SplitConfig {
    plane: usize,
    along: [bool; 2],
    loads: [usize; 2],
    store: usize,
}

/// Whether cmma has bf16 tiles.
pub(super) fn has_tiles(client: &Client) -> bool {
    let tile = instruction(FloatKind::BF16, [TILE as u32; 3]);
    client.features().matmul.cmma.contains(&tile)
}

pub(super) fn refusal(client: &Client) -> Option<String> {
    let hardware = &client.properties().hardware;
    let plane = plane_size(client).unwrap_or(0);
    let shared =
        4 * size_of::<bf16>() * LINES * LINE + SPLIT_PLANES * TILE * TILE * size_of::<f32>();
    let loads = LINES * TILE / WIDTH;
    let units = plane as usize * SPLIT_PLANES;
    if units == 0 || !loads.is_multiple_of(units) || units as u32 > hardware.max_units_per_cube {
        Some(format!("planes of {plane} units"))
    } else if shared > hardware.max_shared_memory_size {
        let limit = hardware.max_shared_memory_size;
        Some(format!("it needs {shared} bytes of shared memory; the limit is {limit}"))
    } else {
        None
    }
}

pub(super) fn launch(call: &Call) -> Result<(), KernelError> {
    let client = call.client;
    let config = SplitConfig {
        plane: plane_size(client).unwrap_or(1) as usize,
        along: call.panels.map(|panel| panel.along),
        loads: call.panels.map(|panel| panel.load()),
        store: call.store(),
    };
    let grid = call.grid(CubeDim::new_2d(config.plane as u32, SPLIT_PLANES as u32))?;
    let [first, second, bias, output] = call.arguments()?;
    // SAFETY: lengths checked.
    unsafe {
        split_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            config.loads[0],
            config.loads[1],
            config.store,
            first,
            second,
            bias,
            output,
            call.layout(),
            config,
        );
    }
    Ok(())
}

type Half = Vector<bf16, Const<4>>;

#[cube(launch_unchecked, address_type = "dynamic")]
fn split_kernel<A: Size, B: Size, O: Size>(
    first: &[Vector<f32, A>],
    second: &[Vector<f32, B>],
    bias: &[f32],
    output: &mut [Vector<f32, O>],
    layout: PanelLayout,
    #[comptime] config: SplitConfig,
) {
    let (first_lines, second_lines) = (layout.first_lines, layout.second_lines);
    let (inner, workers) = (layout.inner, layout.workers);
    let across = second_lines.div_ceil(LINES);
    let down = first_lines.div_ceil(LINES);
    let block = CUBE_POS / across;
    let worker = block / down;
    let top = (block - worker * down) * LINES;
    let left = (CUBE_POS - block * across) * LINES;
    if worker >= workers {
        terminate!();
    }
    let mut a = Stage::new(top, first_lines, layout.first_pitch, config, 0usize);
    let mut b = Stage::new(left, second_lines, layout.second_pitch, config, 1usize);
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
    write(output, bias, &sums, &a, &b, worker, layout.biased, config);
}

#[derive(CubeType)]
struct Stage {
    high: Shared<[Half]>,
    low: Shared<[Half]>,
    loads: Array<Load>,
    edge: Edge,
    #[cube(comptime)]
    units: usize,
}

#[cube]
impl Stage {
    fn new(
        first: usize,
        lines: usize,
        pitch: usize,
        #[comptime] config: SplitConfig,
        #[comptime] panel: usize,
    ) -> Stage {
        let units = comptime!(config.plane * SPLIT_PLANES);
        let along = comptime!(config.along[panel]);
        let room = comptime!((if along { LINES * LINE } else { TILE * INNER }) / WIDTH);
        Stage {
            high: Shared::<[Half]>::new_slice(room),
            low: Shared::<[Half]>::new_slice(room),
            loads: Array::<Load>::new(comptime!(LINES * TILE / WIDTH / units)),
            edge: Edge { first, lines, pitch, along, width: comptime!(config.loads[panel]) },
            units,
        }
    }

    fn read<N: Size>(&mut self, matrix: &[Vector<f32, N>], at: usize, inner: usize) {
        #[unroll]
        for load in 0..comptime!(LINES * TILE / WIDTH / self.units) {
            let place = UNIT_POS as usize + comptime!(load * self.units);
            let mut line = self.edge.first;
            let mut own = at;
            if comptime!(self.edge.along) {
                line += place / comptime!(TILE / WIDTH);
                own += place % comptime!(TILE / WIDTH) * WIDTH;
            } else {
                line += place % comptime!(LINES / WIDTH) * WIDTH;
                own += place / comptime!(LINES / WIDTH);
            }
            self.loads[load] = self.edge.read(matrix, line, own, inner);
        }
    }

    fn keep(&mut self) {
        #[unroll]
        for load in 0..comptime!(LINES * TILE / WIDTH / self.units) {
            let place = UNIT_POS as usize + comptime!(load * self.units);
            let to = if comptime!(self.edge.along) {
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

#[cube]
fn multiply(a: &Stage, b: &Stage, sums: &Sequence<Matrix<f32>>) {
    let plane = UNIT_POS_Y as usize;
    let (top, left) = (
        plane % SPLIT_FIRST_PLANES * comptime!(DOWN * TILE),
        plane / SPLIT_FIRST_PLANES * comptime!(ACROSS * TILE),
    );
    let mut highs = Sequence::<Matrix<Half>>::new();
    let mut lows = Sequence::<Matrix<Half>>::new();
    #[unroll]
    for tile in 0..DOWN {
        let line = top + comptime!(tile * TILE);
        highs.push(fragment(&a.high, line, MatrixIdent::A, a.edge.along));
        lows.push(fragment(&a.low, line, MatrixIdent::A, a.edge.along));
    }
    #[unroll]
    for tile in 0..ACROSS {
        let line = left + comptime!(tile * TILE);
        let high = fragment(&b.high, line, MatrixIdent::B, b.edge.along);
        let low = fragment(&b.low, line, MatrixIdent::B, b.edge.along);
        #[unroll]
        for other in 0..DOWN {
            let sum = &sums[comptime!(other * ACROSS + tile)];
            cmma::execute(&lows[other], &high, sum, sum);
            cmma::execute(&highs[other], &low, sum, sum);
            cmma::execute(&highs[other], &high, sum, sum);
        }
    }
}

#[cube]
fn fragment(
    stage: &Shared<[Half]>,
    line: usize,
    #[comptime] ident: MatrixIdent,
    #[comptime] along: bool,
) -> Matrix<Half> {
    // Inner elements are columns of A, rows of B.
    let layout = comptime!(if along == (ident == MatrixIdent::A) {
        MatrixLayout::RowMajor
    } else {
        MatrixLayout::ColMajor
    });
    let stride = comptime!((if along { LINE } else { INNER }) as u32);
    let from = if comptime!(along) { line * comptime!(LINE / WIDTH) } else { line / WIDTH };
    let end = stage.len();
    Matrix::<Half>::from_slice(ident, TILE, TILE, TILE, layout, &stage[from..end], stride)
}

#[cube]
fn write<O: Size>(
    output: &mut [Vector<f32, O>],
    bias: &[f32],
    sums: &Sequence<Matrix<f32>>,
    a: &Stage,
    b: &Stage,
    worker: usize,
    biased: usize,
    #[comptime] config: SplitConfig,
) {
    let width = comptime!(config.store);
    let plane = UNIT_POS_Y as usize;
    let size = comptime!(TILE * TILE / WIDTH);
    let mut tiles = Shared::<[Load]>::new_slice(comptime!(SPLIT_PLANES * TILE * TILE / WIDTH));
    let own = plane * size;
    let top = a.edge.first + plane % SPLIT_FIRST_PLANES * comptime!(DOWN * TILE);
    let left = b.edge.first + plane / SPLIT_FIRST_PLANES * comptime!(ACROSS * TILE);
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
        for load in 0..comptime!(TILE * TILE / WIDTH / config.plane) {
            let place = UNIT_POS_X as usize + comptime!(load * config.plane);
            let line = top + comptime!(tile / ACROSS * TILE) + place / comptime!(TILE / WIDTH);
            let other =
                left + comptime!(tile % ACROSS * TILE) + place % comptime!(TILE / WIDTH) * WIDTH;
            let four = tiles[own + place];
            #[unroll]
            for piece in 0..comptime!(WIDTH / width) {
                let column = other + comptime!(piece * width);
                if line < a.edge.lines && column < b.edge.lines {
                    let mut values = Vector::<f32, O>::zeroed();
                    #[unroll]
                    for i in 0..width {
                        let shift = select(biased == 1, bias[(column + i) * biased], 0.0f32);
                        values.insert(i, four.extract(comptime!(piece * width + i)) + shift);
                    }
                    output[((worker * a.edge.lines + line) * b.edge.lines + column) / width] =
                        values;
                }
            }
        }
        sync_plane();
    }
}
