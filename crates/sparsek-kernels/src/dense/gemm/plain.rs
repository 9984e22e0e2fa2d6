//! Exact up to f32 rounding.
//!
//! ```text
//! each cube: 128 lines of each panel, in steps of 16 inner elements:
//!     store the step in shared memory, inner elements first; prefetch the next one
//!     each unit: sums of 8 x 8 results in registers, from fours of neighboring lines
//! ```

use cubecl::prelude::*;

use super::types::{Call, Edge, LINES, PanelLayout, TILE, WIDTH};
use crate::{
    device::{has_many_units, is_llvmpipe, units_per_cube},
    error::KernelError,
    primitives::mma::Load,
};

/// 16 × 16, each with [`FOURS`] fours of lines per panel.
const UNITS: usize = 256;
const SIDE: usize = 16;
const FOURS: usize = LINES / WIDTH / SIDE;
const APART: usize = WIDTH * SIDE;
/// Per panel.
const LOADERS: usize = UNITS / 2;
const LOADS: usize = LINES * TILE / WIDTH / LOADERS;
const _: () = assert!(LOADS == WIDTH);
/// Padded against bank conflicts.
const STRIDE: usize = LINES / WIDTH + 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PlainConfig {
    along: [bool; 2],
    loads: [usize; 2],
    store: usize,
}

pub(super) fn refusal(client: &Client) -> Option<String> {
    let shared = 2 * TILE * STRIDE * size_of::<[f32; WIDTH]>();
    let limit = client.properties().hardware.max_shared_memory_size;
    if !has_many_units(client) || is_llvmpipe(client) {
        Some("the device has no tensor cores, and few units per cube".into())
    } else if units_per_cube(client, UNITS as u32) < UNITS as u32 {
        Some(format!("it needs {UNITS} units per cube"))
    } else if shared > limit {
        Some(format!("it needs {shared} bytes of shared memory; the limit is {limit}"))
    } else {
        None
    }
}

