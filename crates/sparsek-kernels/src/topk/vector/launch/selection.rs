//! Selection over many cubes.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::super::{
    kernels::{
        bitonic::{BitonicConfig, keep_best_runs},
        histogram::{
            HistogramCallLaunch, HistogramConfig, Start, count_bins, count_selected,
            find_key_ranges, list_selected,
        },
    },
    options::Selection,
    tuning::{BITONIC_TILE, CUBE_UNITS, HISTOGRAM_ITEMS, HISTOGRAM_UNITS, MAX_CUBES},
    types::{SHORT, U32},
};
use crate::{
    device::{plane_or_unit, units_per_cube},
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
    primitives::team::TeamShape,
    topk::{key::Element, options::TopkOptions, plan::load_widths, row::argtopk_rows, types::Rows},
};

pub(super) struct SelectionInput<'a> {
    pub client: &'a Client,
    pub handle: &'a Handle,
    pub dtype: ElemType,
    pub length: usize,
    pub largest: bool,
    /// Length on the device, whole loads; histograms only.
    pub filled: Option<&'a Handle>,
}

pub(super) struct SelectedPlaces {
    pub places: Handle,
    /// Of histograms.
    pub states: Option<Handle>,
}

impl<'a> SelectionInput<'a> {
    /// Selects the greatest.
    pub fn new(client: &'a Client, handle: &'a Handle, dtype: ElemType, length: usize) -> Self {
        Self { client, handle, dtype, length, largest: true, filled: None }
    }

    /// `start` is an earlier final range.
    pub fn select<E: Element>(
        &self,
        selection: Selection,
        k: usize,
        start: Option<&Handle>,
    ) -> Result<SelectedPlaces, KernelError> {
        let places = match selection {
            Selection::Rows => {
                let rows = Rows::contiguous(self.handle.clone(), self.dtype, 1, self.length);
                let options = TopkOptions { largest: self.largest, ..TopkOptions::new(k) };
                argtopk_rows(self.client, &rows, &options, U32, None)?
            }
            Selection::Bitonic => self.bitonic::<E>(k)?,
            _ => return self.histograms::<E>(selection, k, start),
        };
        Ok(SelectedPlaces { places, states: None })
    }

    fn bitonic<E: Element>(&self, k: usize) -> Result<Handle, KernelError> {
        let key = E::Key::elem_type_native();
        let run = bitonic_run(k);
        let (mut best, mut places) = self.keep_best_runs::<E>(k, None)?;
        let mut tiles = self.length.div_ceil(BITONIC_TILE);
        while tiles > 1 {
            let length = tiles * run;
            let left = SelectionInput::new(self.client, &best, key, length);
            let kept = if key.size() == 8 {
                left.keep_best_runs::<u64>(k, Some(&places))?
            } else {
                left.keep_best_runs::<u32>(k, Some(&places))?
            };
            (best, places) = kept;
            tiles = length.div_ceil(BITONIC_TILE);
        }
        Ok(places)
    }

