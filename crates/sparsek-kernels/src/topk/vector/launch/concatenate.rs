use cubecl::{
    features::TypeUsage,
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use super::{
    super::{
        kernels::{
            concatenate::{
                FilterCallLaunch, FilterConfig, count_candidates, fetch_selected,
                find_least_delegate, gather_subranges, list_candidates,
            },
            delegates::DelegateVectorConfig,
            histogram::final_state_at,
        },
        options::Selection,
        tuning::{CANDIDATE_LOAD, MAX_CUBES},
        types::{SHORT, SubrangeCall, U32, VectorCall},
    },
    selection::SelectedPlaces,
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
    primitives::team::TeamShape,
    topk::{key::Element, types::Selected},
};

impl<E: Element> SubrangeCall<'_, E> {
    pub fn short_keys(&self, selections: [Selection; 2]) -> bool {
        let histograms =
            selections.iter().all(|one| matches!(one, Selection::Radix | Selection::Bucket));
        let half = matches!(self.dtype, ElemType::Float(FloatKind::F16 | FloatKind::BF16));
        let usage = self.client.properties().type_usage(SHORT);
        half && histograms && usage.contains(TypeUsage::Buffer) && !self.partition.staged
    }

    pub fn concatenate<W: Numeric>(
        &self,
        [first, second]: [Selection; 2],
    ) -> Result<Selected, KernelError> {
        let (client, exponent) = (self.client, self.partition.exponent);
        let (count, slots) = (self.delegates(), self.options.k << exponent);
        let dtype = W::elem_type_native();
        let keys = allocate(client, "delegates", count, dtype)?;
        if dtype == SHORT {
            let config = DelegateVectorConfig { short_keys: true, ..self.delegate_config() };
            self.build::<W>(config, &keys, None, None)?;
        } else {
            self.write_delegates(&keys)?;
        }
        let best = self.select_keys(&keys, (dtype, count), first, None, None)?;
        drop(keys);
        let concatenated = self.gather::<W>(&best.places, slots)?;
        let start = best.states.as_ref();
        let selected = self.select_keys(&concatenated, (dtype, slots), second, start, None)?;
        self.fetch::<E>(Some((&best.places, exponent, 1)), None, &selected.places)
    }

    fn gather<W: Numeric>(&self, selected: &Handle, slots: usize) -> Result<Handle, KernelError> {
        let client = self.client;
        let dtype = W::elem_type_native();
        let keys = allocate(client, "candidates", slots, dtype)?;
        let width = self.vector().load_width(self.partition.exponent);
        let grid = Grid::elementwise(client, slots / width, self.length)?;
        // SAFETY: reads stay below `length`, in whole loads; whole subranges are written.
        unsafe {
            gather_subranges::launch_unchecked::<E, W>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                self.cut_vector(width)?,
                argument(selected, "subranges", U32, self.options.k)?,
                argument(&keys, "candidates", dtype, slots)?,
                slots,
                dtype == SHORT,
                self.options.largest,
            );
        }
        Ok(keys)
    }

    pub fn filter(
        &self,
        config: FilterConfig,
        [first, second]: [Selection; 2],
    ) -> Result<Selected, KernelError> {
        let (client, k) = (self.client, self.options.k);
        let (count, key) = (self.delegates(), self.key());
        let keys = allocate(client, "delegates", count, key)?;
        let positions = self.write_delegates(&keys)?;
        let best = self.select_keys(&keys, (key, count), first, None, None)?;
        let (least, least_at) = match &best.states {
            _ if !config.filtered => (keys.clone(), 0),
            Some(states) => (states.clone(), final_state_at(8 * key.size() as u32)),
            None => (self.least_delegate(config.shape, &keys, &best)?, 0),
        };
        let room = (k << self.partition.exponent).next_multiple_of(CANDIDATE_LOAD);
        let candidates = allocate(client, "candidates", room, key)?;
        let slots = allocate(client, "slots", room, U32)?;
        let filled = allocate(client, "filled", 1, U32)?;
        let counted = !matches!(second, Selection::Rows | Selection::Bitonic);
        if !counted {
            // These read the whole room.
            fill_zero(client, &candidates, key, room)?;
        }
        // Unread if β = 1.
        let input = [&best.places, positions.as_ref().unwrap_or(&best.places)];
        let output = [&candidates, &slots, &filled];
        self.list_candidates(config, input, (&least, least_at), output)?;
        let filled = counted.then_some(&filled);
        let start = best.states.as_ref();
        let selected = self.select_keys(&candidates, (key, room), second, start, filled)?;
        let subranges = (&best.places, self.partition.exponent, config.beta);
        self.fetch::<E>(Some(subranges), Some(&slots), &selected.places)
    }

    fn least_delegate(
        &self,
        shape: TeamShape,
        keys: &Handle,
        best: &SelectedPlaces,
    ) -> Result<Handle, KernelError> {
        let (client, k) = (self.client, self.options.k);
        let (count, key) = (self.delegates(), self.key());
        let least = allocate(client, "least", 1, key)?;
        let dim = CubeDim::new_2d(shape.plane_lanes(), shape.planes);
        let grid = Grid::new(client, 1, dim, count)?;
        // SAFETY: places are below the number of delegates.
        unsafe {
            find_least_delegate::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(keys, "delegates", key, count)?,
                argument(&best.places, "subranges", U32, k)?,
                argument(&least, "least", key, 1)?,
                k as u32,
                shape,
            );
        }
        Ok(least)
    }

    fn list_candidates(
        &self,
        config: FilterConfig,
        [selected, positions]: [&Handle; 2],
        (least, least_at): (&Handle, usize),
        [keys, slots, filled]: [&Handle; 3],
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let (count, key) = (self.delegates(), self.key());
        let all = k << self.partition.exponent;
        let room = all.next_multiple_of(CANDIDATE_LOAD);
        let units = config.shape.lanes as usize;
        let per_cube = all.div_ceil(MAX_CUBES).next_multiple_of(units);
        let cubes = all.div_ceil(per_cube);
        let counts = allocate(client, "counts", 2 * cubes, U32)?;
        let dim = CubeDim::new_2d(config.shape.plane_lanes(), config.shape.planes);
        let elements = self.length.max(room).max(count);
        let grid = || Grid::new(client, cubes, dim, elements);
        let call = || -> Result<FilterCallLaunch<E>, KernelError> {
            Ok(FilterCallLaunch::new(
                argument(self.input, "input", self.dtype, self.length)?,
                argument(selected, "subranges", U32, k)?,
                argument(positions, "positions", U32, if config.beta > 1 { count } else { k })?,
                argument(least, "least", key, least.size_in_used() as usize / key.size())?,
                least_at,
                self.length,
                self.partition.exponent,
                k as u32,
                per_cube,
            ))
        };
        let counts = || argument(&counts, "counts", U32, 2 * cubes);
        // SAFETY: slots map below `length`; candidates are no more than slots.
        unsafe {
            let counting = grid()?;
            count_candidates::launch_unchecked::<E>(
                client,
                counting.count,
                counting.dim,
                counting.address,
                call()?,
                counts()?,
                config,
            );
            let listing = grid()?;
            list_candidates::launch_unchecked::<E>(
                client,
                listing.count,
                listing.dim,
                listing.address,
                call()?,
                counts()?,
                argument(keys, "candidates", key, room)?,
                argument(slots, "slots", U32, room)?,
                argument(filled, "filled", U32, 1)?,
                self.stats_argument()?,
                cubes,
                config,
            );
        }
        Ok(())
    }
}

impl VectorCall<'_> {
    /// `subranges`: selected places, α, β.
    pub fn fetch<E: Element>(
        &self,
        subranges: Option<(&Handle, u32, u32)>,
        listed: Option<&Handle>,
        places: &Handle,
    ) -> Result<Selected, KernelError> {
        let k = self.options.k;
        let output = self.output()?;
        let grid = Grid::elementwise(self.client, k, self.length)?;
        let (selected, exponent, beta) = subranges.unwrap_or((places, 0, 1));
        let slots = |listed: &Handle| listed.size_in_used() as usize / size_of::<u32>();
        let listed = listed.map(|listed| argument(listed, "slots", U32, slots(listed)));
        // SAFETY: every slot maps below `length`.
        unsafe {
            fetch_selected::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(selected, "subranges", U32, k)?,
                argument(places, "selected", U32, k)?,
                listed.transpose()?.into(),
                argument(&output.values, "values", self.dtype, k)?,
                argument(&output.indices, "indices", self.index, k)?,
                k,
                exponent,
                beta,
                subranges.is_none(),
                self.index,
            );
        }
        Ok(output)
    }
}
