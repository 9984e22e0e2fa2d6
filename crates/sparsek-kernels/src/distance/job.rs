use std::ops::Range;

use cubecl::{prelude::*, server::Handle};

use super::{
    merge::pair::MatricesLaunch,
    prepare::{columns::Columns, packed::Packed},
    semiring::{Parameter, Semiring},
    types::Prepared,
};
use crate::{error::KernelError, launch::argument};

/// Checked request.
#[doc(hidden)]
pub struct Job<'a> {
    pub(super) client: &'a Client,
    pub(super) x: &'a Prepared,
    pub(super) y: &'a Prepared,
    pub(super) columns: Option<&'a Columns>,
    pub(super) packed: Option<&'a Packed>,
    pub(super) rows: Range<usize>,
    /// One matrix.
    pub(super) same: bool,
    pub(super) parameter: Parameter,
    pub(super) output: &'a Handle,
}

impl Job<'_> {
    pub(super) fn pairs(&self) -> usize {
        self.rows.len() * self.y.rows
    }

    pub(super) fn whole(&self) -> bool {
        self.same && self.rows.len() == self.y.rows
    }

    pub(super) fn half<M: Semiring>(&self) -> bool {
        self.whole() && M::ALGEBRA.symmetric
    }

    pub(super) fn elements(&self) -> usize {
        let entries = self.x.nnz.max(self.y.nnz);
        let rows = 2 * self.x.rows.max(self.y.rows);
        self.pairs().max(entries).max(rows)
    }

    pub(super) fn matrices<S: Float>(&self) -> Result<MatricesLaunch<S>, KernelError> {
        self.matrices_of(self.x, self.y)
    }

    pub(super) fn matrices_of<S: Float>(
        &self,
        left: &Prepared,
        right: &Prepared,
    ) -> Result<MatricesLaunch<S>, KernelError> {
        let [left, right] = [left.arguments()?, right.arguments()?];
        let parameter = self.parameter.launch();
        Ok(MatricesLaunch::new(left, right, self.x.cols as u32, parameter, self.same))
    }

    pub(super) fn output(&self) -> Result<BufferArg, KernelError> {
        argument(self.output, "distances", self.x.dtype, self.pairs())
    }
}
