//! Rows times a matrix in shared memory.
//!
//! ```text
//! for each chunk of inner elements that fits shared memory, a launch:
//!     each cube: load 128 columns of the matrix, rounded to TF32
//!     each plane, 32 rows at a time:
//!         for each step of 16 inner elements: prefetch 2 steps ahead; sums += rows · matrix
//!         write sums + bias + addend, the result of the chunk before
//! ```

use cubecl::{prelude::*, server::Handle};

use super::panels;
use crate::{
    dense::{
        tuning::{
            MATRIX_FLIGHT, PRODUCT_ACROSS, PRODUCT_AHEAD, PRODUCT_GROUP, PRODUCT_HEIGHT,
            PRODUCT_PLANES,
        },
        types::{PitchedRows, Weight, access_width, dtype_refusal},
    },
    device::multiprocessors,
    error::KernelError,
    launch::{Grid, allocate, argument},
    primitives::mma::{LANES, Load, Sums, clear, has_tf32, multiply, rounded, zeros},
};

pub(super) const TILES: usize = PRODUCT_ACROSS / 8;
const STEP: usize = 16;

const _: () = assert!((PRODUCT_AHEAD * TILES).is_multiple_of(MATRIX_FLIGHT * PRODUCT_PLANES));

pub(super) const STEP_BYTES: usize = STEP * PRODUCT_ACROSS * size_of::<f32>();

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ProductConfig {
    /// Steps that fit shared memory.
    room: usize,
    load: usize,
    store: usize,
    adds: bool,
    whole: bool,
}

pub(super) fn steps(inputs: usize) -> usize {
    inputs.div_ceil(STEP).next_multiple_of(PRODUCT_AHEAD)
}

fn most_steps(client: &Client) -> usize {
    let limit = client.properties().hardware.max_shared_memory_size;
    limit / STEP_BYTES / PRODUCT_AHEAD * PRODUCT_AHEAD
}

impl Weight<'_> {
    fn chunk(&self, client: &Client) -> Option<usize> {
        let most = most_steps(client);
        if most == 0 {
            return None;
        }
        let steps = self.inputs.div_ceil(STEP).max(1);
        let chunks = steps.div_ceil(most);
        Some(steps.div_ceil(chunks) * STEP)
    }

    /// Checks support by [`product`].
    pub fn fits(&self, client: &Client, x: &PitchedRows) -> bool {
        self.refusal(client, x).is_none()
    }

    fn refusal(&self, client: &Client, x: &PitchedRows) -> Option<String> {
        let (x, contiguous) = (&x.rows, x.pitch == x.rows.width);
        let Self { inputs, outputs, .. } = *self;
        if inputs != x.width {
            let width = x.width;
            Some(format!("rows of {width} elements and a matrix of {inputs} rows"))
        } else if outputs == 0 {
            Some("results of no element".into())
        } else if has_tf32(client) {
            let limit = client.properties().hardware.max_shared_memory_size;
            dtype_refusal(&[x]).or_else(|| {
                self.chunk(client).is_none().then(|| {
                    let least = PRODUCT_AHEAD * STEP_BYTES;
                    format!("it needs {least} bytes of shared memory; the limit is {limit}")
                })
            })
        } else if !contiguous {
            Some("rows apart".into())
        } else {
            dtype_refusal(&[x]).or_else(|| panels::product_refusal(client, self))
        }
    }
}

/// Computes `x · weight + bias + addend`: f32 `[rows, outputs]`.
///
/// `bias` is `[outputs]`, `addend` `[rows, outputs]`. Rounds factors to TF32; without it, to two
/// bf16, where infinities may give NaN; without tensor cores, not at all.
///
/// Fails unless [`Weight::fits`], and with an addend unless [`accumulates`].
pub fn product(
    client: &Client,
    x: &PitchedRows,
    weight: &Weight,
    bias: Option<&Handle>,
    addend: Option<&Handle>,
) -> Result<Handle, KernelError> {
    if let Some(reason) = weight.refusal(client, x) {
        return Err(KernelError::Routine { routine: "product", reason });
    }
    if !has_tf32(client) {
        return match addend {
            None => panels::product(client, &x.rows, weight, bias),
            Some(_) => Err(KernelError::Routine {
                routine: "product",
                reason: "an addend needs TF32".into(),
            }),
        };
    }
    let chunk = weight.chunk(client).unwrap_or(STEP);
    let mut sum: Option<Handle> = None;
    for first in (0..weight.inputs.max(1)).step_by(chunk) {
        let inputs = chunk.min(weight.inputs - first);
        let part = Chunk { first, inputs };
        let bias = bias.filter(|_| first == 0);
        let addend = sum.as_ref().or(addend);
        sum = Some(launch(client, x, weight, part, bias, addend)?);
    }
    Ok(sum.expect("at least one chunk"))
}

