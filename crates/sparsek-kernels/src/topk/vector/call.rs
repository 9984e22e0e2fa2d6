//! The steps of a call: delegates, the subranges that they choose, the members among their elements.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    U32, VectorOptions,
    chosen::SubrangesLaunch,
    delegates::{DelegateBlueprint, fetch_members, find_delegates, gather_candidates},
    elements::{Elements, Found},
    finish::{FinishBlueprint, finish},
    options::Selection,
    plan::{CUBE_UNITS, Cut, FLIGHT, Last, Plan},
    staged::{self, StagedBlueprint, find_staged},
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, allocate_together, argument, units_per_cube},
    topk::{
        Rows, Selected, TopkOptions, element::Element, launch::load_widths, routines::team::Shape,
        select::plane_or_unit, topk_rows,
    },
};

/// A checked call.
pub(super) struct Call<'a> {
    pub client: &'a Client,
    pub input: &'a Handle,
    pub dtype: ElemType,
    pub length: usize,
    pub options: &'a VectorOptions,
    pub index: ElemType,
    /// Where one cube that finishes says how many subranges it looked through, and how many of their elements, with
    /// delegates, are left.
    pub stats: Option<&'a Handle>,
}

impl Call<'_> {
    /// The members in index order.
    pub fn run<E: Element>(&self, plan: &Plan) -> Result<Selected, KernelError> {
        match plan {
            Plan::Whole(Selection::Rows) => {
                let rows = Rows::contiguous(self.input.clone(), self.dtype, 1, self.length);
                let options = TopkOptions {
                    largest: self.options.largest,
                    ..TopkOptions::new(self.options.k)
                };
                topk_rows(self.client, &rows, &options, self.index, None)
            }
            Plan::Whole(selection) => {
                let elements = Elements {
                    client: self.client,
                    handle: self.input,
                    dtype: self.dtype,
                    length: self.length,
                    largest: self.options.largest,
                    filled: None,
                };
                let found = elements.select::<E>(*selection, self.options.k, None)?;
                self.fetch::<E>(None, None, &found.members)
            }
            Plan::Delegates(cut) => self.by_delegates::<E>(cut),
        }
    }

    fn by_delegates<E: Element>(&self, cut: &Cut) -> Result<Selected, KernelError> {
        let count = cut.delegates(self.length);
        let key = Self::key_dtype::<E>();
        if let (Last::Finish(blueprint), None) = (&cut.last, &cut.first) {
            let whole = count.next_multiple_of(blueprint.delegate_width(key.size()));
            let (keys, output) = self.buffers(whole, key)?;
            let positions = self.delegates::<E>(cut, &keys)?;
            self.finish::<E>(cut, blueprint, &keys, None, positions.as_ref(), &output)?;
            return Ok(output);
        }
        let keys = allocate(self.client, "delegates", count, key)?;
        let positions = self.delegates::<E>(cut, &keys)?;
        match (&cut.last, &cut.first) {
            (Last::Finish(blueprint), first) => {
                let best = match first {
                    Some(first) => Some(self.best::<E>(first, &keys, count)?),
                    None => None,
                };
                let output = self.output()?;
                let best = best.as_ref();
                self.finish::<E>(cut, blueprint, &keys, best, positions.as_ref(), &output)?;
                Ok(output)
            }
            (Last::Select { first, last }, _) => {
                let best = self.select_keys::<E>(&keys, count, *first, None, None)?;
                // So that candidates may take their place.
                drop(keys);
                let count = self.options.k << cut.exponent;
                let candidates = self.gather::<E>(&best.members, count, cut.exponent)?;
                let notes = best.notes.as_ref();
                let found = self.select_keys::<E>(&candidates, count, *last, notes, None)?;
                let chosen = (&best.members, cut.exponent, 1);
                self.fetch::<E>(Some(chosen), None, &found.members)
            }
            (
                Last::Sift {
                    first,
                    last,
                    blueprint,
                },
                _,
            ) => {
                let selections = [*first, *last];
                self.sift::<E>(cut, *blueprint, selections, &keys, positions.as_ref())
            }
        }
    }

    /// The k greatest of some keys, of which there may be as many as the device says.
    pub(super) fn select_keys<E: Element>(
        &self,
        handle: &Handle,
        length: usize,
        selection: Selection,
        known: Option<&Handle>,
        filled: Option<&Handle>,
    ) -> Result<Found, KernelError> {
        let dtype = Self::key_dtype::<E>();
        let keys = Elements {
            client: self.client,
            handle,
            dtype,
            length,
            largest: true,
            filled,
        };
        if dtype.size() == 8 {
            keys.select::<u64>(selection, self.options.k, known)
        } else {
            keys.select::<u32>(selection, self.options.k, known)
        }
    }

    /// Most elements of a load of which subranges have whole ones.
    fn width(&self, cut: &Cut) -> usize {
        let rows = Rows::contiguous(self.input.clone(), self.dtype, 1, 1 << cut.exponent);
        load_widths(self.client, &rows).max().unwrap_or(1)
    }

    pub(super) fn key_dtype<E: Element>() -> ElemType {
        E::Key::elem_type_native()
    }

    /// The k best delegates and their places.
    fn best<E: Element>(
        &self,
        plan: &Plan,
        keys: &Handle,
        count: usize,
    ) -> Result<Selected, KernelError> {
        let dtype = Self::key_dtype::<E>();
        let options = VectorOptions::new(self.options.k);
        let call = Call {
            client: self.client,
            input: keys,
            dtype,
            length: count,
            options: &options,
            index: U32,
            stats: None,
        };
        if dtype.size() == 8 {
            call.run::<u64>(plan)
        } else {
            call.run::<u32>(plan)
        }
    }

    /// Finds the keys of the delegates and, where there are several for each subrange, where they stand.
    fn delegates<E: Element>(
        &self,
        cut: &Cut,
        keys: &Handle,
    ) -> Result<Option<Handle>, KernelError> {
        if cut.staged {
            self.staged_delegates::<E>(cut, keys)?;
            return Ok(None);
        }
        let client = self.client;
        let count = cut.delegates(self.length);
        let key = Self::key_dtype::<E>();
        let positions = (cut.per_subrange > 1).then(|| allocate(client, "positions", count, U32));
        let positions = positions.transpose()?;
        let places = positions.as_ref();
        let places = places.map(|places| argument(places, "positions", U32, count));
        let width = self.width(cut);
        let loads = (1usize << cut.exponent) / width;
        let plane = plane_or_unit(client);
        let planes = units_per_cube(client, CUBE_UNITS.max(plane)) / plane;
        let lanes = loads.min(plane as usize);
        let flight = (loads / lanes).min(FLIGHT);
        // Short subranges are taken several at a time.
        let short = loads / lanes <= FLIGHT && cut.per_subrange == 1;
        let several = if short { FLIGHT / flight } else { 1 };
        let blueprint = DelegateBlueprint {
            team: Shape {
                lanes: lanes as u32,
                planes: 1,
                width,
                loads: 1,
                exact_fit: true,
            },
            flight,
            subranges: several,
            delegates: cut.per_subrange,
            largest: self.options.largest,
        };
        let teams = (plane as usize / lanes) * planes as usize;
        let subranges = self.length.div_ceil(1 << cut.exponent);
        let dim = CubeDim::new_2d(plane, planes);
        let grid = Grid::new(
            client,
            subranges.div_ceil(teams * several),
            dim,
            self.length,
        )?;
        let whole = self.length / width * width;
        // SAFETY: the kernel reads below `length` only, whole loads of whole subranges only.
        unsafe {
            find_delegates::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                argument(self.input, "input", self.dtype, whole)?,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(keys, "delegates", key, count)?,
                places.transpose()?.into(),
                self.length,
                cut.exponent,
                blueprint,
            );
        }
        Ok(positions)
    }

    fn staged_delegates<E: Element>(&self, cut: &Cut, keys: &Handle) -> Result<(), KernelError> {
        let client = self.client;
        let count = cut.delegates(self.length);
        let blueprint = StagedBlueprint {
            exponent: cut.exponent,
            width: self.width(cut),
            units: units_per_cube(client, staged::UNITS),
            largest: self.options.largest,
        };
        let dim = CubeDim::new_1d(blueprint.units);
        let cubes = count.div_ceil(blueprint.units as usize);
        let grid = Grid::new(client, cubes, dim, self.length)?;
        let whole = self.length / blueprint.width * blueprint.width;
        // SAFETY: the kernel reads below `length` only, whole loads of whole ones only.
        unsafe {
            find_staged::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                blueprint.width,
                argument(self.input, "input", self.dtype, whole)?,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(keys, "delegates", Self::key_dtype::<E>(), count)?,
                self.length,
                blueprint,
            );
        }
        Ok(())
    }

    /// The members in one launch of one cube.
    fn finish<E: Element>(
        &self,
        cut: &Cut,
        blueprint: &FinishBlueprint,
        keys: &Handle,
        best: Option<&Selected>,
        positions: Option<&Handle>,
        output: &Selected,
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let count = cut.delegates(self.length);
        let key = Self::key_dtype::<E>();
        let plane = blueprint.shape.plane_lanes();
        let dim = CubeDim::new_2d(plane, blueprint.shape.planes);
        let grid = Grid::new(client, 1, dim, self.length)?;
        let width = blueprint.shape.width;
        let whole = self.length / width * width;
        let places = best.map(|best| argument(&best.indices, "subranges", U32, k));
        let positions = positions.map(|positions| argument(positions, "positions", U32, count));
        let stats = self.stats.map(|stats| argument(stats, "stats", U32, 2));
        let several = blueprint.delegate_width(key.size());
        let delegates = match best {
            Some(best) => argument(&best.values, "delegates", key, k)?,
            None => argument(keys, "delegates", key, count.next_multiple_of(several))?,
        };
        // SAFETY: slots stand for elements below `length`; at most k members are written.
        unsafe {
            finish::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                several,
                argument(self.input, "input", self.dtype, whole)?,
                argument(self.input, "input", self.dtype, self.length)?,
                delegates,
                places.transpose()?.into(),
                positions.transpose()?.into(),
                argument(&output.values, "values", self.dtype, k)?,
                argument(&output.indices, "indices", self.index, k)?,
                stats.transpose()?.into(),
                SubrangesLaunch::new(self.length, count as u32, k as u32, cut.exponent),
                *blueprint,
                self.index,
            );
        }
        Ok(())
    }

    /// Few delegates and the output in one allocation: with two launches, each takes its time.
    fn buffers(&self, count: usize, key: ElemType) -> Result<(Handle, Selected), KernelError> {
        let k = self.options.k;
        let [keys, values, indices] = allocate_together(
            self.client,
            [
                ("delegates", count, key),
                ("values", k, self.dtype),
                ("indices", k, self.index),
            ],
        )?;
        Ok((keys, Selected { values, indices }))
    }

    fn output(&self) -> Result<Selected, KernelError> {
        let k = self.options.k;
        Ok(Selected {
            values: allocate(self.client, "values", k, self.dtype)?,
            indices: allocate(self.client, "indices", k, self.index)?,
        })
    }

    fn gather<E: Element>(
        &self,
        chosen: &Handle,
        slots: usize,
        exponent: u32,
    ) -> Result<Handle, KernelError> {
        let keys = allocate(self.client, "candidates", slots, Self::key_dtype::<E>())?;
        let grid = Grid::elementwise(self.client, slots, self.length)?;
        // SAFETY: the kernel reads below `length` and writes below `slots` only.
        unsafe {
            gather_candidates::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(chosen, "subranges", U32, self.options.k)?,
                argument(&keys, "candidates", Self::key_dtype::<E>(), slots)?,
                self.length,
                slots,
                exponent,
                self.options.largest,
            );
        }
        Ok(keys)
    }

    /// Values and indices of members given by their places in the vector, or by their slots in the subranges of chosen delegates, or by
    /// where these stand in a list.
    pub(super) fn fetch<E: Element>(
        &self,
        chosen: Option<(&Handle, u32, u32)>,
        listed: Option<&Handle>,
        members: &Handle,
    ) -> Result<Selected, KernelError> {
        let k = self.options.k;
        let output = self.output()?;
        let grid = Grid::elementwise(self.client, k, self.length)?;
        let (subranges, exponent, delegates) = chosen.unwrap_or((members, 0, 1));
        let slots = |listed: &Handle| listed.size_in_used() as usize / size_of::<u32>();
        let listed = listed.map(|listed| argument(listed, "slots", U32, slots(listed)));
        // SAFETY: slots stand for elements below `length`.
        unsafe {
            fetch_members::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(subranges, "subranges", U32, k)?,
                argument(members, "members", U32, k)?,
                listed.transpose()?.into(),
                argument(&output.values, "values", self.dtype, k)?,
                argument(&output.indices, "indices", self.index, k)?,
                k,
                exponent,
                delegates,
                chosen.is_none(),
                self.index,
            );
        }
        Ok(output)
    }
}
