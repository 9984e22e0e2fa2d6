use std::ops::Range;

use cubecl::{prelude::*, server::Handle};

use super::{
    kernel::{DenseTileShapeLaunch, dense_tile_kernel, starts_kernel},
    tile::DenseTileConfig,
};
use crate::{
    device::{LLVMPIPE_REFUSAL, is_llvmpipe, multiprocessors, plane_or_unit, units_per_cube},
    distance::{
        job::Job,
        launch::{check_buffers, refused},
        merge::join,
        prepare::columns::check_cols,
        semiring::{Dense, Semiring},
        tuning::{
            TILE_COLUMNS, TILE_CUBES, TILE_FILL_ROWS, TILE_ROWS, TILE_ROWS_ONE_PASS, TILE_UNITS,
        },
        types::{Matrix, Prepared, Routine},
    },
    error::KernelError,
    launch::{Grid, allocate, argument},
};

const SPARE: usize = 64;

const BUFFERS: usize = 11;

pub(in crate::distance) fn check(
    client: &Client,
    dense: Option<Dense>,
    matrix: &Matrix,
) -> Result<(), KernelError> {
    if dense.is_none() {
        let reason = "the distance does not sum against dense rows";
        return Err(refused(Routine::DenseTile, reason));
    }
    if is_llvmpipe(client) {
        return Err(refused(Routine::DenseTile, LLVMPIPE_REFUSAL));
    }
    check_buffers(client, Routine::DenseTile, BUFFERS)?;
    check_cols("dense_tile", matrix.cols)?;
    let wanted = 2 * plane_or_unit(client) as usize * size_of::<f64>() + SPARE;
    let limit = client.properties().hardware.max_shared_memory_size;
    if limit < wanted {
        let reason =
            format!("a column needs {wanted} bytes of shared memory; the device has {limit}");
        return Err(refused(Routine::DenseTile, reason));
    }
    Ok(())
}

pub(in crate::distance) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let dense = M::STRATEGY.dense.expect("checked with the index");
    let x = RowRange { matrix: job.x, rows: job.rows.clone() };
    let y = RowRange { matrix: job.y, rows: 0..job.y.rows };
    let pass = |left: &RowRange, right: &RowRange, output: &Handle, half| {
        Pass { left, right, output, half }.launch::<M>(job)
    };
    match dense {
        Dense::Products | Dense::Left => {
            let half = job.half::<M>();
            pass(&x, &y, job.output, half)?;
            match half {
                true => join::mirror::<M>(job),
                false => Ok(()),
            }
        }
        Dense::Halves | Dense::Either => {
            let sums = || allocate(job.client, "sums", job.pairs(), job.x.dtype);
            let over_x = sums()?;
            pass(&x, &y, &over_x, false)?;
            let over_y = if job.whole() {
                over_x.clone()
            } else {
                let over_y = sums()?;
                pass(&y, &x, &over_y, false)?;
                over_y
            };
            join::join_passes::<M>(job, [&over_x, &over_y])
        }
    }
}

struct RowRange<'a> {
    pub matrix: &'a Prepared,
    pub rows: Range<usize>,
}

struct Pass<'a> {
    pub left: &'a RowRange<'a>,
    pub right: &'a RowRange<'a>,
    /// `[left rows, right rows]`.
    pub output: &'a Handle,
    /// Skip below the diagonal.
    pub half: bool,
}

impl DenseTileConfig {
    /// Within 2% of the least time.
    fn chunks(&self, [rows, tiles]: [usize; 2], processors: usize) -> usize {
        let most = TILE_CUBES.div_ceil(tiles).min(rows.div_ceil(self.planes as usize));
        let time = |chunks: &usize| {
            let chunk = rows.div_ceil(*chunks);
            let cubes = |tile: usize| match self.half {
                true => rows.min((tile + 1) * self.width()).div_ceil(chunk),
                false => rows.div_ceil(chunk),
            };
            let cubes: usize = (0..tiles).map(cubes).sum();
            cubes.div_ceil(processors) * (chunk + TILE_FILL_ROWS)
        };
        let least = (1..=most).map(|chunks| time(&chunks)).min();
        let good = |chunks: &usize| least.is_some_and(|least| time(chunks) <= least + least / 50);
        (1..=most).rev().find(good).unwrap_or(1)
    }
}

