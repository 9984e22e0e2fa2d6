use cubecl::prelude::*;

use super::{
    kernel::{RegisterTileShapeLaunch, register_tile_kernel},
    slab::{RegisterTileConfig, Side},
    sums::sums_direct,
};
use crate::{
    device::{LLVMPIPE_REFUSAL, is_llvmpipe, units_per_cube},
    distance::{
        job::Job,
        launch::refused,
        merge::join,
        prepare::columns::check_cols,
        semiring::{Dense, Semiring, Strategy},
        tuning::{
            REGISTER_TILE_ACROSS, REGISTER_TILE_DEPTHS, REGISTER_TILE_DOWN, REGISTER_TILE_UNITS,
        },
        types::{Matrix, Prepared, Routine},
    },
    error::KernelError,
    launch::{Grid, argument},
};

pub(in crate::distance) fn check(
    client: &Client,
    strategy: &Strategy,
    matrix: &Matrix,
) -> Result<(), KernelError> {
    let sums = matches!(strategy.dense, Some(Dense::Products | Dense::Either));
    if !sums && !sums_direct(strategy) {
        let reason = "the distance does not sum columns that a row lacks";
        return Err(refused(Routine::RegisterTile, reason));
    }
    if is_llvmpipe(client) {
        return Err(refused(Routine::RegisterTile, LLVMPIPE_REFUSAL));
    }
    check_cols("register_tile", matrix.cols)?;
    let size = size_of::<f64>();
    if RegisterTileConfig::new(client, size, 1).is_none() {
        let limit = client.properties().hardware.max_shared_memory_size;
        let reason = format!("a tile does not fit {limit} bytes of shared memory");
        return Err(refused(Routine::RegisterTile, reason));
    }
    Ok(())
}

impl RegisterTileConfig {
    /// Smallest tile for `rows`. Depth decides rounding, so device and `size` alone decide it.
    fn new(client: &Client, size: usize, rows: usize) -> Option<Self> {
        let limit = client.properties().hardware.max_shared_memory_size;
        let count = units_per_cube(client, REGISTER_TILE_UNITS);
        let across = 1 << (count.ilog2().div_ceil(2));
        let units = [across, count / across];
        let with = |depth: usize, down: usize| Self {
            units,
            pairs: [REGISTER_TILE_ACROSS, down],
            depth,
            half: false,
            full: false,
        };
        let most =
            if size > size_of::<f32>() { REGISTER_TILE_DOWN / 2 } else { REGISTER_TILE_DOWN };
        let fits = |depth: &&usize| with(**depth, most).bytes(size) <= limit;
        let depth = *REGISTER_TILE_DEPTHS.iter().find(fits)?;
        let mut down = 1;
        while down < most && down * (units[1] as usize) < rows {
            down *= 2;
        }
        Some(with(depth, down))
    }
}

pub(in crate::distance) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let client = job.client;
    let dtype = job.x.dtype;
    let [rows, across] = [job.rows.len(), job.y.rows];
    let half = job.half::<M>();
    let is_full = |side: &Prepared| side.cols > 0 && side.nnz == side.rows * side.cols;
    let full = is_full(job.x) && is_full(job.y);
    let config = RegisterTileConfig::new(client, dtype.size(), rows);
    let config = RegisterTileConfig { half, full, ..config.expect("checked with the index") };
    let tiles = across.div_ceil(config.rows(Side::Right));
    let cubes = rows.div_ceil(config.rows(Side::Left)) * tiles;
    let dim = CubeDim::new_2d(config.units[0], config.units[1]);
    let grid = Grid::new(client, cubes, dim, job.elements())?;
    // SAFETY: lengths checked; `Matrix` bounds positions.
    unsafe {
        register_tile_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            job.matrices()?,
            argument(job.output, "distances", dtype, job.pairs())?,
            RegisterTileShapeLaunch::new(job.rows.start, rows, across, job.x.cols),
            config,
            dtype,
        );
    }
    match half {
        true => join::mirror::<M>(job),
        false => Ok(()),
    }
}
