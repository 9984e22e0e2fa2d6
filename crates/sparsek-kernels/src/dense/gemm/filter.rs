//! [`filtered_columns`], whose products never reach memory.
//!
//! ```text
//! each cube: load 128 columns of the matrix, rounded to TF32
//!     each plane, 32 rows at a time:
//!         sums <- bias; sums += rows · matrix, as `product`
//!         stage row and column of each sum within the limit in shared memory
//!         if enough are staged: append them to the lists of their rows
//! ```

use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
    server::Handle,
};

use super::product::{
    ProductLayout, ProductLayoutLaunch, STEP_BYTES, TILES, blocks_and_workers, first_loads,
    load_matrix, multiply_rows, steps, zero_sums,
};
use crate::{
    dense::{
        tuning::{FILTER_STAGED, PRODUCT_ACROSS, PRODUCT_HEIGHT, PRODUCT_PLANES},
        types::{PitchedRows, Weight, dtype_refusal},
    },
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
    primitives::mma::{LANES, Sums, has_tf32},
};

const U32: ElemType = ElemType::UInt(UIntKind::U32);
/// A staged word holds row and cube column.
const COLUMN_BITS: u32 = (PRODUCT_ACROSS as u32).ilog2();
const MAX_ROWS: usize = 1 << (u32::BITS - COLUMN_BITS);
const OTHER_BYTES: usize =
    (PRODUCT_PLANES * (FILTER_STAGED + 1) + PRODUCT_ACROSS) * size_of::<f32>();

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FilterConfig {
    /// Steps that fit shared memory.
    room: usize,
    /// Elements per load.
    load: usize,
}

/// Columns per row, in no order.
pub struct RowLists {
    /// u32 `[rows, capacity]`; undefined past a row's count.
    pub columns: Handle,
    /// u32 `[rows]`; may exceed the capacity.
    pub counts: Handle,
}

fn room(client: &Client) -> usize {
    let limit = client.properties().hardware.max_shared_memory_size;
    limit.saturating_sub(OTHER_BYTES) / STEP_BYTES
}

/// Whether [`filtered_columns`] serves rows of `inputs` elements.
pub fn filters_columns(client: &Client, inputs: usize) -> bool {
    has_tf32(client) && inputs > 0 && steps(inputs) <= room(client)
}

fn refusal(client: &Client, x: &PitchedRows, weight: &Weight, capacity: usize) -> Option<String> {
    let Weight { inputs, outputs, .. } = *weight;
    let x = &x.rows;
    if inputs != x.width {
        Some(format!("rows of {} elements and a matrix of {inputs} rows", x.width))
    } else if !has_tf32(client) {
        Some("the device lacks TF32".into())
    } else if !filters_columns(client, inputs) {
        Some(format!("rows of {inputs} elements exceed shared memory"))
    } else if x.rows > MAX_ROWS {
        Some(format!("{} rows; the limit is {MAX_ROWS}", x.rows))
    } else if outputs == 0 || outputs > u32::MAX as usize {
        Some(format!("results of {outputs} elements"))
    } else if capacity >= u32::MAX as usize || x.rows.checked_mul(capacity).is_none() {
        Some(format!("lists of {capacity} columns"))
    } else {
        dtype_refusal(&[x])
    }
}

