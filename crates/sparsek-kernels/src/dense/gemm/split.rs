//! Products on tensor cores without TF32, as on Vulkan: an f32 is the sum of two bf16.
//!
//! The second is the rounding error of the first:
//!
//! ```text
//! a · b = a_high · b_high + a_high · b_low + a_low · b_high        (a_low · b_low is dropped)
//! ```
//!
//! Relative errors are about 2^-16; TF32 has 2^-11.

use cubecl::{
    cmma::{self, Matrix, MatrixIdent, MatrixLayout},
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};
use half::bf16;

use crate::{
    dense::{
        column_sum::reduce_rows,
        tuning::SPLIT_CUBES,
        types::{DenseRows, Weight, access_width},
    },
    device::{multiprocessors, plane_size},
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
    primitives::mma::{Load, instruction},
};

/// [`FIRST_PLANES`] lie along the first panel.
const PLANES: usize = 8;
const FIRST_PLANES: usize = 4;
const LINES: usize = 128;
const TILE: usize = 16;
const DOWN: usize = LINES / FIRST_PLANES / TILE;
const ACROSS: usize = LINES * FIRST_PLANES / PLANES / TILE;
const WIDTH: usize = 4;
/// Strides, padded against bank conflicts.
const LINE: usize = TILE + 8;
const INNER: usize = LINES + 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SplitConfig {
    plane: usize,
    along: [bool; 2],
    /// Elements of a load of either panel, and of a store.
    loads: [usize; 2],
    store: usize,
}

/// Lines, for inner products with those of another panel.
struct Panel<'a> {
    handle: &'a Handle,
    lines: usize,
    inner: usize,
    /// Stride of lines, or of inner elements.
    pitch: usize,
    /// Whether inner elements are contiguous; else lines are.
    along: bool,
}

impl Panel<'_> {
    fn load(&self) -> usize {
        let loaded = if self.along { self.inner } else { self.lines };
        access_width(self.handle, size_of::<f32>(), [WIDTH], &[loaded, self.pitch])
    }
}

pub(super) fn refusal(client: &Client) -> Option<String> {
    let tile = instruction(FloatKind::BF16, [TILE as u32; 3]);
    let hardware = &client.properties().hardware;
    let plane = plane_size(client).unwrap_or(0);
    let shared = 4 * size_of::<bf16>() * LINES * LINE + PLANES * TILE * TILE * size_of::<f32>();
    let loads = LINES * TILE / WIDTH;
    let units = plane as usize * PLANES;
    if !client.features().matmul.cmma.contains(&tile) {
        Some("the device multiplies neither TF32 nor tiles of bf16".into())
    } else if units == 0
        || !loads.is_multiple_of(units)
        || units as u32 > hardware.max_units_per_cube
    {
        Some(format!("planes of {plane} units"))
    } else if shared > hardware.max_shared_memory_size {
        let limit = hardware.max_shared_memory_size;
        Some(format!("it needs {shared} bytes of shared memory; the limit is {limit}"))
    } else {
        None
    }
}

/// Rows if `along`, else columns.
fn panel_of_rows<'a>(x: &DenseRows<'a>, along: bool) -> Panel<'a> {
    let (lines, inner) = if along { (x.rows, x.width) } else { (x.width, x.rows) };
    Panel { handle: x.handle, lines, inner, pitch: x.width, along }
}

fn panel_of_weight<'a>(weight: &Weight<'a>) -> Panel<'a> {
    let [down, along] = weight.strides;
    Panel {
        handle: weight.handle,
        lines: weight.outputs,
        inner: weight.inputs,
        pitch: if along == 1 { down } else { along },
        along: along != 1,
    }
}

pub(super) fn product_refusal(client: &Client, weight: &Weight) -> Option<String> {
    let [down, along] = weight.strides;
    match down == 1 || along == 1 {
        true => refusal(client),
        false => Some(format!("a matrix with strides {down} and {along}")),
    }
}

pub(super) fn product(
    client: &Client,
    x: &DenseRows,
    weight: &Weight,
    bias: Option<&Handle>,
) -> Result<Handle, KernelError> {
    launch(client, [&panel_of_rows(x, true), &panel_of_weight(weight)], bias, 1)
}

/// Workers share the rows; their sums are added in order.
pub(super) fn inner_product(
    client: &Client,
    x: &DenseRows,
    y: &DenseRows,
) -> Result<Handle, KernelError> {
    let tiles = x.width.div_ceil(LINES) * y.width.div_ceil(LINES);
    let most = x.rows.div_ceil(TILE).max(1);
    let workers = (SPLIT_CUBES * multiprocessors(client) / tiles).clamp(1, most);
    let panels = [&panel_of_rows(x, false), &panel_of_rows(y, false)];
    let sums = DenseRows {
        handle: &launch(client, panels, None, workers)?,
        dtype: x.dtype,
        rows: workers,
        width: x.width * y.width,
    };
    reduce_rows(client, &sums, x.dtype, x.dtype)
}

