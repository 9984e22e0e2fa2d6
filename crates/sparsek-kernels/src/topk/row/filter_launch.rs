use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
};

use super::{
    filter::{
        FLOOR_WORDS, FilterSizesLaunch, ListsLaunch, TILE_WORDS, list_tiles, select_listed,
        write_floors,
    },
    job::{Job, Target},
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument},
    topk::{
        key::Element,
        plan::{RowProblem, filter_plan},
        tuning::{FILTER_SAMPLE_ITEMS, TILE_ITEMS},
    },
};

const U32: ElemType = ElemType::UInt(UIntKind::U32);

impl Job<'_> {
    pub(super) fn filter<E: Element>(&self, target: Target) -> Result<(), KernelError> {
        let (client, input) = (self.client, self.input);
        let problem = RowProblem::new(client, input, self.options);
        let plan = filter_plan(client, &problem).expect("checked by select");
        let width = self.load_width();
        let sample = self.team(plan.units, width, FILTER_SAMPLE_ITEMS, true);
        let part = self.team(self.plane_size(), width, TILE_ITEMS, false);
        let list = self.team(plan.select_units, 1, plan.list_items, false);
        let tiles = input.cols.div_ceil(plan.units as usize * TILE_ITEMS).max(1);
        let max_tiles = tiles.next_power_of_two();
        let rows = input.rows;
        let (values, indices) = self.cleared_outputs(&target)?;
        let (select_grid, config) = self.candidates(&target, sample, part, list)?;
        let capacity = config.capacity();
        let key = E::Key::elem_type_native();

        let counts = [rows * FLOOR_WORDS, rows, rows * tiles * TILE_WORDS, rows * capacity];
        let floors = allocate(client, "floors", counts[0], key)?;
        let lengths = allocate(client, "lengths", counts[1], U32)?;
        let table = allocate(client, "table", counts[2], U32)?;
        let candidates = allocate(client, "candidates", counts[3], input.dtype)?;
        let columns = allocate(client, "columns", counts[3], U32)?;
        let floors = || argument(&floors, "floors", key, counts[0]);
        let lengths = || argument(&lengths, "lengths", U32, counts[1]);
        let sizes = || FilterSizesLaunch::new(tiles as u32, capacity as u32);
        let lists = || {
            Ok::<_, KernelError>(ListsLaunch::new(
                argument(&table, "table", U32, counts[2])?,
                argument(&candidates, "candidates", input.dtype, counts[3])?,
                argument(&columns, "columns", U32, counts[3])?,
                sizes(),
            ))
        };

        let dim = CubeDim::new_2d(sample.plane_lanes(), sample.planes);
        let largest = self.elements().max(counts[2]).max(counts[3]);
        let row_grid = Grid::new(client, rows, dim, largest)?;
        // SAFETY: rows, strides and lengths checked; samples lie inside rows.
        unsafe {
            write_floors::launch_unchecked::<E>(
                client,
                row_grid.count,
                row_grid.dim,
                row_grid.address,
                width,
                self.source()?,
                input.bounds_argument()?,
                floors()?,
                lengths()?,
                self.layout(),
                self.params(),
                sizes(),
                config,
            );
        }
        let tile_grid = Grid::new(client, rows * tiles, dim, largest)?;
        // SAFETY: as above; lists are written below capacity.
        unsafe {
            list_tiles::launch_unchecked::<E>(
                client,
                tile_grid.count,
                tile_grid.dim,
                tile_grid.address,
                width,
                self.source()?,
                self.source()?,
                input.bounds_argument()?,
                floors()?,
                lengths()?,
                lists()?,
                self.layout(),
                self.params(),
                config,
                max_tiles,
            );
        }
        // SAFETY: as above; outputs are written inside rows.
        unsafe {
            select_listed::launch_unchecked::<E>(
                client,
                select_grid.count,
                select_grid.dim,
                row_grid.address,
                self.memory_call(values, indices)?,
                floors()?,
                lengths()?,
                lists()?,
                config,
                max_tiles,
                width,
                self.index,
            );
        }
        Ok(())
    }
}
