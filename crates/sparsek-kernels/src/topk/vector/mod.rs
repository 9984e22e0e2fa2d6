//! Top-k of one vector of any length, by the delegates of its subranges (Dr. Top-k).
//!
//! The best element of each subrange of 2^α is its delegate. The k best delegates choose k subranges, and these hold
//! all members: a subrange that is not chosen has k better elements outside. Among equal delegates the first are
//! chosen, so that exactly k subranges are, however many elements are equal. The vector is read once; what is
//! selected from then has n / 2^α and k · 2^α elements. The contract is that of [`super::topk`].

mod delegates;
mod plan;
mod radix;
mod stream;

use cubecl::{
    features::Plane,
    ir::{ElemType, FloatKind, IntKind, UIntKind},
    prelude::*,
    server::Handle,
};

pub use plan::{Selection, Subrange, VectorOptions};
pub use stream::{Best, TopkStream};

use self::{
    delegates::{DelegateBlueprint, fetch_members, find_delegates, gather_candidates},
    plan::{CUBE_UNITS, FLIGHT, MAX_CUBES, Plan},
    radix::{ITEMS, RadixBlueprint, count_digits, count_members, list_members},
};
use super::{
    Rows, Selected, TopkOptions,
    element::Element,
    launch::{
        Job, SUPPORTED_DTYPES, load_widths, require_element, require_index, with_element, zero,
    },
    routines::team::Shape,
    select::{is_llvmpipe, plane_size},
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument, require_dtype, units_per_cube},
};

const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// Values and indices of the k best elements of the `length` elements of a buffer. `index` is the dtype of the
/// indices: i64, or i32 and u32 where these can number the elements.
///
/// Cost: one read of the vector, and what the selections from n / 2^α delegates and k · 2^α elements of chosen
/// subranges take: five reads each by digits (eight for 64-bit dtypes), from caches where they fit. α is half of
/// log2(n / k); below n = 16 k the whole vector is selected from by digits. Scratch: the larger of n / 2^α and k · 2^α
/// keys of 4 bytes (8 for 64-bit dtypes), 8 k bytes and 32 KiB, whatever the values. There is no gradient at this level:
/// it is [`super::scatter`] of that of the values.
///
/// ```no_run
/// use cubecl::prelude::*;
/// use sparsek_kernels::topk::{VectorOptions, topk_vector};
///
/// # fn run(client: &cubecl::client::Client) -> Result<(), sparsek_kernels::KernelError> {
/// let scores = client.create_from_slice(f32::as_bytes(&[0.5, 3.0, -1.0, 3.0]));
/// let options = VectorOptions { sorted: true, ..VectorOptions::new(2) };
/// let (f32, i64) = (f32::elem_type_native(), i64::elem_type_native());
/// let best = topk_vector(client, &scores, f32, 4, &options, i64)?;
/// let indices = client.read_one(best.indices).unwrap();
/// assert_eq!(i64::from_bytes(&indices), [1, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`KernelError`] as for [`super::topk`], and when the selections would have to number 2^32 elements or more, or
/// cannot run on this device. Nothing is launched then.
pub fn topk_vector(
    client: &Client,
    input: &Handle,
    dtype: ElemType,
    length: usize,
    options: &VectorOptions,
    index: ElemType,
) -> Result<Selected, KernelError> {
    require_element(client, dtype)?;
    require_index(index)?;
    require_dtype(client, index)?;
    argument(input, "input", dtype, length)?;
    let plan = Plan::new(client, dtype, length, options, index)?;
    let values = allocate(client, "values", options.k, dtype)?;
    let indices = allocate(client, "indices", options.k, index)?;
    if options.k == 0 {
        return Ok(Selected { values, indices });
    }
    let call = Call {
        client,
        input,
        dtype,
        length,
        options,
        index,
    };
    with_element!(dtype, E => call.run::<E>(&plan, &values, &indices))?;
    if !options.sorted {
        return Ok(Selected { values, indices });
    }
    let rows = Rows::contiguous(input.clone(), dtype, 1, length);
    let options = TopkOptions {
        largest: options.largest,
        sorted: true,
        ..TopkOptions::new(options.k)
    };
    let job = Job {
        client,
        input: &rows,
        options: &options,
        index,
    };
    job.order(values, indices)
}