/// Whether [`product`] takes an addend.
pub fn accumulates(client: &Client) -> bool {
    has_tf32(client)
}

/// Column blocks, and cubes to share their rows.
pub(super) fn blocks_and_workers(client: &Client, rows: usize, weight: &Weight) -> [usize; 2] {
    let blocks = weight.outputs.div_ceil(PRODUCT_ACROSS);
    let tiles = rows.div_ceil(PRODUCT_HEIGHT * PRODUCT_PLANES);
    [blocks, (multiprocessors(client) / blocks).clamp(1, tiles)]
}

struct Chunk {
    first: usize,
    inputs: usize,
}

fn launch(
    client: &Client,
    x: &PitchedRows,
    weight: &Weight,
    chunk: Chunk,
    bias: Option<&Handle>,
    addend: Option<&Handle>,
) -> Result<Handle, KernelError> {
    let PitchedRows { rows, pitch } = *x;
    let elements = rows.rows * weight.outputs;
    let output = allocate(client, "output", elements, rows.dtype)?;
    if elements == 0 {
        return Ok(output);
    }
    let [blocks, workers] = blocks_and_workers(client, rows.rows, weight);
    let steps = steps(chunk.inputs);
    let stored = addend.unwrap_or(&output);
    let config = ProductConfig {
        room: most_steps(client),
        load: x.load_width(),
        store: access_width(stored, size_of::<f32>(), [4, 2], &[weight.outputs]),
        adds: addend.is_some(),
        whole: weight.outputs.is_multiple_of(PRODUCT_ACROSS),
    };
    let biased = u32::from(bias.is_some());
    let dim = CubeDim::new_2d(LANES, PRODUCT_PLANES as u32);
    let matrix = weight.inputs * weight.outputs;
    let largest = x.extent(4).max(elements).max(matrix);
    let grid = Grid::new(client, blocks * workers, dim, largest)?;
    let source = || argument(rows.handle, "rows", rows.dtype, x.extent(config.load));
    let bias = match bias {
        Some(bias) => argument(bias, "bias", rows.dtype, weight.outputs)?,
        None => argument(weight.handle, "weight", rows.dtype, matrix)?,
    };
    let addend = match addend {
        Some(addend) => argument(addend, "addend", rows.dtype, elements)?,
        None => source()?,
    };
    // SAFETY: lengths checked.
    unsafe {
        product_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            config.load,
            config.store,
            source()?,
            argument(weight.handle, "weight", rows.dtype, matrix)?,
            bias,
            addend,
            argument(&output, "output", rows.dtype, elements)?,
            ProductLayoutLaunch::new(
                rows.rows,
                pitch,
                chunk.first,
                chunk.inputs,
                weight.outputs,
                steps,
                workers,
                weight.strides[0],
                weight.strides[1],
                biased,
            ),
            config,
        );
    }
    Ok(output)
}

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct ProductLayout {
    pub rows: usize,
    pub pitch: usize,
    /// First inner element.
    pub inner: usize,
    pub inputs: usize,
    pub outputs: usize,
    /// Multiple of [`PRODUCT_AHEAD`].
    pub steps: usize,
    pub workers: usize,
    pub down: usize,
    pub along: usize,
    /// 1 with a bias.
    pub biased: u32,
}

/// Permuted: a unit loads four neighbors for two instructions and holds four neighboring results.
#[cube(launch_unchecked, address_type = "dynamic")]
fn product_kernel<L: Size, T: Size>(
    x: &[Vector<f32, L>],
    weight: &[f32],
    bias: &[f32],
    addend: &[Vector<f32, T>],
    output: &mut [Vector<f32, T>],
    layout: ProductLayout,
    #[comptime] config: ProductConfig,
) {
    let blocks = layout.outputs.div_ceil(PRODUCT_ACROSS);
    let worker = CUBE_POS / blocks;
    let first = (CUBE_POS - worker * blocks) * PRODUCT_ACROSS;
    if worker >= layout.workers {
        terminate!();
    }
    let matrix = load_matrix(weight, first, &layout, config.room);
    let stride = layout.workers * comptime!(PRODUCT_PLANES * PRODUCT_HEIGHT);
    let mut row = (worker * PRODUCT_PLANES + UNIT_POS_Y as usize) * PRODUCT_HEIGHT;

    let mut sums = zero_sums();
    let mut loads = first_loads(x, row, &layout, config.load);
    while row < layout.rows {
        multiply_rows(x, &matrix, &mut loads, &mut sums, row, stride, &layout, config.load);
        write_rows(output, addend, bias, &mut sums, row, first, &layout, config);
        row += stride;
    }
}

