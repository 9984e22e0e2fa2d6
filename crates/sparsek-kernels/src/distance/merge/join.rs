use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::pair::{Matrices, RowPair};
use crate::{
    device::{plane_or_unit, units_per_cube},
    distance::{
        job::Job,
        semiring::{Dense, Semiring},
        tuning::JOIN_UNITS,
    },
    error::KernelError,
    launch::{Grid, argument},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Join {
    Mirror,
    Passes,
}

pub(in crate::distance) fn mirror<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    // Not read.
    launch::<M>(job, Join::Mirror, [&job.x.norms, &job.x.norms], 1)
}

/// Each `[own rows, other rows]`.
pub(in crate::distance) fn join_passes<M: Semiring>(
    job: &Job,
    sums: [&Handle; 2],
) -> Result<(), KernelError> {
    launch::<M>(job, Join::Passes, sums, job.pairs())
}

fn launch<M: Semiring>(
    job: &Job,
    join: Join,
    [over_x, over_y]: [&Handle; 2],
    needed: usize,
) -> Result<(), KernelError> {
    let client = job.client;
    let plane = plane_or_unit(client);
    let planes = units_per_cube(client, JOIN_UNITS.max(plane)) / plane;
    let side = plane as usize;
    let [rows, across] = [job.rows.len(), job.y.rows];
    let tiles = across.div_ceil(side);
    let dim = CubeDim::new_2d(plane, planes);
    let grid = Grid::new(client, rows.div_ceil(side) * tiles, dim, job.elements())?;
    let dtype = job.x.dtype;
    // SAFETY: lengths checked; `Matrix` bounds positions.
    unsafe {
        join_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            job.matrices()?,
            argument(over_x, "sums", dtype, needed)?,
            argument(over_y, "sums", dtype, needed)?,
            job.output()?,
            job.rows.start,
            rows,
            across,
            plane,
            planes,
            join,
            dtype,
        );
    }
    Ok(())
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn join_kernel<M: Semiring, S: Float>(
    matrices: Matrices<S>,
    over_x: &[S],
    over_y: &[S],
    output: &mut [S],
    first: usize,
    rows: usize,
    across: usize,
    #[comptime] plane: u32,
    #[comptime] planes: u32,
    #[comptime] join: Join,
    #[define(S)] _dtype: ElemType,
) {
    let side = comptime!(plane as usize);
    let tiles = across.div_ceil(side);
    let top = CUBE_POS / tiles * side;
    let left = CUBE_POS % tiles * side;
    // The cube leaves together.
    if top >= rows || (comptime!(join == Join::Mirror) && top < left) {
        terminate!();
    }
    // Padding avoids bank conflicts.
    let mut transposed = Shared::<[S]>::new_slice(comptime!(side * (side + 1)));
    let lane = UNIT_POS_X as usize;
    let mut line = UNIT_POS_Y as usize;
    while line < side {
        if left + line < across && top + lane < rows {
            let from = (left + line) * rows + top + lane;
            let to = line * comptime!(side + 1) + lane;
            if comptime!(join == Join::Mirror) {
                transposed[to] = output[from];
            } else {
                transposed[to] = over_y[from];
            }
        }
        line += comptime!(planes as usize);
    }
    sync_cube();
    let pair = RowPair::<S>::new(&matrices);
    line = UNIT_POS_Y as usize;
    while line < side {
        let j = left + lane;
        if top + line < rows && j < across {
            let at = (top + line) * across + j;
            let mut distance = transposed[lane * comptime!(side + 1) + line];
            if comptime!(join == Join::Passes) {
                let i = first + top + line;
                let halves = comptime!(M::STRATEGY.dense == Some(Dense::Halves));
                let total = if comptime!(halves) {
                    over_x[at] + distance
                } else {
                    M::reduce::<S>(over_x[at], distance)
                };
                if comptime!(halves || M::STRATEGY.union) {
                    distance = pair.finish_core::<M>(i, j, total, S::new(0.0));
                } else {
                    distance = pair.finish::<M>(i, j, total, S::new(0.0));
                }
            }
            if comptime!(join == Join::Passes) || top + line > j {
                output[at] = distance;
            }
        }
        line += comptime!(planes as usize);
    }
}