pub(super) fn launch(call: &Call) -> Result<(), KernelError> {
    let config = PlainConfig {
        along: call.panels.map(|panel| panel.along),
        loads: call.panels.map(|panel| panel.load()),
        store: call.store(),
    };
    let grid = call.grid(CubeDim::new_1d(UNITS as u32))?;
    let [first, second, bias, output] = call.arguments()?;
    // SAFETY: lengths checked.
    unsafe {
        plain_kernel::launch_unchecked(
            call.client,
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

#[cube(launch_unchecked, address_type = "dynamic")]
fn plain_kernel<A: Size, B: Size, O: Size>(
    first: &[Vector<f32, A>],
    second: &[Vector<f32, B>],
    bias: &[f32],
    output: &mut [Vector<f32, O>],
    layout: PanelLayout,
    #[comptime] config: PlainConfig,
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
    let mut sums = Array::<Load>::new(comptime!(FOURS * WIDTH * FOURS));
    #[unroll]
    for sum in 0..comptime!(FOURS * WIDTH * FOURS) {
        sums[sum] = Load::zeroed();
    }
    let stride = workers * TILE;
    let mut at = worker * TILE;
    let loads_first = UNIT_POS < comptime!(LOADERS as u32);
    let mut loads = Array::<Load>::new(LOADS);
    if loads_first {
        a.read(first, &mut loads, at, inner);
    } else {
        b.read(second, &mut loads, at, inner);
    }
    while at < inner {
        sync_cube();
        if loads_first {
            a.keep(&loads);
        } else {
            b.keep(&loads);
        }
        sync_cube();
        at += stride;
        if loads_first {
            a.read(first, &mut loads, at, inner);
        } else {
            b.read(second, &mut loads, at, inner);
        }
        multiply(&a.kept, &b.kept, &mut sums);
    }

    let unit = UNIT_POS as usize;
    let width = comptime!(config.store);
    #[unroll]
    for row in 0..comptime!(FOURS * WIDTH) {
        let own = comptime!(row / WIDTH * APART + row % WIDTH);
        let line = top + unit / SIDE * WIDTH + own;
        #[unroll]
        for four in 0..FOURS {
            let other = left + unit % SIDE * WIDTH + comptime!(four * APART);
            let sum = sums[comptime!(row * FOURS + four)];
            #[unroll]
            for piece in 0..comptime!(WIDTH / width) {
                let column = other + comptime!(piece * width);
                if line < first_lines && column < second_lines {
                    let mut values = Vector::<f32, O>::zeroed();
                    #[unroll]
                    for i in 0..width {
                        let biased = layout.biased;
                        let shift = select(biased == 1, bias[(column + i) * biased], 0.0f32);
                        values.insert(i, sum.extract(comptime!(piece * width + i)) + shift);
                    }
                    output[((worker * first_lines + line) * second_lines + column) / width] =
                        values;
                }
            }
        }
    }
}

#[cube]
fn multiply(a: &Shared<[Load]>, b: &Shared<[Load]>, sums: &mut Array<Load>) {
    let unit = UNIT_POS as usize;
    let (down, across) = (unit / SIDE, unit % SIDE);
    #[unroll]
    for inner in 0..TILE {
        let start = comptime!(inner * STRIDE);
        let mut others = Sequence::<Load>::new();
        #[unroll]
        for four in 0..FOURS {
            others.push(b[start + comptime!(four * SIDE) + across]);
        }
        #[unroll]
        for lines in 0..FOURS {
            let own = a[start + comptime!(lines * SIDE) + down];
            #[unroll]
            for line in 0..WIDTH {
                let factor = Load::new(own.extract(line));
                #[unroll]
                for four in 0..FOURS {
                    let sum = comptime!((lines * WIDTH + line) * FOURS + four);
                    sums[sum] += factor * others[four];
                }
            }
        }
    }
}

#[derive(CubeType)]
struct Stage {
    kept: Shared<[Load]>,
    edge: Edge,
}

#[cube]
impl Stage {
    fn new(
        first: usize,
        lines: usize,
        pitch: usize,
        #[comptime] config: PlainConfig,
        #[comptime] panel: usize,
    ) -> Stage {
        Stage {
            kept: Shared::<[Load]>::new_slice(comptime!(TILE * STRIDE)),
            edge: Edge {
                first,
                lines,
                pitch,
                along: comptime!(config.along[panel]),
                width: comptime!(config.loads[panel]),
            },
        }
    }

    /// Loads 4 × 4 elements, zeros past the end.
    fn read<N: Size>(
        &self,
        matrix: &[Vector<f32, N>],
        loads: &mut Array<Load>,
        at: usize,
        inner: usize,
    ) {
        let unit = UNIT_POS as usize % LOADERS;
        #[unroll]
        for load in 0..LOADS {
            let mut line = self.edge.first;
            let mut own = at;
            if comptime!(self.edge.along) {
                line += unit / comptime!(TILE / WIDTH) * WIDTH + load;
                own += unit % comptime!(TILE / WIDTH) * WIDTH;
            } else {
                let place = unit + comptime!(load * LOADERS);
                line += place % comptime!(LINES / WIDTH) * WIDTH;
                own += place / comptime!(LINES / WIDTH);
            }
            loads[load] = self.edge.read(matrix, line, own, inner);
        }
    }

    fn keep(&mut self, loads: &Array<Load>) {
        let unit = UNIT_POS as usize % LOADERS;
        #[unroll]
        for load in 0..LOADS {
            if comptime!(self.edge.along) {
                let mut four = Load::zeroed();
                #[unroll]
                for line in 0..LOADS {
                    four.insert(line, loads[line].extract(load));
                }
                let own = unit % comptime!(TILE / WIDTH) * WIDTH + load;
                self.kept[own * STRIDE + unit / comptime!(TILE / WIDTH)] = four;
            } else {
                let place = unit + comptime!(load * LOADERS);
                let own = place / comptime!(LINES / WIDTH);
                self.kept[own * STRIDE + place % comptime!(LINES / WIDTH)] = loads[load];
            }
        }
    }
}