#[cube]
pub(super) fn zero_sums() -> Sequence<Sums> {
    let mut sums = Sequence::<Sums>::new();
    #[unroll]
    for _ in 0..2 * TILES {
        sums.push(zeros());
    }
    sums
}

#[cube]
pub(super) fn first_loads<L: Size>(
    x: &[Vector<f32, L>],
    row: usize,
    layout: &ProductLayout,
    #[comptime] load: usize,
) -> Array<Load> {
    let mut loads = Array::<Load>::new(comptime!(PRODUCT_AHEAD * 4));
    #[unroll]
    for stage in 0..PRODUCT_AHEAD {
        read_rows(x, &mut loads, row, stage, layout, stage, load);
    }
    loads
}

/// Adds products of a plane's rows; prefetches those a `stride` on.
#[cube]
pub(super) fn multiply_rows<L: Size>(
    x: &[Vector<f32, L>],
    matrix: &Shared<[Vector<tf32, Const<4>>]>,
    loads: &mut Array<Load>,
    sums: &mut Sequence<Sums>,
    row: usize,
    stride: usize,
    layout: &ProductLayout,
    #[comptime] load: usize,
) {
    let lane = UNIT_POS_X as usize;
    let mut step = 0usize;
    while step < layout.steps {
        #[unroll]
        for stage in 0..PRODUCT_AHEAD {
            let place = (step + stage) * comptime!(TILES * LANES as usize) + lane;
            let mut factors = Sequence::<Array<Vector<tf32, Const<1>>>>::new();
            #[unroll]
            for part in 0..4usize {
                let (tile, half) = comptime!((part % 2, part / 2));
                let upper = loads[comptime!(stage * 4 + 2 * tile)];
                let lower = loads[comptime!(stage * 4 + 2 * tile + 1)];
                let mut factor = Array::<Vector<tf32, Const<1>>>::new(4usize);
                factor[0] = rounded(upper.extract(comptime!(2 * half)));
                factor[1] = rounded(lower.extract(comptime!(2 * half)));
                factor[2] = rounded(upper.extract(comptime!(2 * half + 1)));
                factor[3] = rounded(lower.extract(comptime!(2 * half + 1)));
                factors.push(factor);
            }
            let ahead = step + comptime!(stage + PRODUCT_AHEAD);
            let turn = ahead >= layout.steps;
            let next = select(turn, row + stride, row);
            let ahead = select(turn, ahead - layout.steps, ahead);
            read_rows(x, loads, next, ahead, layout, stage, load);
            #[unroll]
            for group in 0..TILES / PRODUCT_GROUP {
                let mut fours = Sequence::<Vector<tf32, Const<4>>>::new();
                #[unroll]
                for tile in 0..PRODUCT_GROUP {
                    let tile = comptime!((group * PRODUCT_GROUP + tile) * LANES as usize);
                    fours.push(matrix[place + tile]);
                }
                #[unroll]
                for part in 0..4 * PRODUCT_GROUP {
                    let (half, tile) =
                        comptime!((part / (2 * PRODUCT_GROUP), part / 2 % PRODUCT_GROUP));
                    let four = fours[tile];
                    let mut other = Array::<Vector<tf32, Const<1>>>::new(2usize);
                    other[0] = Vector::new(four.extract(comptime!(2 * half)));
                    other[1] = Vector::new(four.extract(comptime!(2 * half + 1)));
                    let row = comptime!(part % 2);
                    let sum = comptime!(row * TILES + group * PRODUCT_GROUP + tile);
                    multiply(&factors[comptime!(2 * half + row)], &other, &mut sums[sum]);
                }
            }
        }
        step += PRODUCT_AHEAD;
    }
}

