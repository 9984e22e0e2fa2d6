//! Launches of [`filter`](super::filter).

use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
};

use super::{
    filter::{
        FLOOR_WORDS, FilterSizesLaunch, ListsLaunch, TILE_WORDS, Tiling, filter_select,
        write_floors,
    },
    job::{Job, Target},
};
use crate::{
    device::multiprocessors,
    error::KernelError,
    launch::{Grid, allocate, argument},
    topk::{
        key::Element,
        plan::filter_plan,
        tuning::{BUSY_TILES, FILTER_SAMPLE_ITEMS, TILE_ITEMS, TILE_STEPS},
    },
};

const U32: ElemType = ElemType::UInt(UIntKind::U32);

impl Job<'_> {
    pub(super) fn filter<E: Element>(&self, target: Target) -> Result<(), KernelError> {
        let (client, input) = (self.client, self.input);
        let plan = filter_plan(client, self.options.k, input.cols).expect("checked by select");
        let width = self.load_width();
        let sample = self.team(plan.units, width, FILTER_SAMPLE_ITEMS, true);
        let part = self.team(self.plane_size(), width, TILE_ITEMS, false);
        let list = self.team(plan.units, 1, plan.list_items, false);
        let steps = input.cols.div_ceil(plan.units as usize * TILE_ITEMS);
        let busy = BUSY_TILES * multiprocessors(client);
        let per_tile = (input.rows * steps / busy).clamp(1, TILE_STEPS);
        let per_tile = 1u32 << per_tile.ilog2();
        let tiles = steps.div_ceil(per_tile as usize).max(1);
        let tiling = Tiling { steps: per_tile, max_tiles: tiles.next_power_of_two() };
        let rows = input.rows;
        let (values, indices) = self.cleared_outputs(&target)?;
        let (row_grid, config) = self.candidates(&target, sample, part, list)?;
        let capacity = config.capacity();
        let key = E::Key::elem_type_native();

        let counts = [rows * FLOOR_WORDS, 2 * rows, rows * tiles * TILE_WORDS, rows * capacity];
        let floors = allocate(client, "floors", counts[0], key)?;
        let counters = allocate(client, "counters", counts[1], U32)?;
        let table = allocate(client, "table", counts[2], U32)?;
        let candidates = allocate(client, "candidates", counts[3], input.dtype)?;
        let columns = allocate(client, "columns", counts[3], U32)?;
        let floors = || argument(&floors, "floors", key, counts[0]);
        let counters = || argument(&counters, "counters", U32, counts[1]);
        let sizes = || FilterSizesLaunch::new(tiles as u32, capacity as u32);

        // SAFETY: `argument` checks rows, strides and lengths; samples lie inside rows.
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
                counters()?,
                self.layout(),
                self.params(),
                sizes(),
                config,
            );
        }
        let dim = CubeDim::new_2d(list.plane_lanes(), list.planes);
        let largest = self.elements().max(counts[2]).max(counts[3]);
        let grid = Grid::new(client, rows * tiles, dim, largest)?;
        let lists = ListsLaunch::new(
            argument(&table, "table", U32, counts[2])?,
            argument(&candidates, "candidates", input.dtype, counts[3])?,
            argument(&columns, "columns", U32, counts[3])?,
            sizes(),
        );
        // SAFETY: as above; lists are written below capacity, outputs inside rows.
        unsafe {
            filter_select::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                self.source()?,
                self.memory_call(values, indices)?,
                floors()?,
                counters()?,
                lists,
                config,
                tiling,
                self.index,
            );
        }
        Ok(())
    }
}
