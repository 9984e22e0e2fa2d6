//! How much a selection by delegates worked on.

use cubecl::{prelude::*, server::Handle};

use super::plan::{Last, Plan};
use crate::{error::KernelError, launch::device_failed};

/// What a selection by delegates worked on, in elements; zeros where there were no delegates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadStats {
    /// Of the vector.
    pub length: usize,
    /// Of the first selection: the delegates.
    pub delegates: usize,
    /// Subranges that were looked through: those all of whose delegates are among the k best (Rule 3).
    pub subranges: usize,
    /// Of the second selection: what was taken from those subranges, with Rule 2 only what reaches the least of the
    /// best delegates, and the best delegates of all others.
    pub concatenated: usize,
}

impl WorkloadStats {
    pub(super) fn read(
        client: &Client,
        plan: &Plan,
        length: usize,
        k: usize,
        stats: Handle,
    ) -> Result<Self, KernelError> {
        let none = Self {
            length,
            ..Self::default()
        };
        let Plan::Delegates(cut) = plan else {
            return Ok(none);
        };
        let delegates = cut.delegates(length);
        let all = Self {
            delegates,
            subranges: k,
            concatenated: k << cut.exponent,
            ..none
        };
        // More candidates than there is room for are not listed: all chosen subranges are gone through.
        let room = match &cut.last {
            Last::Finish(blueprint, _) => blueprint.room,
            Last::Sift { .. } => usize::MAX,
            Last::Select { .. } => return Ok(all),
        };
        let bytes = client
            .read_one(stats)
            .map_err(|error| device_failed(client, error.to_string()))?;
        let [subranges, candidates] = [0, 1].map(|at| u32::from_bytes(&bytes)[at] as usize);
        let listed = candidates <= room;
        Ok(Self {
            subranges,
            concatenated: if listed { candidates } else { all.concatenated },
            ..all
        })
    }

    /// The elements of both selections as a share of the vector.
    pub fn share(&self) -> f64 {
        (self.delegates + self.concatenated) as f64 / self.length.max(1) as f64
    }
}
