//! Rows stream, the result stays in registers.
//!
//! ```text
//! each cube: a block of the result, and every n-th step of 16 rows:
//!     prefetch the next step; round this one to TF32 in shared memory; sums += xᵀ · y
//! add the sums of all cubes of a block in order
//! ```

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::panels;
use crate::{
    dense::{
        column_sum::reduce_rows,
        tuning::{INNER_AHEAD, INNER_LEFT_PLANES, INNER_PLANES, INNER_SIDE},
        types::{DenseRows, PitchedRows, dtype_refusal},
    },
    device::multiprocessors,
    error::KernelError,
    launch::{Grid, allocate, argument},
    primitives::mma::{LANES, Load, Sums, has_tf32, multiply, zeros},
};

const LEFT: usize = INNER_SIDE * INNER_LEFT_PLANES;
const RIGHT: usize = INNER_SIDE * INNER_PLANES / INNER_LEFT_PLANES;
const LEFT_TILES: usize = INNER_SIDE / 16;
const RIGHT_TILES: usize = INNER_SIDE / 8;
const UNITS: usize = LANES as usize * INNER_PLANES;
const STEP: usize = 16;
const BLOCK: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct InnerProductConfig {
    loads: [usize; 2],
    store: usize,
}

/// Checks support by [`inner_product`].
pub fn inner_fits(client: &Client, x: &PitchedRows, y: &PitchedRows) -> bool {
    inner_refusal(client, x, y).is_none()
}

fn inner_refusal(client: &Client, x: &PitchedRows, y: &PitchedRows) -> Option<String> {
    let contiguous = [x, y].iter().all(|side| side.pitch == side.rows.width);
    let (x, y) = (&x.rows, &y.rows);
    let shared = INNER_AHEAD * STEP * (LEFT + RIGHT) * size_of::<f32>();
    let limit = client.properties().hardware.max_shared_memory_size;
    if x.rows != y.rows {
        Some(format!("{} rows and {} rows", x.rows, y.rows))
    } else if !has_tf32(client) && !contiguous {
        Some("rows apart".into())
    } else if !has_tf32(client) {
        dtype_refusal(&[x, y]).or_else(|| panels::refusal(client))
    } else if shared > limit {
        Some(format!("it needs {shared} bytes of shared memory; the limit is {limit}"))
    } else {
        dtype_refusal(&[x, y])
    }
}

/// Computes `xᵀ · y`: f32 `[x.width, y.width]`, as accurate as
/// [`product`](crate::dense::product()).
///
/// Scratch: up to four results per multiprocessor. Fails unless [`inner_fits`].
pub fn inner_product(
    client: &Client,
    x: &PitchedRows,
    y: &PitchedRows,
) -> Result<Handle, KernelError> {
    if let Some(reason) = inner_refusal(client, x, y) {
        return Err(KernelError::Routine { routine: "inner product", reason });
    }
    if !has_tf32(client) {
        return panels::inner_product(client, &x.rows, &y.rows);
    }
    let sides = [x, y];
    let (x, y) = (&x.rows, &y.rows);
    let cubes = multiprocessors(client);
    let blocks = x.width.div_ceil(LEFT) * y.width.div_ceil(RIGHT);
    let most = x.rows.div_ceil(STEP);
    let workers = if most == 0 { 0 } else { (cubes / blocks).clamp(1, most) };
    let elements = x.width * y.width;
    let sums = DenseRows {
        handle: &allocate(client, "sums", workers * elements, x.dtype)?,
        dtype: x.dtype,
        rows: workers,
        width: elements,
    };
    if workers > 0 {
        launch(client, sides, &sums, blocks)?;
    }
    reduce_rows(client, &sums, x.dtype, x.dtype)
}

