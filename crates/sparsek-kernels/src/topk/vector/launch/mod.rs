//! Launches of a plan.

mod concatenate;
mod delegates;
mod finish;
pub(super) mod long_rows;
mod selection;

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use self::selection::{SelectedPlaces, SelectionInput};
use super::{
    kernels::types::SubrangeLayoutLaunch,
    options::Selection,
    types::{AfterDelegates, Partition, Plan, U32, VectorCall, WorkloadStats},
};
use crate::{
    error::KernelError,
    launch::allocate,
    topk::{
        key::{Element, with_element},
        row::{job::Job, topk_rows},
        types::{Rows, Selected},
    },
};

impl VectorCall<'_> {
    pub fn topk(&self) -> Result<Selected, KernelError> {
        self.execute(&self.plan()?)
    }

    pub fn topk_with_stats(&self) -> Result<(Selected, WorkloadStats), KernelError> {
        let stats = allocate(self.client, "stats", 2, U32)?;
        let VectorCall { client, input, dtype, length, options, index, .. } = *self;
        let call = VectorCall { client, input, dtype, length, options, index, stats: Some(&stats) };
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

    fn execute(&self, plan: &Plan) -> Result<Selected, KernelError> {
        let VectorCall { client, input, dtype, length, options, index, .. } = *self;
        if options.k == 0 {
            return self.output();
        }
        let selected = with_element!(dtype, E => self.select::<E>(plan))?;
        if !options.sorted {
            return Ok(selected);
        }
        let rows = Rows::contiguous(input.clone(), dtype, 1, length);
        let options = options.row_options();
        let job = Job { client, input: &rows, options: &options, index };
        job.order(selected.values, selected.indices)
    }

    /// Output in index order.
    fn select<E: Element>(&self, plan: &Plan) -> Result<Selected, KernelError> {
        match plan {
            Plan::Whole(Selection::Rows) => {
                let rows = Rows::contiguous(self.input.clone(), self.dtype, 1, self.length);
                let options = self.options.row_options().with_sorted(false);
                topk_rows(self.client, &rows, &options, self.index, None)
            }
            Plan::Whole(selection) => {
                let input = SelectionInput {
                    client: self.client,
                    handle: self.input,
                    dtype: self.dtype,
                    length: self.length,
                    largest: self.options.largest,
                    filled: None,
                };
                let selected = input.select::<E>(*selection, self.options.k, None)?;
                self.fetch::<E>(None, None, &selected.places)
            }
            Plan::Delegates(partition, after) => match &**after {
                AfterDelegates::Finish(config, first) => self.finish::<E>(partition, config, first),
                AfterDelegates::Concatenate { first, second } => {
                    let selections = [*first, *second];
                    if self.short_keys(partition, selections) {
                        self.concatenate::<E, i16>(partition, selections)
                    } else {
                        self.concatenate::<E, E::Key>(partition, selections)
                    }
                }
                AfterDelegates::Filter { first, second, config } => {
                    self.filter::<E>(partition, *config, [*first, *second])
                }
            },
        }
    }

    fn output(&self) -> Result<Selected, KernelError> {
        let k = self.options.k;
        Ok(Selected {
            values: allocate(self.client, "values", k, self.dtype)?,
            indices: allocate(self.client, "indices", k, self.index)?,
        })
    }

    fn select_keys(
        &self,
        handle: &Handle,
        (dtype, length): (ElemType, usize),
        selection: Selection,
        start: Option<&Handle>,
        filled: Option<&Handle>,
    ) -> Result<SelectedPlaces, KernelError> {
        let keys =
            SelectionInput { client: self.client, handle, dtype, length, largest: true, filled };
        let k = self.options.k;
        match dtype.size() {
            8 => keys.select::<u64>(selection, k, start),
            2 => keys.select::<i16>(selection, k, start),
            _ => keys.select::<u32>(selection, k, start),
        }
    }

    fn layout(&self, partition: &Partition, in_registers: usize) -> SubrangeLayoutLaunch {
        SubrangeLayoutLaunch::new(
            self.length,
            partition.delegates(self.length) as u32,
            in_registers as u32,
            self.options.k as u32,
            partition.exponent,
        )
    }
}
