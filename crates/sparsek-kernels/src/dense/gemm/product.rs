//! Rows times a small matrix: the matrix stays in shared memory, rows stream through registers.
//!
//! ```text
//! each cube: load 128 columns of the matrix, rounded to TF32
//! each plane, 32 rows at a time:
//!     for each step of 16 inner elements: prefetch 2 steps ahead; sums += rows · matrix
//!     write sums + bias
//! ```

use cubecl::{prelude::*, server::Handle};

use super::split;
use crate::{
    dense::{
        tuning::{PRODUCT_AHEAD, PRODUCT_GROUP},
        types::{DenseRows, Weight, tensor_core_refusal},
    },
    device::multiprocessors,
    error::KernelError,
    launch::{Grid, allocate, argument},
    primitives::mma::{LANES, Load, Sums, clear, has_tf32, multiply, rounded, zeros},
};

const PLANES: usize = 8;
/// Two tiles of 16 rows share elements from shared memory.
const HEIGHT: usize = 32;
const ACROSS: usize = 128;
const TILES: usize = ACROSS / 8;
/// 4 inner elements for each of four units.
const STEP: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ProductConfig {
    inputs: usize,
    outputs: usize,
    /// A multiple of [`PRODUCT_AHEAD`].
    steps: usize,
    biased: bool,
}

impl Weight<'_> {
    fn steps(&self) -> usize {
        self.inputs.div_ceil(STEP).next_multiple_of(PRODUCT_AHEAD)
    }

    /// Whether [`product`] can multiply these.
    pub fn fits(&self, client: &Client, x: &DenseRows) -> bool {
        self.refusal(client, x).is_none()
    }

    fn refusal(&self, client: &Client, x: &DenseRows) -> Option<String> {
        let Self {
            inputs, outputs, ..
        } = *self;
        if inputs != x.width {
            let width = x.width;
            Some(format!(
                "rows of {width} elements and a matrix of {inputs} rows"
            ))
        } else if outputs == 0 || !outputs.is_multiple_of(4) {
            Some(format!(
                "results of {outputs} elements that cannot be written by four"
            ))
        } else if has_tf32(client) {
            let shared = self.steps() * STEP * ACROSS * size_of::<f32>();
            let limit = client.properties().hardware.max_shared_memory_size;
            (shared > limit)
                .then(|| {
                    format!(
                        "the matrix needs {shared} bytes of shared memory; the limit is {limit}"
                    )
                })
                .or_else(|| tensor_core_refusal(&[x]))
        } else {
            tensor_core_refusal(&[x]).or_else(|| split::product_refusal(client, x, self))
        }
    }
}

/// Multiplies rows on tensor cores: `x · weight + bias`, f32 `[rows, outputs]`.
///
/// Accumulates in f32. Rounds factors to TF32; without it, as on Vulkan, to two bf16, about 16
/// bits, where infinities may give NaN. Deterministic. Reads rows once per 128 outputs.
///
/// Errors: as [`column_sums`](crate::dense::column_sums), and unless [`Weight::fits`].
pub fn product(
    client: &Client,
    x: &DenseRows,
    weight: &Weight,
    bias: Option<&Handle>,
) -> Result<Handle, KernelError> {
    if let Some(reason) = weight.refusal(client, x) {
        return Err(KernelError::Routine {
            routine: "product",
            reason,
        });
    }
    if !has_tf32(client) {
        return split::product(client, x, weight, bias);
    }
    let elements = x.rows * weight.outputs;
    let output = allocate(client, "output", elements, x.dtype)?;
    if elements == 0 {
        return Ok(output);
    }
    let cubes = multiprocessors(client);
    let blocks = weight.outputs.div_ceil(ACROSS);
    let tiles = x.rows.div_ceil(HEIGHT * PLANES);
    let workers = (cubes / blocks).clamp(1, tiles);
    let config = ProductConfig {
        inputs: weight.inputs,
        outputs: weight.outputs,
        steps: weight.steps(),
        biased: bias.is_some(),
    };
    let dim = CubeDim::new_2d(LANES, PLANES as u32);
    let grid = Grid::new(client, blocks * workers, dim, x.elements().max(elements))?;
    let matrix = weight.inputs * weight.outputs;
    let bias = match bias {
        Some(bias) => argument(bias, "bias", x.dtype, weight.outputs)?,
        None => argument(weight.handle, "weight", x.dtype, matrix)?,
    };
    // SAFETY: `argument` checks lengths.
    unsafe {
        product_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(x.handle, "rows", x.dtype, x.elements())?,
            argument(weight.handle, "weight", x.dtype, matrix)?,
            bias,
            argument(&output, "output", x.dtype, elements)?,
            x.rows,
            workers,
            weight.strides[0],
            weight.strides[1],
            config,
        );
    }
    Ok(output)
}