fn launch(
    client: &Client,
    sides: [&PitchedRows; 2],
    sums: &DenseRows,
    blocks: usize,
) -> Result<(), KernelError> {
    let [x, y] = sides.map(|side| &side.rows);
    let config = InnerProductConfig {
        loads: sides.map(PitchedRows::load_width),
        store: if y.width.is_multiple_of(2) { 2 } else { 1 },
    };
    let dim = CubeDim::new_2d(LANES, INNER_PLANES as u32);
    let [x_extent, y_extent] = [0, 1].map(|side| sides[side].extent(config.loads[side]));
    let elements = x_extent.max(y_extent).max(sums.elements());
    let grid = Grid::new(client, blocks * sums.rows, dim, elements)?;
    let dtype: ElemType = x.dtype;
    // SAFETY: lengths checked.
    unsafe {
        inner_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            config.loads[0],
            config.loads[1],
            config.store,
            argument(x.handle, "x", dtype, x_extent)?,
            argument(y.handle, "y", dtype, y_extent)?,
            argument(sums.handle, "sums", dtype, sums.elements())?,
            InnerLayoutLaunch::new(
                x.rows,
                x.width,
                y.width,
                sides[0].pitch,
                sides[1].pitch,
                sums.rows,
            ),
            config,
        );
    }
    Ok(())
}

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct InnerLayout {
    rows: usize,
    x_width: usize,
    y_width: usize,
    x_pitch: usize,
    y_pitch: usize,
    workers: usize,
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn inner_kernel<L: Size, R: Size, T: Size>(
    x: &[Vector<f32, L>],
    y: &[Vector<f32, R>],
    sums: &mut [Vector<f32, T>],
    layout: InnerLayout,
    #[comptime] config: InnerProductConfig,
) {
    let (rows, workers) = (layout.rows, layout.workers);
    let (x_width, y_width) = (layout.x_width, layout.y_width);
    let across = x_width.div_ceil(LEFT);
    let blocks = across * y_width.div_ceil(RIGHT);
    let worker = CUBE_POS / blocks;
    if worker >= workers {
        terminate!();
    }
    let block = CUBE_POS - worker * blocks;
    let left = block % across * LEFT;
    let right = block / across * RIGHT;
    let stride = workers * STEP;
    let mut row = worker * STEP;

    let mut tiles = Sequence::<Sums>::new();
    #[unroll]
    for _ in 0..LEFT_TILES * RIGHT_TILES {
        tiles.push(zeros());
    }
    let mut x_step = Side::new(left, x_width, layout.x_pitch, LEFT, config.loads[0], true);
    let mut y_step = Side::new(right, y_width, layout.y_pitch, RIGHT, config.loads[1], false);
    #[unroll]
    for turn in 0..INNER_AHEAD {
        x_step.read(x, row + turn * stride, rows, turn);
        y_step.read(y, row + turn * stride, rows, turn);
    }
    x_step.keep(0usize);
    y_step.keep(0usize);
    sync_cube();
    while row < rows {
        #[unroll]
        for turn in 0..INNER_AHEAD {
            let ahead = row + stride * INNER_AHEAD;
            x_step.read(x, ahead, rows, turn);
            y_step.read(y, ahead, rows, turn);
            #[unroll]
            for part in 0..STEP / 8 {
                multiply_part(&x_step, &y_step, &mut tiles, turn, part);
            }
            x_step.keep(comptime!((turn + 1) % INNER_AHEAD));
            y_step.keep(comptime!((turn + 1) % INNER_AHEAD));
            sync_cube();
            row += stride;
        }
    }
    let places = TilePlaces { worker, left, right, x_width, y_width };
    write_tiles(sums, &tiles, &places, config);
}

#[derive(CubeType)]
struct Side {
    /// A unit's operands in 8 rows and 16 columns are neighbors.
    kept: Shared<[Vector<tf32, Const<4>>]>,
    loads: Array<Load>,
    first: usize,
    width: usize,
    pitch: usize,
    #[cube(comptime)]
    columns: usize,
    #[cube(comptime)]
    load: usize,
    /// Orders operands by row first.
    #[cube(comptime)]
    left: bool,
}

#[cube]
impl Side {
    fn new(
        first: usize,
        width: usize,
        pitch: usize,
        #[comptime] columns: usize,
        #[comptime] load: usize,
        #[comptime] left: bool,
    ) -> Side {
        Side {
            kept: Shared::<[Vector<tf32, Const<4>>]>::new_slice(comptime!(
                INNER_AHEAD * STEP * columns / 4
            )),
            loads: Array::<Load>::new(comptime!(INNER_AHEAD * STEP * columns / 4 / UNITS)),
            first,
            width,
            pitch,
            columns,
            load,
            left,
        }
    }

    /// Loads rows t and t + 4 of 8, zeros past the end. Padding reaches only unwritten sums.
    fn read<N: Size>(
        &mut self,
        matrix: &[Vector<f32, N>],
        row: usize,
        end: usize,
        #[comptime] turn: usize,
    ) {
        let (lane, plane) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
        let pieces = comptime!(4 / self.load);
        let blocks = comptime!(self.columns / BLOCK);
        #[unroll]
        for load in 0..comptime!(STEP * self.columns / 4 / UNITS) {
            let block = plane + comptime!(load / 2 * INNER_PLANES);
            let own = row + block / blocks * 8 + comptime!(load % 2 * 4) + lane % 4;
            let column = self.first + block % blocks * BLOCK + lane / 4 * 4;
            let mut four = Load::zeroed();
            #[unroll]
            for piece in 0..pieces {
                let at = column + comptime!(piece * self.load);
                if own < end && at < self.width {
                    let few = matrix[(own * self.pitch + at) / comptime!(self.load)];
                    #[unroll]
                    for i in 0..comptime!(self.load) {
                        four.insert(comptime!(piece * self.load + i), few.extract(i));
                    }
                }
            }
            self.loads[comptime!(turn * STEP * self.columns / 4 / UNITS + load)] = four;
        }
    }

    fn keep(&mut self, #[comptime] turn: usize) {
        let first = comptime!(turn * STEP * self.columns / 4 / UNITS);
        let (lane, plane) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
        #[unroll]
        for item in 0..comptime!(STEP * self.columns / 8 / UNITS) {
            let block = plane + comptime!(item * INNER_PLANES);
            let upper = self.loads[comptime!(first + 2 * item)];
            let lower = self.loads[comptime!(first + 2 * item + 1)];
            #[unroll]
            for half in 0..2usize {
                let mut four = Load::zeroed();
                four.insert(0usize, upper.extract(comptime!(2 * half)));
                four.insert(3usize, lower.extract(comptime!(2 * half + 1)));
                let others = comptime!(if self.left { [1usize, 2usize] } else { [2, 1] });
                four.insert(comptime!(others[0]), upper.extract(comptime!(2 * half + 1)));
                four.insert(comptime!(others[1]), lower.extract(comptime!(2 * half)));
                let tile = 2 * block + lane / 16;
                let unit = (lane / 4 % 4 + comptime!(4 * half)) * 4 + lane % 4;
                let at = (comptime!(turn * STEP * self.columns / 128) + tile) * LANES as usize;
                self.kept[at + unit] = Vector::cast_from(four);
            }
        }
    }

    fn four(
        &self,
        tile: usize,
        #[comptime] turn: usize,
        #[comptime] part: usize,
    ) -> Vector<tf32, Const<4>> {
        let tiles = comptime!(self.columns / 16);
        let tile = comptime!((turn * STEP / 8 + part) * tiles) + tile;
        self.kept[tile * LANES as usize + UNIT_POS_X as usize]
    }
}

#[cube]
fn multiply_part(
    x: &Side,
    y: &Side,
    tiles: &mut Sequence<Sums>,
    #[comptime] turn: usize,
    #[comptime] part: usize,
) {
    let plane = UNIT_POS_Y as usize;
    let mut others = Sequence::<Array<Vector<tf32, Const<1>>>>::new();
    #[unroll]
    for pair in 0..RIGHT_TILES / 2 {
        let tile = plane / INNER_LEFT_PLANES * comptime!(RIGHT_TILES / 2) + pair;
        let four = y.four(tile, turn, part);
        #[unroll]
        for half in 0..2usize {
            let mut other = Array::<Vector<tf32, Const<1>>>::new(2usize);
            other[0] = Vector::new(four.extract(comptime!(2 * half)));
            other[1] = Vector::new(four.extract(comptime!(2 * half + 1)));
            others.push(other);
        }
    }
    #[unroll]
    for one in 0..LEFT_TILES {
        let four = x.four(plane % INNER_LEFT_PLANES * LEFT_TILES + one, turn, part);
        let mut factor = Array::<Vector<tf32, Const<1>>>::new(4usize);
        #[unroll]
        for place in 0..4usize {
            factor[place] = Vector::new(four.extract(place));
        }
        #[unroll]
        for tile in 0..RIGHT_TILES {
            multiply(&factor, &others[tile], &mut tiles[comptime!(one * RIGHT_TILES + tile)]);
        }
    }
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct TilePlaces {
    worker: usize,
    left: usize,
    right: usize,
    x_width: usize,
    y_width: usize,
}

/// A load's last two columns belong to the unit 16 lanes on.
#[cube]
fn write_tiles<T: Size>(
    sums: &mut [Vector<f32, T>],
    tiles: &Sequence<Sums>,
    places: &TilePlaces,
    #[comptime] config: InnerProductConfig,
) {
    let (lane, plane) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
    let (quarter, rest) = (lane / 4, lane % 4);
    let left =
        places.left + plane % INNER_LEFT_PLANES * INNER_SIDE + quarter % 4 * 4 + quarter / 4 * 2;
    let right = places.right + plane / INNER_LEFT_PLANES * INNER_SIDE + rest % 2 * 8 + rest / 2 * 2;
    let width = comptime!(config.store);
    #[unroll]
    for tile in 0..LEFT_TILES * RIGHT_TILES / 2 {
        let (one, pair) = comptime!((tile / (RIGHT_TILES / 2), tile % (RIGHT_TILES / 2)));
        #[unroll]
        for part in 0..4usize {
            let (half, place) = comptime!((part / 2, part % 2));
            let row = left + comptime!(one * 16 + half);
            #[unroll]
            for piece in 0..comptime!(2 / width) {
                let column = right + comptime!(pair * 16 + place * 4 + piece);
                let mut few = Vector::<f32, T>::zeroed();
                #[unroll]
                for i in 0..width {
                    let tile = comptime!(one * RIGHT_TILES + 2 * pair + piece + i);
                    few.insert(i, tiles[tile][half].extract(place));
                }
                if row < places.x_width && column < places.y_width {
                    let start = (places.worker * places.x_width + row) * places.y_width;
                    sums[(start + column) / width] = few;
                }
            }
        }
    }
}