/// Lists, per row of `x`, the columns where `x · weight + bias` ≤ the row's limit.
///
/// `bias`: f32 `[outputs]`, `limits`: f32 `[rows]`; a NaN limit lists none. Products round as
/// [`product`](crate::dense::product()) with TF32. Counts and complete lists are deterministic, but
/// for their order.
///
/// Fails for differing shapes, and unless [`filters_columns`].
pub fn filtered_columns(
    client: &Client,
    x: &PitchedRows,
    weight: &Weight,
    bias: &Handle,
    limits: &Handle,
    capacity: usize,
) -> Result<RowLists, KernelError> {
    if let Some(reason) = refusal(client, x, weight, capacity) {
        return Err(KernelError::Routine { routine: "filtered columns", reason });
    }
    let PitchedRows { rows, pitch } = *x;
    let listed = rows.rows * capacity;
    let columns = allocate(client, "columns", listed, U32)?;
    let counts = allocate(client, "counts", rows.rows, U32)?;
    fill_zero(client, &counts, U32, rows.rows)?;
    if rows.rows == 0 {
        return Ok(RowLists { columns, counts });
    }
    let [blocks, workers] = blocks_and_workers(client, rows.rows, weight);
    let config = FilterConfig { room: room(client), load: x.load_width() };
    let dim = CubeDim::new_2d(LANES, PRODUCT_PLANES as u32);
    let matrix = weight.inputs * weight.outputs;
    let largest = x.extent(4).max(listed).max(matrix);
    let grid = Grid::new(client, blocks * workers, dim, largest)?;
    // SAFETY: lengths checked; the kernel writes below the capacity.
    unsafe {
        filter_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            config.load,
            argument(rows.handle, "rows", rows.dtype, x.extent(config.load))?,
            argument(weight.handle, "weight", rows.dtype, matrix)?,
            argument(bias, "bias", rows.dtype, weight.outputs)?,
            argument(limits, "limits", rows.dtype, rows.rows)?,
            ListsLaunch::new(
                argument(&counts, "counts", U32, rows.rows)?,
                argument(&columns, "columns", U32, listed)?,
                capacity as u32,
            ),
            ProductLayoutLaunch::new(
                rows.rows,
                pitch,
                0,
                weight.inputs,
                weight.outputs,
                steps(weight.inputs),
                workers,
                weight.strides[0],
                weight.strides[1],
                1,
            ),
            config,
        );
    }
    Ok(RowLists { columns, counts })
}

#[derive(CubeType, CubeLaunch)]
struct Lists {
    counts: &'static [Atomic<u32>],
    columns: &'static mut [u32],
    capacity: u32,
}

