//! Distances by dense tiles: a cube lays out rows of one matrix in shared memory, and its planes go through the entries of rows
//! of the other, each of which meets all rows of the tile at once ([`sweep`]). The work is the entries of one matrix times the
//! rows of the other, whatever the columns: for data that is not too sparse, and for products that run over the columns of
//! either row.
//!
//! Where the entries of both rows count ([`Dense::Halves`], [`Dense::Either`]) there is a sweep for each, and sums meet in
//! [`join`]; of a matrix with itself one sweep is both. Where those of one row are enough and the distance is symmetric, a
//! matrix with itself takes half a sweep.

use crate::device::LLVMPIPE_REFUSAL;
use crate::device::is_llvmpipe;
use cubecl::{prelude::*, server::Handle};

use super::{
    Job, Matrix,
    columns::check_cols,
    join,
    semiring::{Dense, Needs, Semiring},
    sweep::{self, Part, Sweep},
};
use crate::error::KernelError;
use crate::launch::allocate;

pub(super) fn refused(reason: String) -> KernelError {
    KernelError::Routine {
        routine: "tiled",
        reason,
    }
}

/// Whether it can run.
pub(super) fn check(client: &Client, needs: &Needs, matrix: &Matrix) -> Result<(), KernelError> {
    if needs.dense.is_none() {
        return Err(refused("it does not add up entry by entry".into()));
    }
    if is_llvmpipe(client) {
        return Err(refused(LLVMPIPE_REFUSAL.into()));
    }
    check_cols("tiled", matrix.cols)?;
    sweep::check(client)
}

pub(super) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let dense = M::NEEDS.dense.expect("checked with the index");
    let x = Part {
        matrix: job.x,
        rows: job.rows.clone(),
    };
    let y = Part {
        matrix: job.y,
        rows: 0..job.y.rows,
    };
    let sweep = |left: &Part, right: &Part, output: &Handle, half| {
        Sweep {
            left,
            right,
            output,
            half,
        }
        .launch::<M>(job)
    };
    match dense {
        Dense::Products | Dense::Left => {
            let half = job.half(&M::NEEDS);
            sweep(&x, &y, job.output, half)?;
            match half {
                true => join::mirror::<M>(job),
                false => Ok(()),
            }
        }
        Dense::Halves | Dense::Either => {
            let sums = || allocate(job.client, "sums", job.pairs(), job.x.dtype);
            let over_x = sums()?;
            sweep(&x, &y, &over_x, false)?;
            let over_y = if job.whole() {
                over_x.clone()
            } else {
                let over_y = sums()?;
                sweep(&y, &x, &over_y, false)?;
                over_y
            };
            join::both::<M>(job, [&over_x, &over_y])
        }
    }
}