/// Permutes inner elements and columns: a unit loads four neighbors of a row for two
/// instructions, and holds four neighboring results.
#[cube(launch_unchecked, address_type = "dynamic")]
fn product_kernel(
    x: &[Load],
    weight: &[f32],
    bias: &[f32],
    output: &mut [Load],
    rows: usize,
    workers: usize,
    down: usize,
    along: usize,
    #[comptime] config: ProductConfig,
) {
    let blocks = comptime!(config.outputs.div_ceil(ACROSS));
    let worker = CUBE_POS / blocks;
    let first = (CUBE_POS - worker * blocks) * ACROSS;
    if worker >= workers {
        terminate!();
    }
    let matrix = load_matrix(weight, first, down, along, config);
    let lane = UNIT_POS_X as usize;
    let stride = workers * comptime!(PLANES * HEIGHT);
    let mut row = (worker * PLANES + UNIT_POS_Y as usize) * HEIGHT;

    let mut sums = Sequence::<Sums>::new();
    #[unroll]
    for _ in 0..2 * TILES {
        sums.push(zeros());
    }
    let mut loads = Array::<Load>::new(comptime!(PRODUCT_AHEAD * 4));
    #[unroll]
    for stage in 0..PRODUCT_AHEAD {
        read_rows(x, &mut loads, row, stage, rows, stage, config);
    }
    while row < rows {
        let mut step = 0usize;
        while step < config.steps {
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
                let turn = ahead >= config.steps;
                let next = select(turn, row + stride, row);
                let ahead = select(turn, ahead - config.steps, ahead);
                read_rows(x, &mut loads, next, ahead, rows, stage, config);
                // Interleaves sums, so that none waits for its last instruction.
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
        write_rows(output, bias, &mut sums, row, first, rows, config);
        row += stride;
    }
}

/// A unit's four elements of a step and tile are neighbors.
#[cube]
fn load_matrix(
    weight: &[f32],
    first: usize,
    down: usize,
    along: usize,
    #[comptime] config: ProductConfig,
) -> Shared<[Vector<tf32, Const<4>>]> {
    let length = comptime!(config.steps * TILES * LANES as usize);
    let mut matrix = Shared::<[Vector<tf32, Const<4>>]>::new_slice(length);
    let mut place = UNIT_POS as usize;
    while place < length {
        let lane = place % LANES as usize;
        let tile = place / LANES as usize % TILES;
        let step = place / comptime!(LANES as usize * TILES);
        let own = lane / 4;
        let column = first + tile / 2 * 16 + own / 2 * 4 + tile % 2 * 2 + own % 2;
        let inner = step * STEP + lane % 4 * 4;
        let mut four = Load::zeroed();
        #[unroll]
        for i in 0..4usize {
            if inner + i < config.inputs && column < config.outputs {
                four.insert(i, weight[(inner + i) * down + column * along]);
            }
        }
        matrix[place] = Vector::cast_from(four);
        place += comptime!(LANES as usize * PLANES);
    }
    sync_cube();
    matrix
}

/// Past the end, reloads the last row.
#[cube]
fn read_rows(
    x: &[Load],
    loads: &mut Array<Load>,
    row: usize,
    step: usize,
    rows: usize,
    #[comptime] stage: usize,
    #[comptime] config: ProductConfig,
) {
    let lane = UNIT_POS_X as usize;
    let across = comptime!(config.inputs / 4);
    let column = step * comptime!(STEP / 4) + lane % 4;
    let whole = comptime!(config.steps * STEP == config.inputs);
    #[unroll]
    for part in 0..4usize {
        let own = min(row + comptime!(part * 8) + lane / 4, rows - 1);
        let mut load = Load::zeroed();
        if whole || column < across {
            load = x[own * across + column];
        }
        loads[comptime!(stage * 4 + part)] = load;
    }
}

#[cube]
fn write_rows(
    output: &mut [Load],
    bias: &[f32],
    sums: &mut Sequence<Sums>,
    row: usize,
    first: usize,
    rows: usize,
    #[comptime] config: ProductConfig,
) {
    let lane = UNIT_POS_X as usize;
    let across = comptime!(config.outputs / 4);
    #[unroll]
    for pair in 0..TILES / 2 {
        let column = first / 4 + comptime!(pair * 4) + lane % 4;
        let whole = comptime!(config.outputs.is_multiple_of(ACROSS));
        if whole || column < across {
            let mut shift = Load::zeroed();
            if comptime!(config.biased) {
                #[unroll]
                for i in 0..4usize {
                    shift.insert(i, bias[column * 4 + i]);
                }
            }
            #[unroll]
            for part in 0..4usize {
                let (tile, half) = comptime!((part / 2, part % 2));
                let own = row + comptime!(part * 8) + lane / 4;
                let left = sums[comptime!(tile * TILES + 2 * pair)][half];
                let right = sums[comptime!(tile * TILES + 2 * pair + 1)][half];
                let mut four = Load::zeroed();
                four.insert(0usize, left.extract(0usize));
                four.insert(1usize, left.extract(1usize));
                four.insert(2usize, right.extract(0usize));
                four.insert(3usize, right.extract(1usize));
                if own < rows {
                    output[own * across + column] = four + shift;
                }
            }
        }
    }
    #[unroll]
    for tile in 0..2 * TILES {
        clear(&mut sums[tile]);
    }
}
