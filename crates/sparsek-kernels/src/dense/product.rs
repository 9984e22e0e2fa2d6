//! Rows times a small matrix, on tensor cores: the matrix stays in shared memory, rows stream through registers.

use super::refusal;
use crate::device::multiprocessors;
use crate::primitives::mma::LANES;
use crate::primitives::mma::Load;
use crate::primitives::mma::Sums;
use crate::primitives::mma::clear;
use crate::primitives::mma::has_tf32;
use crate::primitives::mma::multiply;
use crate::primitives::mma::rounded;
use crate::primitives::mma::zeros;
use cubecl::{prelude::*, server::Handle};

use super::Rows;
use super::split;
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;

/// Planes of a cube.
const PLANES: usize = 8;
/// Rows that a plane multiplies at a time: two tiles of 16, so that an element from shared memory serves both.
const HEIGHT: usize = 32;
/// Columns of the result that a cube computes, in tiles of 8.
const ACROSS: usize = 128;
const TILES: usize = ACROSS / 8;
/// Inner elements of a step: a load of 4 for each of four units that share a row.
const STEP: usize = 16;
/// Steps whose loads are under way.
const AHEAD: usize = 2;
/// Tiles whose columns of the matrix are in registers.
const GROUP: usize = 4;

/// A matrix that rows are multiplied with, read with strides.
#[derive(Clone, Copy, Debug)]
pub struct Weight<'a> {
    /// f32.
    pub handle: &'a Handle,
    /// Rows: elements of the rows that it is multiplied with.
    pub inputs: usize,
    /// Columns: elements of a result.
    pub outputs: usize,
    /// Elements from a row, and from a column, to the next.
    pub strides: [usize; 2],
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Blueprint {
    inputs: usize,
    outputs: usize,
    /// Steps over the inner elements, a multiple of those that are under way.
    steps: usize,
    biased: bool,
}

impl Weight<'_> {
    fn steps(&self) -> usize {
        self.inputs.div_ceil(STEP).next_multiple_of(AHEAD)
    }

    /// Whether [`product`] serves these.
    pub fn fits(&self, client: &Client, x: &Rows) -> bool {
        self.refusal(client, x).is_none()
    }

    fn refusal(&self, client: &Client, x: &Rows) -> Option<String> {
        let Self {
            inputs, outputs, ..
        } = *self;
        if inputs != x.width {
            let width = x.width;
            Some(format!(
                "rows of {width} elements, a matrix of {inputs} rows"
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
                    format!("the matrix takes {shared} bytes of shared memory, there are {limit}")
                })
                .or_else(|| refusal(&[x]))
        } else {
            refusal(&[x]).or_else(|| split::product_refusal(client, x, self))
        }
    }
}

/// `x · weight + bias`, f32 `[rows, outputs]`, on tensor cores, which add in f32. They take factors rounded to TF32; where they do not, as by
/// Vulkan, factors as sums of two bf16, whose products are rounded to about 16 bits.
///
/// Deterministic. Rows are read once for each 128 outputs. Infinite factors may give NaN where they are sums of two.
///
/// # Errors
///
/// [`KernelError`] where [`Weight::fits`] is false, and for buffers that are too short, too large or need wider addresses.
pub fn product(
    client: &Client,
    x: &Rows,
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
    let blueprint = Blueprint {
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
    // SAFETY: `argument` checks the lengths.
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
            blueprint,
        );
    }
    Ok(output)
}