    fn keep_best_runs<E: Element>(
        &self,
        k: usize,
        places: Option<&Handle>,
    ) -> Result<(Handle, Handle), KernelError> {
        let client = self.client;
        let tiles = self.length.div_ceil(BITONIC_TILE);
        let config = BitonicConfig {
            run: bitonic_run(k),
            units: units_per_cube(client, CUBE_UNITS),
            largest: self.largest,
            last: tiles == 1,
        };
        let key = E::Key::elem_type_native();
        let kept = tiles * config.run;
        let best = allocate(client, "best", kept, key)?;
        let best_places = allocate(client, "places", kept, U32)?;
        let dim = CubeDim::new_1d(config.units);
        let grid = Grid::new(client, tiles, dim, self.length)?;
        let places = places.map(|places| argument(places, "places", U32, self.length));
        // SAFETY: reads stay below `length`; each tile writes one run.
        unsafe {
            keep_best_runs::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(self.handle, "input", self.dtype, self.length)?,
                places.transpose()?.into(),
                argument(&best, "best", key, kept)?,
                argument(&best_places, "places", U32, kept)?,
                self.length,
                k as u32,
                config,
            );
        }
        Ok((best, best_places))
    }

    fn histogram_call<E: Element, N: Size>(
        &self,
        per_cube: usize,
        k: usize,
    ) -> Result<HistogramCallLaunch<E, N>, KernelError> {
        let elements = argument(self.handle, "input", self.dtype, self.length)?;
        let filled = self.filled.map(|filled| argument(filled, "filled", U32, 1)).transpose()?;
        Ok(HistogramCallLaunch::new(elements, filled.into(), self.length, per_cube, k as u32))
    }

    fn histograms<E: Element>(
        &self,
        selection: Selection,
        k: usize,
        start: Option<&Handle>,
    ) -> Result<SelectedPlaces, KernelError> {
        let SelectionInput { client, handle, dtype, length, largest, .. } = *self;
        let key = E::Key::elem_type_native();
        let plane = plane_or_unit(client);
        let units = units_per_cube(client, HISTOGRAM_UNITS.max(plane));
        let config = HistogramConfig {
            bits: if dtype == SHORT { 16 } else { 8 * key.size() as u32 },
            largest,
            shape: TeamShape::of_cube(units, plane),
        };
        let bins = config.bins();
        let histograms = allocate(client, "histograms", bins, U32)?;
        let states = allocate(client, "states", config.states(), key)?;
        let places = allocate(client, "selected", k, U32)?;
        let tile = (units * HISTOGRAM_ITEMS) as usize;
        let per_cube = length.div_ceil(MAX_CUBES).next_multiple_of(tile);
        let cubes = length.div_ceil(per_cube);
        let counts = allocate(client, "counts", 2 * cubes, U32)?;
        let dim = CubeDim::new_2d(plane, units / plane);
        let grid = || Grid::new(client, cubes, dim, length);
        let row = Rows::contiguous(handle.clone(), dtype, 1, length);
        let width = load_widths(client, &row).max().unwrap_or(1);
        let bins_of = || argument(&histograms, "histograms", U32, bins);
        let states_of = || argument(&states, "states", key, config.states());
        let counts_of = || argument(&counts, "counts", U32, 2 * cubes);
        let (start, start_keys) = match (selection, start) {
            (_, Some(states)) => (Start::FirstTopk, Some(states.clone())),
            (Selection::Bucket, None) => {
                let ranges = allocate(client, "ranges", 2 * cubes, key)?;
                (Start::CubeRanges, Some(ranges))
            }
            _ => (Start::FirstTopk, None),
        };
        let start_of = |keys: &Handle| {
            let words = keys.size_in_used() as usize / key.size();
            argument(keys, "ranges", key, words)
        };
        // SAFETY: reads stay below `length`; at most k places are written.
        unsafe {
            if let (Start::CubeRanges, Some(ranges)) = (start, &start_keys) {
                let grid = grid()?;
                find_key_ranges::launch_unchecked::<E>(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    width,
                    self.histogram_call(per_cube, k)?,
                    bins_of()?,
                    start_of(ranges)?,
                    config,
                );
            } else {
                fill_zero(client, &histograms, U32, bins)?;
            }
            for pass in 0..config.passes() {
                let grid = grid()?;
                let start_keys = start_keys.as_ref().filter(|_| pass == 0).map(start_of);
                let begins = start_keys.is_some();
                count_bins::launch_unchecked::<E>(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    width,
                    self.histogram_call(per_cube, k)?,
                    bins_of()?,
                    states_of()?,
                    start_keys.transpose()?.into(),
                    pass,
                    begins.then_some(start),
                    config,
                );
            }
            let count_grid = grid()?;
            count_selected::launch_unchecked::<E>(
                client,
                count_grid.count,
                count_grid.dim,
                count_grid.address,
                width,
                self.histogram_call(per_cube, k)?,
                bins_of()?,
                states_of()?,
                counts_of()?,
                config,
            );
            let list_grid = grid()?;
            list_selected::launch_unchecked::<E>(
                client,
                list_grid.count,
                list_grid.dim,
                list_grid.address,
                width,
                self.histogram_call(per_cube, k)?,
                states_of()?,
                counts_of()?,
                argument(&places, "selected", U32, k)?,
                config,
            );
        }
        Ok(SelectedPlaces { places, states: Some(states) })
    }
}

fn bitonic_run(k: usize) -> usize {
    k.next_power_of_two().max(2)
}
