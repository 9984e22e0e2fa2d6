//! Distances by dense tiles: a cube lays out as many rows of `y` as a plane has units in shared memory, absent values being
//! zero, and its planes go through rows of `x`. Each entry of these meets all rows of the tile at once, one in each unit, so that
//! sums stay in registers. The work is the entries of `x` times the rows of `y`, whatever the columns: for data that is not too
//! sparse.
//!
//! Columns that do not fit are gone through block by block; sums wait in the output.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    Job, Parameter,
    pair::{Sparse, Two},
    semiring::{Needs, Semiring},
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument, units_per_cube},
    topk::select::{NO_LAYOUTS, is_llvmpipe, plane_or_unit},
};

/// Units of a cube.
const UNITS: u32 = 512;
/// Cubes to begin with, so that no processor is without one.
const CUBES: usize = 1024;

fn refused(reason: String) -> KernelError {
    KernelError::Routine {
        routine: "tiled",
        reason,
    }
}

/// Whether it can run.
pub(super) fn check(client: &Client, needs: &Needs) -> Result<(), KernelError> {
    if !needs.zeros {
        return Err(refused("values that are absent are not as zeros".into()));
    }
    if needs.other {
        return Err(refused("there are two sums for each pair".into()));
    }
    if is_llvmpipe(client) {
        return Err(refused(NO_LAYOUTS.into()));
    }
    let wanted = plane_or_unit(client) as usize * size_of::<f64>();
    let limit = client.properties().hardware.max_shared_memory_size;
    if limit < wanted {
        return Err(refused(format!(
            "{wanted} bytes of shared memory for a column; there are {limit}"
        )));
    }
    Ok(())
}

/// How a tile lies in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Blueprint {
    /// Units of a plane, which are rows of a tile, and planes of a cube.
    plane: u32,
    planes: u32,
    /// Columns of a block.
    block: usize,
}

/// What is gone through.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Shape {
    /// Rows of `x`, from the first on, and of each chunk of them.
    first: usize,
    rows: usize,
    chunk: usize,
    chunks: usize,
    /// Rows of `y`.
    across: usize,
    cols: usize,
    blocks: usize,
}

pub(super) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let client = job.client;
    let (dtype, int) = (job.x.dtype, i32::elem_type_native());
    let plane = plane_or_unit(client);
    let planes = units_per_cube(client, UNITS.max(plane)) / plane;
    let limit = client.properties().hardware.max_shared_memory_size;
    let most = limit / (plane as usize * dtype.size());
    let blocks = job.x.cols.div_ceil(most).max(1);
    // Few kernels for all numbers of columns.
    let block = job.x.cols.div_ceil(blocks).max(1);
    let block = block.next_multiple_of(64).min(most);
    let blocks = job.x.cols.div_ceil(block).max(1);
    let blueprint = Blueprint {
        plane,
        planes,
        block,
    };
    let starts = block_starts(job, block, blocks)?;
    let tiles = job.y.rows.div_ceil(plane as usize);
    let rows = job.rows.len();
    let chunks = CUBES.div_ceil(tiles).min(rows.div_ceil(planes as usize));
    let chunk = rows.div_ceil(chunks);
    let dim = CubeDim::new_2d(plane, planes);
    let noted = rows * (blocks + 1);
    let grid = Grid::new(client, tiles * chunks, dim, job.elements().max(noted))?;
    let [x, y] = [job.x.arguments()?, job.y.arguments()?];
    // SAFETY: the lengths are checked; offsets and columns are in range by the contract of `Matrix`.
    unsafe {
        tiled_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            x.indptr,
            x.indices,
            x.values,
            x.norms,
            y.indptr,
            y.indices,
            y.values,
            y.norms,
            argument(&starts, "starts", int, noted)?,
            job.output()?,
            job.parameter.launch(),
            ShapeLaunch::new(
                job.rows.start,
                rows,
                chunk,
                chunks,
                job.y.rows,
                job.x.cols,
                blocks,
            ),
            blueprint,
            dtype,
        );
    }
    Ok(())
}

/// The first entry of each block of columns in each row of `x`, and the end of the row.
fn block_starts(job: &Job, block: usize, blocks: usize) -> Result<Handle, KernelError> {
    let client = job.client;
    let int = i32::elem_type_native();
    let rows = job.rows.len();
    let noted = rows * (blocks + 1);
    let starts = allocate(client, "starts", noted, int)?;
    let grid = Grid::elementwise(client, noted, noted.max(job.x.nnz))?;
    let x = job.x.arguments()?;
    // SAFETY: as in `launch`.
    unsafe {
        starts_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            x.indptr,
            x.indices,
            argument(&starts, "starts", int, noted)?,
            job.rows.start,
            block,
            blocks,
        );
    }
    Ok(starts)
}

