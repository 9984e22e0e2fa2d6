//! Workload of a call, for the paper's figures.

use cubecl::{prelude::*, server::Handle};

use super::super::types::{AfterDelegates, Plan, U32, VectorCall, WorkloadStats};
use crate::{error::KernelError, launch::allocate, topk::types::Selected};

impl VectorCall<'_> {
    pub fn topk_with_stats(&self) -> Result<(Selected, WorkloadStats), KernelError> {
        let stats = allocate(self.client, "stats", 2, U32)?;
        let call = VectorCall { stats: Some(&stats), ..*self };
        let plan = call.plan()?;
        let selected = call.execute(&plan)?;
        let stats = self.read_stats(&plan, stats)?;
        Ok((selected, stats))
    }

    fn read_stats(&self, plan: &Plan, stats: Handle) -> Result<WorkloadStats, KernelError> {
        let (length, k) = (self.length, self.options.k);
        let Plan::Delegates(partition, after) = plan else {
            return Ok(WorkloadStats { length, ..WorkloadStats::default() });
        };
        let unfiltered = WorkloadStats {
            length,
            delegates: partition.delegates(length),
            subranges: k,
            concatenated: k << partition.exponent,
        };
        // Beyond the room, the cube scans all selected subranges.
        let room = match &**after {
            AfterDelegates::Finish(config, _) => config.room,
            AfterDelegates::Filter { .. } => usize::MAX,
            AfterDelegates::Concatenate { .. } => return Ok(unfiltered),
        };
        let bytes = (self.client)
            .read_one(stats)
            .map_err(|error| KernelError::of_read(self.client, &error))?;
        let [subranges, candidates] = [0, 1].map(|at| u32::from_bytes(&bytes)[at] as usize);
        Ok(WorkloadStats {
            subranges,
            concatenated: if candidates <= room { candidates } else { unfiltered.concatenated },
            ..unfiltered
        })
    }
}