impl Pass<'_> {
    fn config(&self, client: &Client, two_passes: bool) -> DenseTileConfig {
        let plane = plane_or_unit(client);
        let lane = plane as usize * self.left.matrix.dtype.size();
        let limit = client.properties().hardware.max_shared_memory_size - SPARE;
        let wanted = if two_passes { TILE_ROWS } else { TILE_ROWS_ONE_PASS };
        let rows = if limit >= wanted * TILE_COLUMNS * lane { wanted } else { 1 };
        let most = limit / (rows * lane) - 1;
        let cols = self.right.matrix.cols;
        let blocks = cols.div_ceil(most).max(1);
        // Rounded, to compile fewer kernels.
        let block = cols.div_ceil(blocks).max(1);
        DenseTileConfig {
            plane,
            planes: units_per_cube(client, TILE_UNITS.max(plane)) / plane,
            rows,
            block: block.next_multiple_of(32).min(most),
            half: self.half,
        }
    }

    pub fn launch<M: Semiring>(&self, job: &Job) -> Result<(), KernelError> {
        let client = job.client;
        let config = self.config(client, M::STRATEGY.two_passes());
        let (dtype, int) = (job.x.dtype, i32::elem_type_native());
        let (left, right) = (self.left, self.right);
        let cols = right.matrix.cols;
        let blocks = cols.div_ceil(config.block).max(1);
        let x_starts = left.block_starts(job, config.block, blocks)?;
        let y_starts = match job.whole() {
            true => x_starts.clone(),
            false => right.block_starts(job, config.block, blocks)?,
        };
        let [rows, across] = [left.rows.len(), right.rows.len()];
        let tiles = across.div_ceil(config.width());
        let chunks = config.chunks([rows, tiles], multiprocessors(client));
        let chunk = rows.div_ceil(chunks);
        let starts_len = [rows * (blocks + 1), across * (blocks + 1)];
        let dim = CubeDim::new_2d(config.plane, config.planes);
        let grid = Grid::new(
            client,
            tiles * chunks,
            dim,
            job.elements().max(starts_len[0]).max(starts_len[1]),
        )?;
        // SAFETY: lengths checked; `Matrix` bounds positions.
        unsafe {
            dense_tile_kernel::launch_unchecked::<M>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                job.matrices_of(left.matrix, right.matrix)?,
                argument(&x_starts, "starts", int, starts_len[0])?,
                argument(&y_starts, "starts", int, starts_len[1])?,
                argument(self.output, "sums", dtype, rows * across)?,
                DenseTileShapeLaunch::new(
                    left.rows.start,
                    rows,
                    chunk,
                    chunks,
                    right.rows.start,
                    across,
                    blocks,
                ),
                config,
                dtype,
            );
        }
        Ok(())
    }
}

impl RowRange<'_> {
    fn block_starts(&self, job: &Job, block: usize, blocks: usize) -> Result<Handle, KernelError> {
        let client = job.client;
        let int = i32::elem_type_native();
        let starts_len = self.rows.len() * (blocks + 1);
        let starts = allocate(client, "starts", starts_len, int)?;
        let grid = Grid::elementwise(client, starts_len, starts_len.max(self.matrix.nnz))?;
        let [indptr, indices] = self.matrix.positions()?;
        // SAFETY: as in `launch`.
        unsafe {
            starts_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                indptr,
                indices,
                argument(&starts, "starts", int, starts_len)?,
                self.rows.start,
                block,
                blocks,
            );
        }
        Ok(starts)
    }
}
