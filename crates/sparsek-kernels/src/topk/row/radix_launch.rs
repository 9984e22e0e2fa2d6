use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
    server::Handle,
};

use super::{
    job::Job,
    layout::RowLayoutLaunch,
    radix_sort::{
        DIGIT_BITS, DIGITS, Pass, RadixConfig, TiledRowsLaunch, UnsortedRowsLaunch, count_digits,
        gather_sorted, scatter_digits, sort_tiles, sum_counts, write_keys,
    },
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument},
    topk::{
        key::{Element, is_single, with_element},
        plan::radix_items,
        types::{Rows, Selected},
    },
};

const U32: ElemType = ElemType::UInt(UIntKind::U32);

struct Unsorted<'a> {
    rows: Rows,
    indices: Option<&'a Handle>,
}

impl Job<'_> {
    pub(super) fn radix_sort<E: Element>(
        &self,
        values: &Handle,
        indices: &Handle,
    ) -> Result<Option<Selected>, KernelError> {
        let (rows, k) = (self.input.rows, self.options.k);
        let rows = Rows::contiguous(values.clone(), self.input.dtype, rows, k);
        self.sort_rows::<E>(&Unsorted { rows, indices: Some(indices) }, true)
    }

    /// None where the device cannot.
    pub fn sort_input(&self, values: bool) -> Result<Option<Selected>, KernelError> {
        let input = Unsorted { rows: self.input.clone(), indices: None };
        with_element!(self.input.dtype, E => self.sort_rows::<E>(&input, values))
    }

    fn sort_rows<E: Element>(
        &self,
        input: &Unsorted,
        values: bool,
    ) -> Result<Option<Selected>, KernelError> {
        let Rows { dtype, rows, cols, .. } = input.rows;
        let key = E::Key::elem_type_native();
        let Some(items) = radix_items(self.client, rows * cols, cols, key.size()) else {
            return Ok(None);
        };
        let config = RadixConfig {
            plane: self.plane_size(),
            items,
            largest: self.options.largest,
            short: dtype.size() == 2 && is_single(dtype),
            strided: input.rows.col_stride != 1,
            values,
        };
        let count = if values { rows * cols } else { 1 };
        let sorted = Selected {
            values: allocate(self.client, "values", count, dtype)?,
            indices: allocate(self.client, "indices", rows * cols, self.index)?,
        };
        if cols <= config.tile() {
            self.sort_tiles::<E>(input, &sorted, config)?;
        } else {
            self.sort_long_rows::<E>(input, &sorted, config)?;
        }
        Ok(Some(sorted))
    }

    fn sort_tiles<E: Element>(
        &self,
        input: &Unsorted,
        sorted: &Selected,
        config: RadixConfig,
    ) -> Result<(), KernelError> {
        let dim = CubeDim::new_2d(config.plane, config.planes());
        let grid = Grid::new(self.client, input.rows.rows, dim, self.elements())?;
        let [values, indices] = self.sorted_arguments(input, sorted, config)?;
        // SAFETY: rows, strides and lengths checked; places lie inside rows.
        unsafe {
            sort_tiles::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                self.unsorted(input)?,
                values,
                indices,
                config,
                8 * input.rows.dtype.size() as u32,
                self.index,
            );
        }
        Ok(())
    }

    fn sort_long_rows<E: Element>(
        &self,
        input: &Unsorted,
        sorted: &Selected,
        config: RadixConfig,
    ) -> Result<(), KernelError> {
        let client = self.client;
        let Rows { dtype, rows, cols, .. } = input.rows;
        let (count, key) = (rows * cols, E::Key::elem_type_native());
        let tiles = cols.div_ceil(config.tile());
        let digits = rows * DIGITS as usize;
        let key_buffer = || allocate(client, "keys", count, key);
        let place_buffer = || allocate(client, "places", count, U32);
        let mut keys = [key_buffer()?, key_buffer()?];
        let mut places = [place_buffer()?, place_buffer()?];
        let counts = allocate(client, "counts", digits * tiles, U32)?;
        let totals = allocate(client, "totals", digits, U32)?;
        let key_argument = |handle: &Handle| argument(handle, "keys", key, count);
        let place_argument = |handle: &Handle| argument(handle, "places", U32, count);
        let count_argument = || argument(&counts, "counts", U32, digits * tiles);
        let total_argument = || argument(&totals, "totals", U32, digits);
        let per_element = || Grid::elementwise(client, count, self.elements());
        let dim = CubeDim::new_2d(config.plane, config.planes());
        let per_tile = || Grid::new(client, rows * tiles, dim, count.max(digits * tiles));

        let grid = per_element()?;
        // SAFETY: as in `sort_tiles`; each unit writes one key.
        unsafe {
            write_keys::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                self.unsorted(input)?,
                key_argument(&keys[0])?,
                config,
                self.index,
            );
        }
        let passes = 8 * dtype.size() as u32 / DIGIT_BITS;
        for pass in 0..passes {
            let call = || {
                let shift = pass * DIGIT_BITS;
                TiledRowsLaunch::new(rows, cols as u32, tiles as u32, shift)
            };
            let grid = per_tile()?;
            // SAFETY: cubes read inside tiles; each unit writes one count.
            unsafe {
                count_digits::launch_unchecked::<E::Key>(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    key_argument(&keys[0])?,
                    count_argument()?,
                    call(),
                    config,
                );
            }
            let cubes = digits.div_ceil(config.planes() as usize);
            let grid = Grid::new(client, cubes, dim, digits * tiles)?;
            // SAFETY: a plane stays inside the counts of a digit.
            unsafe {
                sum_counts::launch_unchecked(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    count_argument()?,
                    total_argument()?,
                    tiles as u32,
                    config,
                );
            }
            let kind = match pass {
                0 => Pass::First,
                _ if pass + 1 == passes => Pass::Last,
                _ => Pass::Middle,
            };
            let earlier = (kind != Pass::First).then(|| place_argument(&places[0])).transpose()?;
            let later = (kind != Pass::Last).then(|| key_argument(&keys[1])).transpose()?;
            let grid = per_tile()?;
            // SAFETY: counts make targets a permutation of each row.
            unsafe {
                scatter_digits::launch_unchecked::<E::Key>(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    key_argument(&keys[0])?,
                    earlier.into(),
                    count_argument()?,
                    total_argument()?,
                    later.into(),
                    place_argument(&places[1])?,
                    call(),
                    kind,
                    config,
                );
            }
            keys.swap(0, 1);
            places.swap(0, 1);
        }
        let grid = per_element()?;
        let [values, indices] = self.sorted_arguments(input, sorted, config)?;
        // SAFETY: as in `sort_tiles`.
        unsafe {
            gather_sorted::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                self.unsorted(input)?,
                place_argument(&places[0])?,
                values,
                indices,
                config,
                self.index,
            );
        }
        Ok(())
    }

    fn unsorted<E: Element, I: Numeric>(
        &self,
        input: &Unsorted,
    ) -> Result<UnsortedRowsLaunch<E, I>, KernelError> {
        let Rows { handle, dtype, rows, cols, row_stride, col_stride, .. } = &input.rows;
        let indices =
            input.indices.map(|indices| argument(indices, "indices", self.index, rows * cols));
        Ok(UnsortedRowsLaunch::new(
            argument(handle, "input", *dtype, input.rows.extent())?,
            indices.transpose()?.into(),
            self.input.bounds_argument()?,
            RowLayoutLaunch::new(*rows, *cols as u32, *row_stride, *col_stride),
        ))
    }

    fn sorted_arguments(
        &self,
        input: &Unsorted,
        sorted: &Selected,
        config: RadixConfig,
    ) -> Result<[BufferArg; 2], KernelError> {
        let Rows { dtype, rows, cols, .. } = input.rows;
        let count = if config.values { rows * cols } else { 1 };
        Ok([
            argument(&sorted.values, "values", dtype, count)?,
            argument(&sorted.indices, "indices", self.index, rows * cols)?,
        ])
    }
}