/// A plane takes 32 rows at a time, and of each product 128 columns.
///
/// The order of inner elements and of columns is free, so a unit loads four neighbouring elements of a row, which are its places in two
/// instructions, and the columns of the matrix are laid so that it holds four neighbouring elements of the result.
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
    #[comptime] blueprint: Blueprint,
) {
    let blocks = comptime!(blueprint.outputs.div_ceil(ACROSS));
    let worker = CUBE_POS / blocks;
    let first = (CUBE_POS - worker * blocks) * ACROSS;
    if worker >= workers {
        terminate!();
    }
    let matrix = load_matrix(weight, first, down, along, blueprint);
    let lane = UNIT_POS_X as usize;
    let stride = workers * comptime!(PLANES * HEIGHT);
    let mut row = (worker * PLANES + UNIT_POS_Y as usize) * HEIGHT;

    let mut sums = Sequence::<Sums>::new();
    #[unroll]
    for _ in 0..2 * TILES {
        sums.push(zeros());
    }
    let mut loads = Array::<Load>::new(comptime!(AHEAD * 4));
    #[unroll]
    for stage in 0..AHEAD {
        read_rows(x, &mut loads, row, stage, rows, stage, blueprint);
    }
    while row < rows {
        let mut step = 0usize;
        while step < blueprint.steps {
            #[unroll]
            for stage in 0..AHEAD {
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
                // The rest of these rows, or the first elements of the next.
                let ahead = step + comptime!(stage + AHEAD);
                let turn = ahead >= blueprint.steps;
                let next = select(turn, row + stride, row);
                let ahead = select(turn, ahead - blueprint.steps, ahead);
                read_rows(x, &mut loads, next, ahead, rows, stage, blueprint);
                // The same sum comes again after as many others as its instruction takes.
                #[unroll]
                for group in 0..TILES / GROUP {
                    let mut fours = Sequence::<Vector<tf32, Const<4>>>::new();
                    #[unroll]
                    for tile in 0..GROUP {
                        let tile = comptime!((group * GROUP + tile) * LANES as usize);
                        fours.push(matrix[place + tile]);
                    }
                    #[unroll]
                    for part in 0..4 * GROUP {
                        let (half, tile) = comptime!((part / (2 * GROUP), part / 2 % GROUP));
                        let four = fours[tile];
                        let mut other = Array::<Vector<tf32, Const<1>>>::new(2usize);
                        other[0] = Vector::new(four.extract(comptime!(2 * half)));
                        other[1] = Vector::new(four.extract(comptime!(2 * half + 1)));
                        let row = comptime!(part % 2);
                        let sum = comptime!(row * TILES + group * GROUP + tile);
                        multiply(&factors[comptime!(2 * half + row)], &other, &mut sums[sum]);
                    }
                }
            }
            step += AHEAD;
        }
        write_rows(output, bias, &mut sums, row, first, rows, blueprint);
        row += stride;
    }
}

/// 128 columns of the matrix, rounded: for each step and tile, the four elements of each unit beside one another.
#[cube]
fn load_matrix(
    weight: &[f32],
    first: usize,
    down: usize,
    along: usize,
    #[comptime] blueprint: Blueprint,
) -> Shared<[Vector<tf32, Const<4>>]> {
    let length = comptime!(blueprint.steps * TILES * LANES as usize);
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
            if inner + i < blueprint.inputs && column < blueprint.outputs {
                four.insert(i, weight[(inner + i) * down + column * along]);
            }
        }
        matrix[place] = Vector::cast_from(four);
        place += comptime!(LANES as usize * PLANES);
    }
    sync_cube();
    matrix
}

/// A step's elements of 32 rows, four rows to a unit; of rows past the end those of the last.
#[cube]
fn read_rows(
    x: &[Load],
    loads: &mut Array<Load>,
    row: usize,
    step: usize,
    rows: usize,
    #[comptime] stage: usize,
    #[comptime] blueprint: Blueprint,
) {
    let lane = UNIT_POS_X as usize;
    let across = comptime!(blueprint.inputs / 4);
    let column = step * comptime!(STEP / 4) + lane % 4;
    let whole = comptime!(blueprint.steps * STEP == blueprint.inputs);
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

/// Writes what 32 rows have come to, and begins anew.
#[cube]
fn write_rows(
    output: &mut [Load],
    bias: &[f32],
    sums: &mut Sequence<Sums>,
    row: usize,
    first: usize,
    rows: usize,
    #[comptime] blueprint: Blueprint,
) {
    let lane = UNIT_POS_X as usize;
    let across = comptime!(blueprint.outputs / 4);
    #[unroll]
    for pair in 0..TILES / 2 {
        let column = first / 4 + comptime!(pair * 4) + lane % 4;
        let whole = comptime!(blueprint.outputs.is_multiple_of(ACROSS));
        if whole || column < across {
            let mut shift = Load::zeroed();
            if comptime!(blueprint.biased) {
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
