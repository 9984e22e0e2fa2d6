use cubecl::prelude::*;

use super::kernel::{ExpandSortConfig, expand_sort_kernel};
use crate::{
    device::units_per_cube,
    distance::{
        job::Job,
        launch::{check_shared_sums, refused},
        merge,
        semiring::Semiring,
        tuning::EXPAND_SORT_UNITS,
        types::{Prepared, Routine},
    },
    error::KernelError,
    launch::Grid,
};

pub(in crate::distance) fn check(client: &Client) -> Result<(), KernelError> {
    check_shared_sums(client, Routine::ExpandSort, merge::BUFFERS)
}

pub(in crate::distance) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let client = job.client;
    let entries = |matrix: &Prepared| matrix.longest.min(matrix.cols);
    let room = (entries(job.x) + entries(job.y)).next_power_of_two().max(2);
    let units = units_per_cube(client, EXPAND_SORT_UNITS.min(room as u32 / 2).max(1));
    let size = job.x.dtype.size();
    let needed = room * (size_of::<u32>() + size) + 3 * units as usize * size;
    let limit = client.properties().hardware.max_shared_memory_size;
    if needed > limit {
        let reason =
            format!("two rows take {needed} bytes of shared memory; the device has {limit}");
        return Err(refused(Routine::ExpandSort, reason));
    }
    let config = ExpandSortConfig { room, units, half: job.half::<M>() };
    let grid = Grid::new(client, job.pairs(), CubeDim::new_1d(units), job.elements())?;
    // SAFETY: lengths checked; `Matrix` bounds positions, `room` rows.
    unsafe {
        expand_sort_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            job.matrices()?,
            job.output()?,
            job.rows.start,
            job.y.rows,
            config,
            job.x.dtype,
        );
    }
    Ok(())
}
