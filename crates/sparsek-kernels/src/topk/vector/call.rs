//! The steps of a call: delegates, the subranges that they choose, the members among their elements.

use cubecl::{features::Plane, ir::ElemType, prelude::*, server::Handle};

use super::{
    U32, VectorOptions,
    delegates::{DelegateBlueprint, Places, fetch_members, find_delegates, gather_candidates},
    elements::Elements,
    filter::{ChosenLaunch, FilterBlueprint, count_reaching, list_reaching},
    plan::{CUBE_UNITS, FLIGHT, PIECE, Plan, Selection},
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument, units_per_cube},
    topk::{
        Rows, TopkOptions, argtopk,
        element::Element,
        launch::load_widths,
        routines::team::Shape,
        select::{is_llvmpipe, plane_size},
        topk,
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
}

impl Call<'_> {
    pub fn run<E: Element>(
        &self,
        plan: &Plan,
        values: &Handle,
        indices: &Handle,
    ) -> Result<(), KernelError> {
        let elements = Elements {
            client: self.client,
            handle: self.input,
            dtype: self.dtype,
            length: self.length,
            largest: self.options.largest,
        };
        let output = (values, indices);
        let Some(exponent) = plan.exponent else {
            let members = elements.select::<E>(plan.last, self.options.k)?;
            let found = Found {
                chosen: &members,
                listing: &members,
                slots: self.options.k,
                members: &members,
                places: Places::Direct,
            };
            return self.fetch::<E>(&found, 0, output);
        };
        if plan.filter {
            return self.filtered::<E>(exponent, output);
        }
        let chosen = {
            let keys = self.delegates::<E>(exponent)?;
            let count = self.length.div_ceil(1 << exponent);
            self.best_keys::<E>(plan.first, &keys, count)?
        };
        let slots = {
            let count = self.options.k << exponent;
            let keys = self.gather::<E>(&chosen, count, exponent)?;
            self.best_keys::<E>(plan.last, &keys, count)?
        };
        let found = Found {
            chosen: &chosen,
            listing: &slots,
            slots: self.options.k,
            members: &slots,
            places: Places::Slots,
        };
        self.fetch::<E>(&found, exponent, output)
    }

    /// The members among those elements of chosen subranges that reach the least of their delegates.
    fn filtered<E: Element>(
        &self,
        exponent: u32,
        output: (&Handle, &Handle),
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let keys = self.delegates::<E>(exponent)?;
        let row = |keys: Handle, length: usize| Rows::contiguous(keys, U32, 1, length);
        let row_options = TopkOptions::new(k);
        let delegates = row(keys, self.length.div_ceil(1 << exponent));
        let best = topk(client, &delegates, &row_options, U32, None)?;
        let cut = exponent.min(PIECE);
        let pieces = k << (exponent - cut);
        let slots = k << exponent;
        let counts = allocate(client, "counts", pieces, U32)?;
        let keys = allocate(client, "candidates", slots, U32)?;
        let listing = allocate(client, "slots", slots, U32)?;
        let total = allocate(client, "total", 1, U32)?;
        let (plane, planes) = self.planes();
        let lanes = plane.min(1 << cut);
        let blueprint = FilterBlueprint {
            team: shape(lanes, 1),
            largest: self.options.largest,
        };
        let teams = (plane / lanes * planes) as usize;
        let grid = || {
            let dim = CubeDim::new_2d(plane, planes);
            Grid::new(client, pieces.div_ceil(teams), dim, self.length)
        };
        let chosen = || ChosenLaunch::new(self.length, k as u32, exponent, cut);
        let elements = || argument(self.input, "input", self.dtype, self.length);
        let subranges = || argument(&best.indices, "subranges", U32, k);
        let delegates = || argument(&best.values, "delegates", U32, k);
        let numbers = || argument(&counts, "counts", U32, pieces);
        // SAFETY: elements are read below `length`, and no more written than there are slots.
        unsafe {
            let place = grid()?;
            count_reaching::launch_unchecked::<E>(
                client,
                place.count,
                place.dim,
                place.address,
                elements()?,
                subranges()?,
                delegates()?,
                numbers()?,
                chosen(),
                blueprint,
            );
            let place = grid()?;
            list_reaching::launch_unchecked::<E>(
                client,
                place.count,
                place.dim,
                place.address,
                elements()?,
                subranges()?,
                delegates()?,
                numbers()?,
                argument(&keys, "candidates", U32, slots)?,
                argument(&listing, "slots", U32, slots)?,
                argument(&total, "total", U32, 1)?,
                chosen(),
                blueprint,
            );
        }
        let candidates = row(keys, slots).with_lengths(total);
        let members = argtopk(client, &candidates, &row_options, U32, None)?;
        let found = Found {
            chosen: &best.indices,
            listing: &listing,
            slots,
            members: &members,
            places: Places::Listed,
        };
        self.fetch::<E>(&found, exponent, output)
    }

    /// Units of a plane, and planes of a cube.
    fn planes(&self) -> (u32, u32) {
        let client = self.client;
        let planes = client.features().plane.contains(Plane::Ops) || is_llvmpipe(client);
        let plane = plane_size(client).filter(|_| planes).unwrap_or(1);
        (plane, units_per_cube(client, CUBE_UNITS.max(plane)) / plane)
    }

    fn key_dtype<E: Element>() -> ElemType {
        E::Key::elem_type_native()
    }

    fn delegates<E: Element>(&self, exponent: u32) -> Result<Handle, KernelError> {
        let client = self.client;
        let count = self.length.div_ceil(1 << exponent);
        let keys = allocate(client, "delegates", count, Self::key_dtype::<E>())?;
        let rows = Rows::contiguous(self.input.clone(), self.dtype, 1, 1 << exponent);
        let width = load_widths(client, &rows).max().unwrap_or(1);
        let loads = (1usize << exponent) / width;
        let (plane, planes) = self.planes();
        let lanes = loads.min(plane as usize);
        let blueprint = DelegateBlueprint {
            team: shape(lanes as u32, width),
            flight: (loads / lanes).min(FLIGHT),
            largest: self.options.largest,
        };
        let teams = (plane as usize / lanes) * planes as usize;
        let grid = Grid::new(
            client,
            count.div_ceil(teams),
            CubeDim::new_2d(plane, planes),
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
                argument(&keys, "delegates", Self::key_dtype::<E>(), count)?,
                self.length,
                exponent,
                blueprint,
            );
        }
        Ok(keys)
    }

    /// The places of the k greatest of some keys, in order.
    fn best_keys<E: Element>(
        &self,
        selection: Selection,
        keys: &Handle,
        count: usize,
    ) -> Result<Handle, KernelError> {
        let keys = Elements {
            client: self.client,
            handle: keys,
            dtype: Self::key_dtype::<E>(),
            length: count,
            largest: true,
        };
        if Self::key_dtype::<E>().size() == 8 {
            keys.select::<u64>(selection, self.options.k)
        } else {
            keys.select::<u32>(selection, self.options.k)
        }
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

    fn fetch<E: Element>(
        &self,
        found: &Found,
        exponent: u32,
        (values, indices): (&Handle, &Handle),
    ) -> Result<(), KernelError> {
        let k = self.options.k;
        let grid = Grid::elementwise(self.client, k, self.length)?;
        // SAFETY: slots stand for elements below `length`.
        unsafe {
            fetch_members::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(found.chosen, "subranges", U32, k)?,
                argument(found.listing, "slots", U32, found.slots)?,
                argument(found.members, "members", U32, k)?,
                argument(values, "values", self.dtype, k)?,
                argument(indices, "indices", self.index, k)?,
                k,
                exponent,
                found.places,
                self.index,
            );
        }
        Ok(())
    }
}

/// How `lanes` units share a subrange or a piece of one.
fn shape(lanes: u32, width: usize) -> Shape {
    Shape {
        lanes,
        planes: 1,
        width,
        loads: 1,
        exact_fit: true,
    }
}

/// Where members were found.
struct Found<'a> {
    /// The chosen subranges.
    chosen: &'a Handle,
    /// Slots of what was selected from, and how many there are.
    listing: &'a Handle,
    slots: usize,
    members: &'a Handle,
    places: Places,
}
