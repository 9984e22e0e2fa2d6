//! Entries of rows against dense rows in shared memory.
//!
//! A lane has as many rows of a tile as [`Blueprint::rows`], so that sums stay in registers. Columns that do not fit are gone
//! through block by block; sums wait in the output. Planes take rows as they come, so that long rows hold up one of them.
//! Behind the columns of a block is one of zeros, for entries that shall add nothing.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

mod tile;

use crate::device::multiprocessors;
use crate::device::plane_or_unit;
use crate::device::units_per_cube;
use std::ops::Range;

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    Job, Needs, Parameter, Prepared,
    pair::{Sparse, Two},
    semiring::{Dense, Semiring},
    tiled::refused,
};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;
use tile::{Block, Tile, any_finite, next_row};

/// Units of a cube.
const UNITS: u32 = 1024;
/// Rows of a tile for each lane, where shared memory has room for [`COLUMNS`] of them, and where an entry does the same for each of
/// them but a product: 2.86 ms instead of 3.18 for KL of movielens-1m, about the same for inner products (NVIDIA H200).
const ROWS: usize = 2;
const SHORT_ROWS: usize = 4;
const COLUMNS: usize = 256;
/// Most cubes, about. Each fills its own tile, which takes as long as so many rows on the left.
const CUBES: usize = 1024;
const FILL: usize = 16;
/// Entries that are looked at together.
const STEP: u32 = 4;
/// Bytes of shared memory that are not for values.
const SPARE: usize = 64;

/// Rows of a matrix.
pub(super) struct Part<'a> {
    pub matrix: &'a Prepared,
    pub rows: Range<usize>,
}

/// The entries of rows on the left against dense rows on the right.
pub(super) struct Sweep<'a> {
    pub left: &'a Part<'a>,
    pub right: &'a Part<'a>,
    /// `[left rows, right rows]`.
    pub output: &'a Handle,
    /// Only pairs in which the row on the right is not before that on the left, and some others.
    pub half: bool,
}

/// How a tile lies in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Blueprint {
    /// Units of a plane, and planes of a cube.
    plane: u32,
    planes: u32,
    /// Rows of a tile for each lane.
    rows: usize,
    /// Columns of a block.
    block: usize,
    half: bool,
}

impl Blueprint {
    /// Rows of a tile.
    fn width(&self) -> usize {
        self.rows * self.plane as usize
    }

    /// Chunks of rows on the left: the most that let processors, which have one cube at a time, wait for no more than 2% longer than they
    /// must.
    fn chunks(&self, [rows, tiles]: [usize; 2], processors: usize) -> usize {
        let most = CUBES
            .div_ceil(tiles)
            .min(rows.div_ceil(self.planes as usize));
        let time = |chunks: &usize| {
            let chunk = rows.div_ceil(*chunks);
            let cubes = |tile: usize| match self.half {
                true => rows.min((tile + 1) * self.width()).div_ceil(chunk),
                false => rows.div_ceil(chunk),
            };
            let cubes: usize = (0..tiles).map(cubes).sum();
            cubes.div_ceil(processors) * (chunk + FILL)
        };
        let least = (1..=most).map(|chunks| time(&chunks)).min();
        let good = |chunks: &usize| least.is_some_and(|least| time(chunks) <= least + least / 50);
        (1..=most).rev().find(good).unwrap_or(1)
    }

    /// Values of a lane's row of each lane, with a column of zeros.
    fn room(&self) -> usize {
        (self.block + 1) * self.plane as usize
    }
}

/// What is gone through.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Shape {
    /// Rows on the left, from the first on, and of each chunk of them.
    first: usize,
    rows: usize,
    chunk: usize,
    chunks: usize,
    /// Rows on the right.
    from: usize,
    across: usize,
    cols: usize,
    blocks: usize,
}

