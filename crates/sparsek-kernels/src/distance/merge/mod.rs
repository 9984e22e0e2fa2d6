//! Merging (the paper's Algorithm 2): a unit walks both rows, O(nnz(x_i) + nnz(y_j)).
//!
//! Any distance, no scratch memory; the last resort.

pub(super) mod join;
pub(super) mod pair;

use cubecl::{ir::ElemType, prelude::*};

use self::pair::{RowPair, Sparse};
use super::{
    job::Job,
    semiring::{Parameter, Semiring},
};
use crate::{error::KernelError, launch::Grid};

pub(super) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let elements = job.elements();
    let grid = Grid::elementwise(job.client, job.pairs(), elements)?;
    let [x, y] = [job.x.arguments()?, job.y.arguments()?];
    // SAFETY: lengths checked; `Matrix` bounds positions.
    unsafe {
        merge_kernel::launch_unchecked::<M>(
            job.client,
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
            job.output()?,
            job.parameter.launch(),
            job.rows.start,
            job.y.rows,
            job.x.cols as u32,
            job.same,
            job.half(&M::NEEDS),
            job.x.dtype,
        );
    }
    Ok(())
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn merge_kernel<M: Semiring, S: Float>(
    x_indptr: &[i32],
    x_indices: &[i32],
    x_values: &[S],
    x_norms: &[S],
    y_indptr: &[i32],
    y_indices: &[i32],
    y_values: &[S],
    y_norms: &[S],
    output: &mut [S],
    parameter: Parameter,
    first: usize,
    across: usize,
    cols: u32,
    #[comptime] same: bool,
    #[comptime] half: bool,
    #[define(S)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= output.len() {
        terminate!();
    }
    let x = Sparse::<S>::new(x_indptr, x_indices, x_values, x_norms);
    let y = Sparse::<S>::new(y_indptr, y_indices, y_values, y_norms);
    let pair = RowPair::<S>::new(x, y, cols, &parameter, same);
    let i = ABSOLUTE_POS / across;
    let j = ABSOLUTE_POS - i * across;
    if comptime!(half) {
        if j < i {
            terminate!();
        }
        let distance = pair.distance::<M>(i, j);
        output[ABSOLUTE_POS] = distance;
        output[j * across + i] = distance;
    } else {
        output[ABSOLUTE_POS] = pair.distance::<M>(first + i, j);
    }
}
