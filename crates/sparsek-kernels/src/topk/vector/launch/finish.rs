use cubecl::{prelude::*, server::Handle};

use super::super::{
    kernels::{
        delegates::DelegateVectorConfig,
        finish::{finish, finish_single_launch},
        types::{DelegateCountsLaunch, FinishCallLaunch, FinishConfig},
    },
    options::VectorOptions,
    types::{FirstTopk, Plan, SubrangeCall, U32, VectorCall},
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, allocate_together, argument, fill_zero},
    topk::{key::Element, types::Selected},
};

struct FinishInput<'a> {
    keys: &'a Handle,
    groups: Option<(&'a Handle, usize)>,
    best: Option<&'a Selected>,
    positions: Option<&'a Handle>,
}

impl<E: Element> SubrangeCall<'_, E> {
    pub fn finish(
        &self,
        config: &FinishConfig,
        first: &FirstTopk,
    ) -> Result<Selected, KernelError> {
        let client = self.client;
        let count = self.delegates();
        let key = self.key();
        let whole_loads = |count: usize| count.next_multiple_of(config.delegate_width(key.size()));
        if let FirstTopk::SeparateLaunch(first) = first {
            let keys = allocate(client, "delegates", count, key)?;
            let positions = self.write_delegates(&keys)?;
            let best = self.best_delegates(first, &keys)?;
            let output = self.output()?;
            let input = FinishInput {
                keys: &keys,
                groups: None,
                best: Some(&best),
                positions: positions.as_ref(),
            };
            self.launch_finish(config, &input, &output)?;
            return Ok(output);
        }
        let groups_count = match first {
            FirstTopk::Groups(build) => count.div_ceil(build.subranges_per_cube()),
            _ => 0,
        };
        let [keys, groups, arrivals, values, indices] = allocate_together(
            client,
            [
                ("delegates", whole_loads(count), key),
                ("groups", whole_loads(groups_count), key),
                ("arrivals", 1, U32),
                ("values", self.options.k, self.dtype),
                ("indices", self.options.k, self.index),
            ],
        )?;
        let output = Selected { values, indices };
        let mut input = FinishInput { keys: &keys, groups: None, best: None, positions: None };
        let positions;
        match first {
            FirstTopk::SingleLaunch(build) => {
                self.single_launch(build, config, [&keys, &arrivals], &output)?;
                return Ok(output);
            }
            FirstTopk::Groups(build) => {
                self.build::<E::Key>(*build, &keys, None, Some(&groups))?;
                input.groups = Some((&groups, groups_count));
            }
            _ => {
                positions = self.write_delegates(&keys)?;
                input.positions = positions.as_ref();
            }
        }
        self.launch_finish(config, &input, &output)?;
        Ok(output)
    }

    fn best_delegates(&self, plan: &Plan, keys: &Handle) -> Result<Selected, KernelError> {
        let options = VectorOptions::new(self.options.k);
        let (key, count) = (self.key(), self.delegates());
        let call = VectorCall::new(self.client, keys, key, count, &options, U32);
        if key.size() == 8 { call.select::<u64>(plan) } else { call.select::<u32>(plan) }
    }

    fn finish_call<I: Numeric, N: Size>(
        &self,
        config: &FinishConfig,
        in_registers: usize,
        output: &Selected,
    ) -> Result<FinishCallLaunch<E, I, N>, KernelError> {
        let k = self.options.k;
        Ok(FinishCallLaunch::new(
            self.cut_vector(config.shape.width)?,
            argument(&output.values, "values", self.dtype, k)?,
            argument(&output.indices, "indices", self.index, k)?,
            self.stats_argument()?,
            DelegateCountsLaunch::new(self.delegates() as u32, in_registers as u32, k as u32),
        ))
    }

    fn single_launch(
        &self,
        build: &DelegateVectorConfig,
        config: &FinishConfig,
        [keys, arrivals]: [&Handle; 2],
        output: &Selected,
    ) -> Result<(), KernelError> {
        let client = self.client;
        let (count, key) = (self.delegates(), self.key());
        let dim = CubeDim::new_2d(build.cube.plane_lanes(), build.cube.planes);
        let cubes = count.div_ceil(build.subranges_per_cube());
        let grid = Grid::new(client, cubes, dim, self.length)?;
        let delegate_width = config.delegate_width(key.size());
        fill_zero(client, arrivals, U32, 1)?;
        // SAFETY: reads stay below `length`; writes are one key per delegate, k elements.
        unsafe {
            finish_single_launch::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                config.shape.width,
                self.finish_call(config, count, output)?,
                argument(keys, "delegates", key, count.next_multiple_of(delegate_width))?,
                argument(arrivals, "arrivals", U32, 1)?,
                *build,
                *config,
                delegate_width,
                self.index,
            );
        }
        Ok(())
    }

    fn launch_finish(
        &self,
        config: &FinishConfig,
        input: &FinishInput,
        output: &Selected,
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let (count, key) = (self.delegates(), self.key());
        let dim = CubeDim::new_2d(config.shape.plane_lanes(), config.shape.planes);
        let grid = Grid::new(client, 1, dim, self.length)?;
        let delegate_width = config.delegate_width(key.size());
        let whole_loads = |count: usize| count.next_multiple_of(delegate_width);
        let places = (input.best).map(|best| argument(&best.indices, "subranges", U32, k));
        let positions =
            (input.positions).map(|positions| argument(positions, "positions", U32, count));
        let groups = (input.groups)
            .map(|(groups, count)| argument(groups, "groups", key, whole_loads(count)));
        let delegates = match input.best {
            Some(best) => argument(&best.values, "delegates", key, k)?,
            None => argument(input.keys, "delegates", key, whole_loads(count))?,
        };
        let in_registers = input.groups.map_or(count, |(_, groups)| groups);
        // SAFETY: slots map below `length`; k elements are written.
        unsafe {
            finish::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                config.shape.width,
                delegate_width,
                self.finish_call(config, in_registers, output)?,
                delegates,
                groups.transpose()?.into(),
                places.transpose()?.into(),
                positions.transpose()?.into(),
                *config,
                self.index,
            );
        }
        Ok(())
    }
}
