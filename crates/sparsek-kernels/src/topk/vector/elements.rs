//! Elements or keys of which the k best are found, by one of the selections.

use crate::device::plane_or_unit;
use crate::device::units_per_cube;
use crate::launch::fill_zero;
use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    SHORT, U32,
    bitonic::{BitonicBlueprint, TILE, keep_runs},
    options::Selection,
    plan::{CUBE_UNITS, HISTOGRAM_UNITS, MAX_CUBES},
    radix::{ITEMS, RadixBlueprint, Start, count_digits, count_members, find_ranges, list_members},
};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;
use crate::primitives::team::TeamShape as Shape;
use crate::topk::key::Element;
use crate::topk::options::TopkOptions;
use crate::topk::plan::load_widths;
use crate::topk::row::argtopk_rows;
use crate::topk::types::Rows;

/// Elements to select from.
pub(super) struct Elements<'a> {
    pub client: &'a Client,
    pub handle: &'a Handle,
    pub dtype: ElemType,
    pub length: usize,
    pub largest: bool,
    /// How many there are, where the device knows it: fewer than `length`, and whole loads. Only histograms take it.
    pub filled: Option<&'a Handle>,
}

impl Elements<'_> {
    /// The k best, by a row, or by histograms whose first range is that of all keys or that of `known` ones.
    pub fn select<E: Element>(
        &self,
        selection: Selection,
        k: usize,
        known: Option<&Handle>,
    ) -> Result<Found, KernelError> {
        match selection {
            Selection::Rows => {
                let rows = Rows::contiguous(self.handle.clone(), self.dtype, 1, self.length);
                let options = TopkOptions {
                    largest: self.largest,
                    ..TopkOptions::new(k)
                };
                Ok(Found {
                    members: argtopk_rows(self.client, &rows, &options, U32, None)?,
                    notes: None,
                })
            }
            Selection::Bitonic => Ok(Found {
                members: self.by_runs::<E>(k)?,
                notes: None,
            }),
            _ => self.by_histograms::<E>(selection, k, known),
        }
    }

    /// The best of each tile, then of what is left, until one tile is.
    fn by_runs<E: Element>(&self, k: usize) -> Result<Handle, KernelError> {
        let key = E::Key::elem_type_native();
        let tiles = self.length.div_ceil(TILE);
        let (best, kept) = self.keep_runs::<E>(k, None)?;
        if tiles == 1 {
            return Ok(kept);
        }
        let (mut best, mut kept) = (best, kept);
        let run = run(k);
        let mut length = tiles * run;
        loop {
            let left = Elements {
                client: self.client,
                handle: &best,
                dtype: key,
                length,
                largest: true,
                filled: None,
            };
            let (keys, places) = if key.size() == 8 {
                left.keep_runs::<u64>(k, Some(&kept))?
            } else {
                left.keep_runs::<u32>(k, Some(&kept))?
            };
            if length <= TILE {
                return Ok(places);
            }
            length = length.div_ceil(TILE) * run;
            (best, kept) = (keys, places);
        }
    }

    /// The best of each tile and their places, or of one tile the k best in order.
    fn keep_runs<E: Element>(
        &self,
        k: usize,
        places: Option<&Handle>,
    ) -> Result<(Handle, Handle), KernelError> {
        let client = self.client;
        let tiles = self.length.div_ceil(TILE);
        let blueprint = BitonicBlueprint {
            run: run(k),
            units: units_per_cube(client, CUBE_UNITS),
            largest: self.largest,
            last: tiles == 1,
        };
        let key = E::Key::elem_type_native();
        let kept = tiles * blueprint.run;
        let best = allocate(client, "best", kept, key)?;
        let slots = allocate(client, "places", kept, U32)?;
        let dim = CubeDim::new_1d(blueprint.units);
        let grid = Grid::new(client, tiles, dim, self.length)?;
        let places = places.map(|places| argument(places, "places", U32, self.length));
        // SAFETY: elements are read below `length`, a run written for each tile.
        unsafe {
            keep_runs::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(self.handle, "input", self.dtype, self.length)?,
                places.transpose()?.into(),
                argument(&best, "best", key, kept)?,
                argument(&slots, "places", U32, kept)?,
                self.length,
                k as u32,
                blueprint,
            );
        }
        Ok((best, slots))
    }

    fn by_histograms<E: Element>(
        &self,
        selection: Selection,
        k: usize,
        known: Option<&Handle>,
    ) -> Result<Found, KernelError> {
        let Elements {
            client,
            handle,
            dtype,
            length,
            largest,
            filled,
        } = *self;
        let key = E::Key::elem_type_native();
        let plane = plane_or_unit(client);
        let units = units_per_cube(client, HISTOGRAM_UNITS.max(plane));
        let blueprint = RadixBlueprint {
            // Of short keys as many as are stored.
            bits: if dtype == SHORT {
                16
            } else {
                8 * key.size() as u32
            },
            largest,
            shape: Shape::of_cube(units, plane),
        };
        let bins = blueprint.bins();
        let histograms = allocate(client, "histograms", bins, U32)?;
        let notes = allocate(client, "notes", blueprint.notes(), key)?;
        let members = allocate(client, "members", k, U32)?;
        let tile = (units * ITEMS) as usize;
        let stretch = length.div_ceil(MAX_CUBES).next_multiple_of(tile);
        let cubes = length.div_ceil(stretch);
        let counts = allocate(client, "counts", 2 * cubes, U32)?;
        let dim = CubeDim::new_2d(plane, units / plane);
        let place = || Grid::new(client, cubes, dim, length);
        let elements = || argument(handle, "input", dtype, length);
        let row = Rows::contiguous(handle.clone(), dtype, 1, length);
        let width = load_widths(client, &row).max().unwrap_or(1);
        let filled = || {
            let filled = filled.map(|filled| argument(filled, "filled", U32, 1));
            Ok::<_, KernelError>(filled.transpose()?.into())
        };
        let bins_of = || argument(&histograms, "histograms", U32, bins);
        let notes_of = || argument(&notes, "notes", key, blueprint.notes());
        let (start, found) = match (selection, known) {
            (_, Some(known)) => (Start::Notes, Some(known.clone())),
            (Selection::Bucket, None) => {
                let ranges = allocate(client, "ranges", 2 * cubes, key)?;
                (Start::Ranges, Some(ranges))
            }
            _ => (Start::Notes, None),
        };
        let words = |found: &Handle| found.size_in_used() as usize / key.size();
        let found_of = |found: &Handle| argument(found, "ranges", key, words(found));
        // SAFETY: elements are read below `length`, at most k members written.
        unsafe {
            if let (Start::Ranges, Some(ranges)) = (start, &found) {
                let grid = place()?;
                find_ranges::launch_unchecked::<E>(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    width,
                    elements()?,
                    bins_of()?,
                    found_of(ranges)?,
                    filled()?,
                    length,
                    blueprint,
                );
            } else {
                fill_zero(client, &histograms, U32, bins)?;
            }
            for pass in 0..blueprint.passes() {
                let grid = place()?;
                let found = found.as_ref().filter(|_| pass == 0).map(found_of);
                count_digits::launch_unchecked::<E>(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    width,
                    elements()?,
                    bins_of()?,
                    notes_of()?,
                    found.transpose()?.into(),
                    filled()?,
                    length,
                    k as u32,
                    pass,
                    start,
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
                bins_of()?,
                notes_of()?,
                argument(&counts, "counts", U32, 2 * cubes)?,
                filled()?,
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
                notes_of()?,
                argument(&counts, "counts", U32, 2 * cubes)?,
                argument(&members, "members", U32, k)?,
                filled()?,
                length,
                k as u32,
                stretch,
                blueprint,
            );
        }
        Ok(Found {
            members,
            notes: Some(notes),
        })
    }
}

/// The run that bitonic selection takes.
fn run(k: usize) -> usize {
    k.next_power_of_two().max(2)
}

/// The k best of some elements.
pub(super) struct Found {
    /// Their places, in order, as u32.
    pub members: Handle,
    /// What histograms told of them.
    pub notes: Option<Handle>,
}