/// Keeps a unit's four elements of a step together.
#[cube]
pub(super) fn load_matrix(
    weight: &[f32],
    first: usize,
    layout: &ProductLayout,
    #[comptime] room: usize,
) -> Shared<[Vector<tf32, Const<4>>]> {
    let room = comptime!(room * TILES * LANES as usize);
    let mut matrix = Shared::<[Vector<tf32, Const<4>>]>::new_slice(room);
    let length = layout.steps * comptime!(TILES * LANES as usize);
    let mut place = UNIT_POS as usize;
    // Steps are even: all units end together.
    while place < length {
        let mut fours = Array::<Load>::new(MATRIX_FLIGHT);
        #[unroll]
        for flight in 0..MATRIX_FLIGHT {
            let place = place + comptime!(flight * LANES as usize * PRODUCT_PLANES);
            let lane = place % LANES as usize;
            let tile = place / LANES as usize % TILES;
            let step = place / comptime!(LANES as usize * TILES);
            let own = lane / 4;
            let column = first + tile / 2 * 16 + own / 2 * 4 + tile % 2 * 2 + own % 2;
            let inner = step * STEP + lane % 4 * 4;
            let mut four = Load::zeroed();
            // Branchless: all loads are in flight.
            #[unroll]
            for i in 0..4usize {
                let exists = inner + i < layout.inputs && column < layout.outputs;
                let row = layout.inner + inner + i;
                let at = select(exists, row * layout.down + column * layout.along, 0usize);
                four.insert(i, select(exists, weight[at], 0.0f32));
            }
            fours[flight] = four;
        }
        #[unroll]
        for flight in 0..MATRIX_FLIGHT {
            let place = place + comptime!(flight * LANES as usize * PRODUCT_PLANES);
            matrix[place] = Vector::cast_from(fours[flight]);
        }
        place += comptime!(MATRIX_FLIGHT * LANES as usize * PRODUCT_PLANES);
    }
    sync_cube();
    matrix
}

#[cube]
fn read_rows<L: Size>(
    x: &[Vector<f32, L>],
    loads: &mut Array<Load>,
    row: usize,
    step: usize,
    layout: &ProductLayout,
    #[comptime] stage: usize,
    #[comptime] width: usize,
) {
    let lane = UNIT_POS_X as usize;
    let column = step * STEP + lane % 4 * 4;
    #[unroll]
    for part in 0..4usize {
        let own = min(row + comptime!(part * 8) + lane / 4, layout.rows - 1);
        let start = own * layout.pitch + layout.inner;
        let mut load = Load::zeroed();
        // Branchless: selects zero past the end.
        #[unroll]
        for piece in 0..comptime!(4 / width) {
            let at = column + comptime!(piece * width);
            let own = x[(start + select(at < layout.inputs, at, 0usize)) / width];
            #[unroll]
            for i in 0..width {
                let value = select(at + i < layout.inputs, own.extract(i), 0.0f32);
                load.insert(comptime!(piece * width + i), value);
            }
        }
        loads[comptime!(stage * 4 + part)] = load;
    }
}

#[cube]
fn write_rows<T: Size>(
    output: &mut [Vector<f32, T>],
    addend: &[Vector<f32, T>],
    bias: &[f32],
    sums: &mut Sequence<Sums>,
    row: usize,
    first: usize,
    layout: &ProductLayout,
    #[comptime] config: ProductConfig,
) {
    let lane = UNIT_POS_X as usize;
    let width = comptime!(config.store);
    #[unroll]
    for pair in 0..TILES / 2 {
        let start = first + comptime!(pair * 16) + lane % 4 * 4;
        #[unroll]
        for piece in 0..comptime!(4 / width) {
            let column = start + comptime!(piece * width);
            if config.whole || column < layout.outputs {
                let mut shift = Vector::<f32, T>::zeroed();
                #[unroll]
                for i in 0..width {
                    shift.insert(i, select(layout.biased == 1, bias[column + i], 0.0f32));
                }
                #[unroll]
                for part in 0..4usize {
                    let (tile, half) = comptime!((part / 2, part % 2));
                    let own = row + comptime!(part * 8) + lane / 4;
                    let mut values = shift;
                    #[unroll]
                    for i in 0..width {
                        let at = comptime!(piece * width + i);
                        let side = comptime!(tile * TILES + 2 * pair + at / 2);
                        let sum = sums[side][half].extract(comptime!(at % 2));
                        values.insert(i, values.extract(i) + sum);
                    }
                    if own < layout.rows {
                        let place = (own * layout.outputs + column) / width;
                        if comptime!(config.adds) {
                            values += addend[place];
                        }
                        output[place] = values;
                    }
                }
            }
        }
    }
    #[unroll]
    for tile in 0..2 * TILES {
        clear(&mut sums[tile]);
    }
}
