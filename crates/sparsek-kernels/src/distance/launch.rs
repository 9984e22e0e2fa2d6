use cubecl::prelude::*;

use super::{
    merge::pair::SparseLaunch,
    tuning::ROW_UNITS,
    types::{Prepared, Routine},
};
use crate::{
    device::{LLVMPIPE_REFUSAL, is_llvmpipe, plane_or_unit, require_buffers, units_per_cube},
    error::KernelError,
    launch::{Grid, argument},
};

/// Units per plane, planes per cube.
pub(super) fn planes(client: &Client) -> [u32; 2] {
    let plane = plane_or_unit(client);
    [plane, units_per_cube(client, ROW_UNITS.max(plane)) / plane]
}

pub(super) fn planes_for(
    client: &Client,
    items: usize,
    elements: usize,
) -> Result<(Grid, u32), KernelError> {
    let [plane, planes] = planes(client);
    let dim = CubeDim::new_2d(plane, planes);
    let grid = Grid::new(client, items.div_ceil(planes as usize), dim, elements)?;
    Ok((grid, plane))
}

pub(super) fn refused(routine: Routine, reason: impl Into<String>) -> KernelError {
    KernelError::Routine { routine: routine.name(), reason: reason.into() }
}

pub(super) fn check_buffers(
    client: &Client,
    routine: Routine,
    buffers: usize,
) -> Result<(), KernelError> {
    require_buffers(client, buffers).map_err(|error| refused(routine, error.to_string()))
}

/// Refuses llvmpipe too.
pub(super) fn check_shared_sums(
    client: &Client,
    routine: Routine,
    buffers: usize,
) -> Result<(), KernelError> {
    if is_llvmpipe(client) {
        return Err(refused(routine, LLVMPIPE_REFUSAL));
    }
    check_buffers(client, routine, buffers)
}

impl Prepared {
    pub(super) fn positions(&self) -> Result<[BufferArg; 2], KernelError> {
        let int = i32::elem_type_native();
        Ok([
            argument(&self.indptr, "indptr", int, self.rows + 1)?,
            argument(&self.indices, "indices", int, self.nnz)?,
        ])
    }

    pub(super) fn arguments<S: Float>(&self) -> Result<SparseLaunch<S>, KernelError> {
        let [indptr, indices] = self.positions()?;
        let values = argument(&self.values, "values", self.dtype, self.nnz)?;
        let norms = argument(&self.norms, "norms", self.dtype, 2 * self.rows)?;
        Ok(SparseLaunch::new(indptr, indices, values, norms))
    }
}
