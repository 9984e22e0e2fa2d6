use cubecl::prelude::*;

use super::{
    accumulator::{InvertedConfig, SPARE},
    kernel::{InvertedShapeLaunch, inverted_kernel},
};
use crate::{
    device::{accumulator, plane_or_unit, planes_per_cube},
    distance::{
        job::Job,
        launch::{check_shared_sums, refused},
        merge::join,
        prepare::{
            columns::{bits, row_tiles},
            parts::{ONE_PART, part_bits},
        },
        semiring::{Algebra, Semiring},
        tuning::{INVERTED_UNITS, PLANES_PER_ROW, PLANES_PER_ROW_FROM, TILE_BYTES},
        types::{Matrix, Routine},
    },
    error::KernelError,
    launch::{Grid, allocate, argument},
};

const BUFFERS: usize = 13;

pub(in crate::distance) fn check(
    client: &Client,
    algebra: &Algebra,
    matrix: &Matrix,
) -> Result<(), KernelError> {
    if !algebra.annihilates {
        return Err(refused(Routine::Inverted, "columns of only one row count"));
    }
    check_shared_sums(client, Routine::Inverted, BUFFERS)?;
    let limit = client.properties().hardware.max_shared_memory_size;
    if limit < 2 * TILE_BYTES {
        let wanted = 2 * TILE_BYTES;
        let reason = format!("it needs {wanted} bytes of shared memory; the device has {limit}");
        return Err(refused(Routine::Inverted, reason));
    }
    row_tiles(matrix.rows, matrix.cols, accumulator(client, matrix.dtype)?, algebra).map(drop)
}

pub(in crate::distance) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let client = job.client;
    let columns = job.columns.expect("made with the index");
    let plane = plane_or_unit(client);
    let room = columns.room;
    let limit = client.properties().hardware.max_shared_memory_size;
    let size = job.x.dtype.size();
    let spare = SPARE.max(plane as usize);
    let fitting = (limit - SPARE * size) / ((room + spare) * size * M::ALGEBRA.sums());
    let planes_of = |units: u32| {
        let planes = planes_per_cube(client, units, plane);
        planes.min(1 << fitting.max(1).ilog2())
    };
    let longest = job.y.longest as u32;
    let one_part = part_bits(longest, job.x.cols as u32) == ONE_PART;
    let shared = longest >= PLANES_PER_ROW_FROM && one_part && !M::ALGEBRA.covered;
    let planes_per_row = match plane > 1 && shared {
        true if planes_of(PLANES_PER_ROW * plane) == PLANES_PER_ROW => PLANES_PER_ROW,
        _ => 1,
    };
    let planes = if planes_per_row > 1 { planes_per_row } else { planes_of(INVERTED_UNITS) };
    let longest = job.x.longest.min(job.y.longest);
    let config = InvertedConfig {
        plane,
        planes,
        room,
        half: job.half::<M>(),
        parts: part_bits(longest as u32, job.x.cols as u32) < ONE_PART,
        planes_per_row,
    };
    let groups = job.rows.len().div_ceil((planes / planes_per_row) as usize);
    let dim = CubeDim::new_2d(plane, planes);
    let counters = columns.tiles * job.y.cols;
    let grid = Grid::new(client, groups * columns.tiles, dim, job.elements().max(counters))?;
    let int = i32::elem_type_native();
    let dtype = job.x.dtype;
    let waiting = if M::ALGEBRA.other_in_parts() { job.pairs() } else { 1 };
    let others = allocate(client, "sums", waiting, dtype)?;
    // SAFETY: lengths checked; `Matrix` bounds positions.
    unsafe {
        inverted_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            job.matrices()?,
            argument(&columns.starts, "starts", int, counters)?,
            argument(&columns.ends, "ends", int, counters)?,
            columns.argument(dtype)?,
            job.output()?,
            argument(&others, "sums", dtype, waiting)?,
            InvertedShapeLaunch::new(
                job.rows.start,
                job.rows.len(),
                job.y.rows,
                job.x.cols,
                columns.tile,
                columns.tiles,
                groups,
                job.y.nnz,
            ),
            config,
            [dtype, bits(dtype)],
        );
    }
    match config.half {
        true => join::mirror::<M>(job),
        false => Ok(()),
    }
}
