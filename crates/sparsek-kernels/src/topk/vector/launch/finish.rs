//! Finish by one cube.

use cubecl::{prelude::*, server::Handle};

use super::super::{
    kernels::{
        delegates::DelegateVectorConfig,
        finish::{finish, finish_single_launch},
        types::FinishConfig,
    },
    options::VectorOptions,
    types::{FirstTopk, Partition, Plan, U32, VectorCall},
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, allocate_together, argument, fill_zero},
    topk::{key::Element, types::Selected},
};

struct FinishInput<'a> {
    keys: &'a Handle,
    /// Keys, and number of groups.
    groups: Option<(&'a Handle, usize)>,
    /// k best delegates of a separate launch.
    best: Option<&'a Selected>,
    /// If β > 1.
    positions: Option<&'a Handle>,
}

impl VectorCall<'_> {
    pub fn finish<E: Element>(
        &self,
        partition: &Partition,
        config: &FinishConfig,
        first: &FirstTopk,
    ) -> Result<Selected, KernelError> {
        let client = self.client;
        let count = partition.delegates(self.length);
        let key = E::Key::elem_type_native();
        let whole_loads = |count: usize| count.next_multiple_of(config.delegate_width(key.size()));
        if let FirstTopk::SeparateLaunch(first) = first {
            let keys = allocate(client, "delegates", count, key)?;
            let positions = self.delegates::<E>(partition, &keys)?;
            let best = self.best_delegates::<E>(first, &keys, count)?;
            let output = self.output()?;
            let input = FinishInput {
                keys: &keys,
                groups: None,
                best: Some(&best),
                positions: positions.as_ref(),
            };
            self.launch_finish::<E>(partition, config, &input, &output)?;
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
        if let FirstTopk::SingleLaunch(build) = first {
            self.single_launch::<E>(partition, (build, config), &keys, &arrivals, &output)?;
            return Ok(output);
        }
        let positions;
        if let FirstTopk::Groups(build) = first {
            self.build::<E, E::Key>(partition, *build, &keys, None, Some(&groups))?;
            input.groups = Some((&groups, groups_count));
        } else {
            positions = self.delegates::<E>(partition, &keys)?;
            input.positions = positions.as_ref();
        }
        self.launch_finish::<E>(partition, config, &input, &output)?;
        Ok(output)
    }

    fn best_delegates<E: Element>(
        &self,
        plan: &Plan,
        keys: &Handle,
        count: usize,
    ) -> Result<Selected, KernelError> {
        let options = VectorOptions::new(self.options.k);
        let call = VectorCall {
            client: self.client,
            input: keys,
            dtype: E::Key::elem_type_native(),
            length: count,
            options: &options,
            index: U32,
            stats: None,
        };
        if call.dtype.size() == 8 { call.select::<u64>(plan) } else { call.select::<u32>(plan) }
    }

    fn single_launch<E: Element>(
        &self,
        partition: &Partition,
        (build, config): (&DelegateVectorConfig, &FinishConfig),
        keys: &Handle,
        arrivals: &Handle,
        output: &Selected,
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let count = partition.delegates(self.length);
        let key = E::Key::elem_type_native();
        let dim = CubeDim::new_2d(build.cube.plane_lanes(), build.cube.planes);
        let cubes = count.div_ceil(build.subranges_per_cube());
        let grid = Grid::new(client, cubes, dim, self.length)?;
        let width = config.shape.width;
        let delegate_width = config.delegate_width(key.size());
        let whole = self.length / width * width;
        let stats = self.stats.map(|stats| argument(stats, "stats", U32, 2));
        fill_zero(client, arrivals, U32, 1)?;
        // SAFETY: elements are read below `length`; writes are one key per delegate and k elements.
        unsafe {
            finish_single_launch::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                argument(self.input, "input", self.dtype, whole)?,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(keys, "delegates", key, count.next_multiple_of(delegate_width))?,
                argument(arrivals, "arrivals", U32, 1)?,
                argument(&output.values, "values", self.dtype, k)?,
                argument(&output.indices, "indices", self.index, k)?,
                stats.transpose()?.into(),
                self.layout(partition, count),
                *build,
                *config,
                delegate_width,
                self.index,
            );
        }
        Ok(())
    }

    fn launch_finish<E: Element>(
        &self,
        partition: &Partition,
        config: &FinishConfig,
        input: &FinishInput,
        output: &Selected,
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let count = partition.delegates(self.length);
        let key = E::Key::elem_type_native();
        let dim = CubeDim::new_2d(config.shape.plane_lanes(), config.shape.planes);
        let grid = Grid::new(client, 1, dim, self.length)?;
        let width = config.shape.width;
        let delegate_width = config.delegate_width(key.size());
        let whole_loads = |count: usize| count.next_multiple_of(delegate_width);
        let places = (input.best).map(|best| argument(&best.indices, "subranges", U32, k));
        let positions =
            (input.positions).map(|positions| argument(positions, "positions", U32, count));
        let groups = (input.groups)
            .map(|(groups, count)| argument(groups, "groups", key, whole_loads(count)));
        let stats = self.stats.map(|stats| argument(stats, "stats", U32, 2));
        let delegates = match input.best {
            Some(best) => argument(&best.values, "delegates", key, k)?,
            None => argument(input.keys, "delegates", key, whole_loads(count))?,
        };
        let in_registers = input.groups.map_or(count, |(_, groups)| groups);
        let whole = self.length / width * width;
        // SAFETY: slots map below `length`; k elements are written.
        unsafe {
            finish::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                delegate_width,
                argument(self.input, "input", self.dtype, whole)?,
                argument(self.input, "input", self.dtype, self.length)?,
                delegates,
                groups.transpose()?.into(),
                places.transpose()?.into(),
                positions.transpose()?.into(),
                argument(&output.values, "values", self.dtype, k)?,
                argument(&output.indices, "indices", self.index, k)?,
                stats.transpose()?.into(),
                self.layout(partition, in_registers),
                *config,
                self.index,
            );
        }
        Ok(())
    }
}
