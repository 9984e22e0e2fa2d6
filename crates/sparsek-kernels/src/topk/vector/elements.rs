//! Elements or keys of which the k best are found, by one of the selections.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    U32,
    plan::{CUBE_UNITS, MAX_CUBES, Selection},
    radix::{ITEMS, RadixBlueprint, count_digits, count_members, list_members},
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument, units_per_cube},
    topk::{
        Rows, TopkOptions, argtopk,
        element::Element,
        launch::{load_widths, zero},
    },
};

/// Elements to select from.
pub(super) struct Elements<'a> {
    pub client: &'a Client,
    pub handle: &'a Handle,
    pub dtype: ElemType,
    pub length: usize,
    pub largest: bool,
}

impl Elements<'_> {
    /// The places of the k best, in order, as u32.
    pub fn select<E: Element>(
        &self,
        selection: Selection,
        k: usize,
    ) -> Result<Handle, KernelError> {
        match selection {
            Selection::Rows => {
                let rows = Rows::contiguous(self.handle.clone(), self.dtype, 1, self.length);
                let options = TopkOptions {
                    largest: self.largest,
                    ..TopkOptions::new(k)
                };
                argtopk(self.client, &rows, &options, U32, None)
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
        let row = Rows::contiguous(handle.clone(), dtype, 1, length);
        let width = load_widths(client, &row).max().unwrap_or(1);
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
                    width,
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
                width,
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
                width,
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
