mod concatenate;
mod cut_vector;
mod delegates;
mod finish;
pub(super) mod long_rows;
mod selection;
#[cfg(feature = "statistics")]
mod statistics;

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use self::selection::{SelectedPlaces, SelectionInput};
use super::{
    options::Selection,
    types::{AfterDelegates, Plan, SubrangeCall, VectorCall},
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
        let job = Job { client, input: &rows, options: &options, index, spread: true };
        job.order(selected.values, selected.indices)
    }

    fn select<E: Element>(&self, plan: &Plan) -> Result<Selected, KernelError> {
        match plan {
            Plan::Whole(Selection::Rows) => {
                let rows = Rows::contiguous(self.input.clone(), self.dtype, 1, self.length);
                let options = self.options.row_options().with_sorted(false);
                topk_rows(self.client, &rows, &options, self.index, None)
            }
            Plan::Whole(selection) => {
                let largest = self.options.largest;
                let input = SelectionInput::new(self.client, self.input, self.dtype, self.length);
                let input = SelectionInput { largest, ..input };
                let selected = input.select::<E>(*selection, self.options.k, None)?;
                self.fetch::<E>(None, None, &selected.places)
            }
            Plan::Delegates(partition, after) => {
                let call = SubrangeCall::<E>::new(self, *partition);
                match &**after {
                    AfterDelegates::Finish(config, first) => call.finish(config, first),
                    AfterDelegates::Concatenate { first, second } => {
                        let selections = [*first, *second];
                        if call.short_keys(selections) {
                            call.concatenate::<i16>(selections)
                        } else {
                            call.concatenate::<E::Key>(selections)
                        }
                    }
                    AfterDelegates::Filter { first, second, config } => {
                        call.filter(*config, [*first, *second])
                    }
                }
            }
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
        let keys = SelectionInput::new(self.client, handle, dtype, length);
        let keys = SelectionInput { filled, ..keys };
        let k = self.options.k;
        match dtype.size() {
            8 => keys.select::<u64>(selection, k, start),
            2 => keys.select::<i16>(selection, k, start),
            _ => keys.select::<u32>(selection, k, start),
        }
    }

    #[cfg(feature = "statistics")]
    fn stats_argument(&self) -> Result<ComptimeOptionArgs<&'static mut [u32]>, KernelError> {
        use crate::launch::argument;
        let stats = self.stats.map(|stats| argument(stats, "stats", super::types::U32, 2));
        Ok(stats.transpose()?.into())
    }

    #[cfg(not(feature = "statistics"))]
    fn stats_argument(&self) -> Result<ComptimeOptionArgs<&'static mut [u32]>, KernelError> {
        Ok(None.into())
    }
}