#[cube]
impl Lists {
    fn append(&mut self, row: usize, column: u32) {
        // Spares the atomics of full lists.
        if self.counts[row].load() <= self.capacity {
            let place = self.counts[row].fetch_add(1u32);
            if place < self.capacity {
                self.columns[row * self.capacity as usize + place as usize] = column;
            }
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn filter_kernel<L: Size>(
    x: &[Vector<f32, L>],
    weight: &[f32],
    bias: &[f32],
    limits: &[f32],
    lists: &mut Lists,
    layout: ProductLayout,
    #[comptime] config: FilterConfig,
) {
    let blocks = layout.outputs.div_ceil(PRODUCT_ACROSS);
    let worker = CUBE_POS / blocks;
    let first = (CUBE_POS - worker * blocks) * PRODUCT_ACROSS;
    if worker >= layout.workers {
        terminate!();
    }
    let mut staged = Staged::new(first as u32);
    let mut shifts = Shared::<[f32]>::new_slice(PRODUCT_ACROSS);
    if UNIT_POS < comptime!(PRODUCT_ACROSS as u32) {
        let column = first + UNIT_POS as usize;
        shifts[UNIT_POS as usize] = bias[min(column, layout.outputs - 1)];
    }
    // Waits for all units.
    let matrix = load_matrix(weight, first, &layout, config.room);
    let stride = layout.workers * comptime!(PRODUCT_PLANES * PRODUCT_HEIGHT);
    let mut row = (worker * PRODUCT_PLANES + UNIT_POS_Y as usize) * PRODUCT_HEIGHT;

    let mut sums = zero_sums();
    let mut loads = first_loads(x, row, &layout, config.load);
    while row < layout.rows {
        start_sums(&mut sums, &shifts);
        multiply_rows(x, &matrix, &mut loads, &mut sums, row, stride, &layout, config.load);
        stage_sums(&sums, limits, row, &layout, &mut staged, lists);
        staged.append(lists, comptime!(FILTER_STAGED as u32 / 2));
        row += stride;
    }
    staged.append(lists, 0u32);
}

/// Four neighboring columns of a unit start at twice those of two tiles.
#[cube]
fn start_sums(sums: &mut Sequence<Sums>, shifts: &Shared<[f32]>) {
    let lane = UNIT_POS_X as usize;
    #[unroll]
    for side in 0..TILES {
        let column = comptime!(side / 2 * 16 + side % 2 * 2) + lane % 4 * 4;
        let mut two = Vector::<f32, Const<2>>::zeroed();
        two.insert(0usize, shifts[column]);
        two.insert(1usize, shifts[column + 1]);
        #[unroll]
        for tile in 0..2usize {
            fill(&mut sums[comptime!(tile * TILES + side)], two);
        }
    }
}

#[cube]
fn fill(sum: &mut Sums, two: Vector<f32, Const<2>>) {
    sum[0] = two;
    sum[1] = two;
}

/// Stages a plane's sums within limits.
#[cube]
fn stage_sums(
    sums: &Sequence<Sums>,
    limits: &[f32],
    row: usize,
    layout: &ProductLayout,
    staged: &mut Staged,
    lists: &mut Lists,
) {
    let lane = UNIT_POS_X as usize;
    #[unroll]
    for part in 0..4usize {
        let (tile, half) = comptime!((part / 2, part % 2));
        let own = row + comptime!(part * 8) + lane / 4;
        let limit = limits[min(own, layout.rows - 1)];
        let mut least = sums[comptime!(tile * TILES)][half].extract(0usize);
        #[unroll]
        for side in 0..TILES {
            let two = sums[comptime!(tile * TILES + side)][half];
            least = min(least, min(two.extract(0usize), two.extract(1usize)));
        }
        // Mostly none. Few instructions: the cache is small.
        if own < layout.rows && least <= limit {
            let mut found = 0u32;
            #[unroll]
            for side in 0..TILES {
                #[unroll]
                for i in 0..2usize {
                    let sum = sums[comptime!(tile * TILES + side)][half].extract(i);
                    found |= select(sum <= limit, comptime!(1u32 << (2 * side + i)), 0u32);
                }
            }
            while found != 0 {
                let bit = found.trailing_zeros();
                found &= found - 1;
                let column = bit / 4 * 16 + UNIT_POS_X % 4 * 4 + bit % 4;
                if ((staged.first + column) as usize) < layout.outputs {
                    staged.add(own, column, lists);
                }
            }
        }
    }
}

/// Sums within limits, not yet listed.
#[derive(CubeType)]
struct Staged {
    /// Row and column, per plane.
    words: Shared<[u32]>,
    counts: Shared<[Atomic<u32>]>,
    /// Cube's first column.
    first: u32,
}

#[cube]
impl Staged {
    fn new(first: u32) -> Staged {
        let words = Shared::<[u32]>::new_slice(comptime!(PRODUCT_PLANES * FILTER_STAGED));
        let counts = Shared::<[Atomic<u32>]>::new_slice(PRODUCT_PLANES);
        if UNIT_POS < comptime!(PRODUCT_PLANES as u32) {
            counts[UNIT_POS as usize].store(0u32);
        }
        Staged { words, counts, first }
    }

    fn add(&mut self, row: usize, column: u32, lists: &mut Lists) {
        let plane = UNIT_POS_Y as usize;
        let slot = self.counts[plane].fetch_add(1u32) as usize;
        if slot < FILTER_STAGED {
            self.words[plane * FILTER_STAGED + slot] = ((row as u32) << COLUMN_BITS) + column;
        } else {
            lists.append(row, self.first + column);
        }
    }

    /// Appends the plane's sums to lists if more than `kept`.
    fn append(&mut self, lists: &mut Lists, kept: u32) {
        let plane = UNIT_POS_Y as usize;
        sync_plane();
        let count = self.counts[plane].load();
        if count > kept {
            let mut place = UNIT_POS_X as usize;
            while place < min(count as usize, FILTER_STAGED) {
                let word = self.words[plane * FILTER_STAGED + place];
                let column = self.first + word % comptime!(PRODUCT_ACROSS as u32);
                lists.append((word >> COLUMN_BITS) as usize, column);
                place += comptime!(LANES as usize);
            }
            sync_plane();
            if UNIT_POS_X == 0 {
                self.counts[plane].store(0u32);
            }
        }
        sync_plane();
    }
}