/// Whether shared memory has room for a column.
pub(super) fn check(client: &Client) -> Result<(), KernelError> {
    let wanted = 2 * plane_or_unit(client) as usize * size_of::<f64>() + SPARE;
    let limit = client.properties().hardware.max_shared_memory_size;
    if limit < wanted {
        return Err(refused(format!(
            "{wanted} bytes of shared memory for a column; there are {limit}"
        )));
    }
    Ok(())
}

impl Sweep<'_> {
    fn blueprint(&self, client: &Client, needs: &Needs) -> Blueprint {
        let plane = plane_or_unit(client);
        let lane = plane as usize * self.left.matrix.dtype.size();
        let limit = client.properties().hardware.max_shared_memory_size - SPARE;
        let wanted = match needs.dense {
            Some(Dense::Products | Dense::Left) => SHORT_ROWS,
            _ => ROWS,
        };
        let rows = if limit >= wanted * COLUMNS * lane {
            wanted
        } else {
            1
        };
        let most = limit / (rows * lane) - 1;
        let cols = self.right.matrix.cols;
        let blocks = cols.div_ceil(most).max(1);
        // Few kernels for all numbers of columns.
        let block = cols.div_ceil(blocks).max(1);
        Blueprint {
            plane,
            planes: units_per_cube(client, UNITS.max(plane)) / plane,
            rows,
            block: block.next_multiple_of(32).min(most),
            half: self.half,
        }
    }

    pub fn launch<M: Semiring>(&self, job: &Job) -> Result<(), KernelError> {
        let client = job.client;
        let blueprint = self.blueprint(client, &M::NEEDS);
        let (dtype, int) = (job.x.dtype, i32::elem_type_native());
        let (left, right) = (self.left, self.right);
        let cols = right.matrix.cols;
        let blocks = cols.div_ceil(blueprint.block).max(1);
        let x_starts = left.block_starts(job, blueprint.block, blocks)?;
        let y_starts = match job.whole() {
            true => x_starts.clone(),
            false => right.block_starts(job, blueprint.block, blocks)?,
        };
        let [rows, across] = [left.rows.len(), right.rows.len()];
        let tiles = across.div_ceil(blueprint.width());
        let chunks = blueprint.chunks([rows, tiles], multiprocessors(client));
        let chunk = rows.div_ceil(chunks);
        let noted = [rows * (blocks + 1), across * (blocks + 1)];
        let dim = CubeDim::new_2d(blueprint.plane, blueprint.planes);
        let grid = Grid::new(
            client,
            tiles * chunks,
            dim,
            job.elements().max(noted[0]).max(noted[1]),
        )?;
        let [x, y] = [left.matrix.arguments()?, right.matrix.arguments()?];
        // SAFETY: the lengths are checked; offsets and columns are in range by the contract of `Matrix`.
        unsafe {
            sweep_kernel::launch_unchecked::<M>(
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
                argument(&x_starts, "starts", int, noted[0])?,
                argument(&y_starts, "starts", int, noted[1])?,
                argument(self.output, "sums", dtype, rows * across)?,
                job.parameter.launch(),
                ShapeLaunch::new(
                    left.rows.start,
                    rows,
                    chunk,
                    chunks,
                    right.rows.start,
                    across,
                    cols,
                    blocks,
                ),
                blueprint,
                job.own,
                dtype,
            );
        }
        Ok(())
    }
}