/// A unit for each row and block, by bisection.
#[cube(launch_unchecked, address_type = "dynamic")]
fn starts_kernel(
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
    let mut low = indptr[first + row];
    let mut high = indptr[first + row + 1];
    let column = i32::cast_from(number * block);
    if number == blocks {
        low = high;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if indices[middle as usize] < column {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    starts[ABSOLUTE_POS] = low;
}

/// A tile of rows of `y`.
#[derive(CubeType)]
struct Tile<S: Float> {
    values: Shared<[S]>,
    /// The first column of the block.
    column: usize,
    p: S,
    #[cube(comptime)]
    blueprint: Blueprint,
}

#[cube]
impl<S: Float> Tile<S> {
    /// Lays out the block of columns of the rows from `first` on.
    fn fill(&mut self, y: &Sparse<S>, first: usize, across: usize) {
        let plane = comptime!(self.blueprint.plane as usize);
        let room = comptime!(self.blueprint.block * self.blueprint.plane as usize);
        let mut at = UNIT_POS as usize;
        while at < room {
            self.values[at] = S::new(0.0);
            at += comptime!((self.blueprint.plane * self.blueprint.planes) as usize);
        }
        sync_cube();
        let mut row = UNIT_POS_Y as usize;
        while row < plane {
            if first + row < across {
                let end = y.start(first + row + 1);
                let mut entry = y.start(first + row) + UNIT_POS_X as usize;
                while entry < end {
                    let column = y.column(entry) as usize;
                    if column >= self.column && column < self.column + self.blueprint.block {
                        self.values[(column - self.column) * plane + row] = y.value(entry);
                    }
                    entry += plane;
                }
            }
            row += comptime!(self.blueprint.planes as usize);
        }
    }

    /// A sum and what an entry adds to it.
    fn add<M: Semiring>(&self, sum: S, column: usize, value: S) -> S {
        let place = (column - self.column) * comptime!(self.blueprint.plane as usize);
        let other = self.values[place + UNIT_POS_X as usize];
        M::reduce::<S>(sum, M::product::<S>(value, other, self.p))
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "two matrices of four buffers")]
fn tiled_kernel<M: Semiring, S: Float>(
    x_indptr: &[i32],
    x_indices: &[i32],
    x_values: &[S],
    x_norms: &[S],
    y_indptr: &[i32],
    y_indices: &[i32],
    y_values: &[S],
    y_norms: &[S],
    starts: &[i32],
    output: &mut [S],
    parameter: Parameter,
    shape: Shape,
    #[comptime] blueprint: Blueprint,
    #[define(S)] _dtype: ElemType,
) {
    let plane = comptime!(blueprint.plane as usize);
    let x = Sparse::<S>::new(x_indptr, x_indices, x_values, x_norms);
    let y = Sparse::<S>::new(y_indptr, y_indices, y_values, y_norms);
    let two = Two::<S>::new(x, y, shape.cols as u32, &parameter);
    let tile = CUBE_POS / shape.chunks;
    let chunk = CUBE_POS - tile * shape.chunks;
    let lane = UNIT_POS_X as usize;
    let j = tile * plane + lane;
    let last = min((chunk + 1) * shape.chunk, shape.rows);
    let mut dense = Tile::<S> {
        values: Shared::<[S]>::new_slice(comptime!(blueprint.block * blueprint.plane as usize)),
        column: 0usize,
        p: two.p,
        blueprint,
    };
    for block in 0..shape.blocks {
        sync_cube();
        dense.column = block * comptime!(blueprint.block);
        dense.fill(two.right(), tile * plane, shape.across);
        sync_cube();
        let mut row = chunk * shape.chunk + UNIT_POS_Y as usize;
        while row < last {
            let at = row * shape.across + j;
            let mut sum = M::identity::<S>();
            if block > 0 && j < shape.across {
                sum = output[at];
            }
            let noted = row * (shape.blocks + 1) + block;
            let end = starts[noted + 1] as usize;
            let mut done = starts[noted] as usize;
            while done < end {
                if comptime!(plane > 1) {
                    // Each unit has an entry, which all of them look at in turn.
                    let mine = done + lane;
                    let mut column = 0i32;
                    let mut value = S::new(0.0);
                    if mine < end {
                        column = two.left().column(mine);
                        value = two.left().value(mine);
                    }
                    let there = min(end - done, plane) as u32;
                    for turn in 0..there {
                        let column = plane_shuffle(column, turn) as usize;
                        sum = dense.add::<M>(sum, column, plane_shuffle(value, turn));
                    }
                } else {
                    let column = two.left().column(done) as usize;
                    sum = dense.add::<M>(sum, column, two.left().value(done));
                }
                done += plane;
            }
            if j < shape.across {
                if block + 1 == shape.blocks {
                    sum = two.finish::<M>(shape.first + row, j, sum, S::new(0.0));
                }
                output[at] = sum;
            }
            row += comptime!(blueprint.planes as usize);
        }
    }
}