fn launch(
    client: &Client,
    [first, second]: [&Panel; 2],
    bias: Option<&Handle>,
    workers: usize,
) -> Result<Handle, KernelError> {
    let dtype = ElemType::Float(FloatKind::F32);
    let elements = workers * first.lines * second.lines;
    let output = allocate(client, "output", elements, dtype)?;
    if elements == 0 {
        return Ok(output);
    }
    if first.inner == 0 {
        fill_zero(client, &output, dtype, elements)?;
        return Ok(output);
    }
    let sizes = [first, second].map(|panel| panel.lines * panel.inner);
    let config = SplitConfig {
        plane: plane_size(client).unwrap_or(1) as usize,
        along: [first.along, second.along],
        loads: [first.load(), second.load()],
        store: access_width(&output, dtype.size(), [WIDTH], &[second.lines]),
    };
    let dim = CubeDim::new_2d(config.plane as u32, PLANES as u32);
    let across = second.lines.div_ceil(LINES);
    let tiles = first.lines.div_ceil(LINES) * across;
    let largest = sizes[0].max(sizes[1]).max(elements);
    let grid = Grid::new(client, tiles * workers, dim, largest)?;
    let biased = usize::from(bias.is_some());
    let bias = match bias {
        Some(bias) => argument(bias, "bias", dtype, second.lines)?,
        None => argument(first.handle, "first factor", dtype, 1)?,
    };
    // SAFETY: `argument` checks lengths.
    unsafe {
        split_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            config.loads[0],
            config.loads[1],
            config.store,
            argument(first.handle, "first factor", dtype, sizes[0])?,
            argument(second.handle, "second factor", dtype, sizes[1])?,
            bias,
            argument(&output, "output", dtype, elements)?,
            SplitLayoutLaunch::new(
                first.lines,
                second.lines,
                first.inner,
                first.pitch,
                second.pitch,
                workers,
                biased,
            ),
            config,
        );
    }
    Ok(output)
}

type Half = Vector<bf16, Const<4>>;

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct SplitLayout {
    first_lines: usize,
    second_lines: usize,
    inner: usize,
    first_pitch: usize,
    second_pitch: usize,
    workers: usize,
    /// 1 with a bias, else 0.
    biased: usize,
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn split_kernel<A: Size, B: Size, O: Size>(
    first: &[Vector<f32, A>],
    second: &[Vector<f32, B>],
    bias: &[f32],
    output: &mut [Vector<f32, O>],
    layout: SplitLayout,
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

/// One step in shared memory, the next in flight.
#[derive(CubeType)]
struct Stage {
    /// Elements as bf16, and their rounding errors.
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
    /// Elements of a load.
    #[cube(comptime)]
    width: usize,
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
        let units = comptime!(config.plane * PLANES);
        let along = comptime!(config.along[panel]);
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
            width: comptime!(config.loads[panel]),
        }
    }

    /// Loads zero past the end.
    fn read<N: Size>(&mut self, matrix: &[Vector<f32, N>], at: usize, inner: usize) {
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
            #[unroll]
            for piece in 0..comptime!(WIDTH / self.width) {
                if line < self.lines && own < inner {
                    let from = if comptime!(self.along) {
                        line * self.pitch + own
                    } else {
                        own * self.pitch + line
                    };
                    let few = matrix[from / comptime!(self.width)];
                    #[unroll]
                    for i in 0..comptime!(self.width) {
                        four.insert(comptime!(piece * self.width + i), few.extract(i));
                    }
                }
                if comptime!(self.along) {
                    own += comptime!(self.width);
                } else {
                    line += comptime!(self.width);
                }
            }
            self.loads[load] = four;
        }
    }

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

#[cube]
fn fragment(
    stage: &Shared<[Half]>,
    line: usize,
    #[comptime] ident: MatrixIdent,
    #[comptime] along: bool,
) -> Matrix<Half> {
    // Inner elements: columns of the first factor, rows of the second.
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
        for load in 0..comptime!(TILE * TILE / WIDTH / config.plane) {
            let place = UNIT_POS_X as usize + comptime!(load * config.plane);
            let line = top + comptime!(tile / ACROSS * TILE) + place / comptime!(TILE / WIDTH);
            let other =
                left + comptime!(tile % ACROSS * TILE) + place % comptime!(TILE / WIDTH) * WIDTH;
            let four = tiles[own + place];
            #[unroll]
            for piece in 0..comptime!(WIDTH / width) {
                let column = other + comptime!(piece * width);
                if line < a.lines && column < b.lines {
                    let mut values = Vector::<f32, O>::zeroed();
                    #[unroll]
                    for i in 0..width {
                        let shift = select(biased == 1, bias[(column + i) * biased], 0.0f32);
                        values.insert(i, four.extract(comptime!(piece * width + i)) + shift);
                    }
                    output[((worker * a.lines + line) * b.lines + column) / width] = values;
                }
            }
        }
        sync_plane();
    }
}
