//! Merging (paper, Algorithm 2): O(nnz(x_i) + nnz(y_j)). Any distance.

pub(super) mod join;
pub(super) mod pair;

use cubecl::{ir::ElemType, prelude::*};

use self::pair::{Matrices, RowPair};
use super::{job::Job, semiring::Semiring};
use crate::{error::KernelError, launch::Grid};

pub(super) const BUFFERS: usize = 9;

pub(super) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let elements = job.elements();
    let grid = Grid::elementwise(job.client, job.pairs(), elements)?;
    // SAFETY: lengths checked; `Matrix` bounds positions.
    unsafe {
        merge_kernel::launch_unchecked::<M>(
            job.client,
            grid.count,
            grid.dim,
            grid.address,
            job.matrices()?,
            job.output()?,
            job.rows.start,
            job.y.rows,
            job.half::<M>(),
            job.x.dtype,
        );
    }
    Ok(())
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn merge_kernel<M: Semiring, S: Float>(
    matrices: Matrices<S>,
    output: &mut [S],
    first: usize,
    across: usize,
    #[comptime] half: bool,
    #[define(S)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= output.len() {
        terminate!();
    }
    let pair = RowPair::<S>::new(&matrices);
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