impl Part<'_> {
    /// The first entry of each block of columns in each row, and the end of the row.
    fn block_starts(&self, job: &Job, block: usize, blocks: usize) -> Result<Handle, KernelError> {
        let client = job.client;
        let int = i32::elem_type_native();
        let noted = self.rows.len() * (blocks + 1);
        let starts = allocate(client, "starts", noted, int)?;
        let grid = Grid::elementwise(client, noted, noted.max(self.matrix.nnz))?;
        let x = self.matrix.arguments()?;
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
                self.rows.start,
                block,
                blocks,
            );
        }
        Ok(starts)
    }
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

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "two matrices of four buffers")]
fn sweep_kernel<M: Semiring, S: Float>(
    x_indptr: &[i32],
    x_indices: &[i32],
    x_values: &[S],
    x_norms: &[S],
    y_indptr: &[i32],
    y_indices: &[i32],
    y_values: &[S],
    y_norms: &[S],
    x_starts: &[i32],
    y_starts: &[i32],
    output: &mut [S],
    parameter: Parameter,
    shape: Shape,
    #[comptime] blueprint: Blueprint,
    #[comptime] own: bool,
    #[define(S)] _dtype: ElemType,
) {
    let plane = comptime!(blueprint.plane as usize);
    let x = Sparse::<S>::new(x_indptr, x_indices, x_values, x_norms);
    let y = Sparse::<S>::new(y_indptr, y_indices, y_values, y_norms);
    let two = Two::<S>::new(x, y, shape.cols as u32, &parameter, own);
    let tile = CUBE_POS / shape.chunks;
    let chunk = CUBE_POS - tile * shape.chunks;
    let first = tile * comptime!(blueprint.width());
    let begin = chunk * shape.chunk;
    let mut last = min(begin + shape.chunk, shape.rows);
    if comptime!(blueprint.half) {
        last = min(last, first + comptime!(blueprint.width()));
    }
    if first >= shape.across || begin >= last {
        terminate!();
    }
    let mut dense = Tile::<S>::new(two.p, blueprint);
    let taken = Shared::<[Atomic<u32>]>::new_slice(4usize);
    for block in 0..shape.blocks {
        let place = Block {
            number: block,
            of: shape.blocks,
        };
        sync_cube();
        dense.column = block * comptime!(blueprint.block);
        dense.clear::<M>();
        if UNIT_POS == 0 {
            taken[0].store(0);
        }
        sync_cube();
        dense.fill::<M>(two.right(), y_starts, first, shape.across, &place);
        sync_cube();
        let mut row = begin + next_row(&taken, comptime!(blueprint.plane));
        while row < last {
            let noted = place.noted(row);
            let last_block = block + 1 == shape.blocks;
            let from = x_starts[noted] as usize;
            let mut to = x_starts[noted + 1] as usize;
            let mut written = true;
            if comptime!(M::NEEDS.covered) {
                if block > 0 && !finite::<S>(&*output, row, first, &shape, blueprint) {
                    to = from;
                    written = last_block;
                }
            }
            let sums = dense.meet::<M>(two.left(), from, to);
            #[unroll]
            for r in 0..comptime!(blueprint.rows) {
                let j = first + comptime!(r * plane) + UNIT_POS_X as usize;
                if j < shape.across && written {
                    let at = row * shape.across + j;
                    let mut sum = sums[r];
                    if block > 0 {
                        sum = M::reduce::<S>(sum, output[at]);
                    }
                    if comptime!(!M::NEEDS.meets_twice()) {
                        if last_block {
                            let i = shape.first + row;
                            let mut other = S::new(0.0);
                            if comptime!(M::NEEDS.dense == Some(Dense::Left)) {
                                // Columns that are lacking are in the sum.
                                other = two.left().norm(i);
                            }
                            sum = two.finish::<M>(i, shape.from + j, sum, other);
                        }
                    }
                    output[at] = sum;
                }
            }
            row = begin + next_row(&taken, comptime!(blueprint.plane));
        }
    }
}

/// Whether any of a row's sums with the rows of a tile is finite so far.
#[cube]
fn finite<S: Float>(
    output: &[S],
    row: usize,
    first: usize,
    shape: &Shape,
    #[comptime] blueprint: Blueprint,
) -> bool {
    let mut least = S::new(f32::INFINITY);
    #[unroll]
    for r in 0..comptime!(blueprint.rows) {
        // Of the last row again behind it, so that all are read at once.
        let j = first + comptime!(r * blueprint.plane as usize) + UNIT_POS_X as usize;
        let j = min(j, shape.across - 1);
        least = min(least, output[row * shape.across + j]);
    }
    any_finite::<S>(least, blueprint.plane)
}