/// A checked call.
struct Call<'a> {
    client: &'a Client,
    input: &'a Handle,
    dtype: ElemType,
    length: usize,
    options: &'a VectorOptions,
    index: ElemType,
}

impl Call<'_> {
    fn run<E: Element>(
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
        let Some(exponent) = plan.exponent else {
            let slots = elements.select::<E>(plan.last, self.options.k)?;
            return self.fetch::<E>(&slots, &slots, None, values, indices);
        };
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
        self.fetch::<E>(&chosen, &slots, Some(exponent), values, indices)
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
        let planes = client.features().plane.contains(Plane::Ops) || is_llvmpipe(client);
        let plane = plane_size(client).filter(|_| planes).unwrap_or(1);
        let lanes = loads.min(plane as usize);
        let planes = units_per_cube(client, CUBE_UNITS.max(plane)) / plane;
        let blueprint = DelegateBlueprint {
            team: Shape {
                lanes: lanes as u32,
                planes: 1,
                width,
                loads: 1,
                exact_fit: true,
            },
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
        chosen: &Handle,
        slots: &Handle,
        exponent: Option<u32>,
        values: &Handle,
        indices: &Handle,
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
                argument(chosen, "subranges", U32, k)?,
                argument(slots, "slots", U32, k)?,
                argument(values, "values", self.dtype, k)?,
                argument(indices, "indices", self.index, k)?,
                k,
                exponent.unwrap_or(0),
                exponent.is_none(),
                self.index,
            );
        }
        Ok(())
    }
}

/// Elements to select from.
struct Elements<'a> {
    client: &'a Client,
    handle: &'a Handle,
    dtype: ElemType,
    length: usize,
    largest: bool,
}

impl Elements<'_> {
    /// The places of the k best, in order, as u32.
    fn select<E: Element>(&self, selection: Selection, k: usize) -> Result<Handle, KernelError> {
        match selection {
            Selection::Rows => {
                let rows = Rows::contiguous(self.handle.clone(), self.dtype, 1, self.length);
                let options = TopkOptions {
                    largest: self.largest,
                    ..TopkOptions::new(k)
                };
                super::argtopk(self.client, &rows, &options, U32, None)
            }
            // A plan has chosen.
            _ => self.radix::<E>(k),
        }
    }

    fn radix<E: Element>(&self, k: usize) -> Result<Handle, KernelError> {
        let Elements {
            client,
            handle,
            dtype,
            length,
            largest,
        } = *self;
        let units = units_per_cube(client, CUBE_UNITS);
        let blueprint = RadixBlueprint {
            bits: 8 * E::Key::elem_type_native().size() as u32,
            largest,
            units,
        };
        let words = blueprint.state();
        let state = allocate(client, "histograms", words, U32)?;
        zero(client, &state, U32, words)?;
        let members = allocate(client, "members", k, U32)?;
        let tile = (units * ITEMS) as usize;
        let stretch = length.div_ceil(MAX_CUBES).next_multiple_of(tile);
        let cubes = length.div_ceil(stretch);
        let counts = allocate(client, "counts", 2 * cubes, U32)?;
        let place = || Grid::new(client, cubes, CubeDim::new_1d(units), length);
        let elements = || argument(handle, "input", dtype, length);
        let state = || argument(&state, "histograms", U32, words);
        // SAFETY: elements are read below `length`, at most k members written.
        unsafe {
            for pass in 0..blueprint.passes() {
                let grid = place()?;
                count_digits::launch_unchecked::<E>(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    elements()?,
                    state()?,
                    length,
                    k as u32,
                    pass,
                    blueprint,
                );
            }
            let grid = place()?;
            count_members::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                elements()?,
                state()?,
                argument(&counts, "counts", U32, 2 * cubes)?,
                length,
                k as u32,
                stretch,
                blueprint,
            );
            let grid = place()?;
            list_members::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                elements()?,
                state()?,
                argument(&counts, "counts", U32, 2 * cubes)?,
                argument(&members, "members", U32, k)?,
                length,
                stretch,
                blueprint,
            );
        }
        Ok(members)
    }
}
