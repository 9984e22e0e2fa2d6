//! The plan and the launch of the stream routine.

use cubecl::prelude::*;

use super::{
    element::Element,
    launch::{Job, Target, is_single, load_widths},
    options::MethodKind,
    routines::{
        guess::normal_launch,
        listing::TILE_ITEMS,
        stream::{SamplingLaunch, StreamBlueprint, stream_select},
        team::Shape,
    },
    select::{LIST_ITEMS, LONG_SAMPLE, LONG_SAMPLE_ITEMS, SAMPLE_ITEMS, stream_units},
};
use crate::{
    error::KernelError,
    launch::{Grid, argument},
};

/// Standard deviations by which sample and list are larger than they need be on average.
const MARGIN: f64 = 4.0;

/// By which part of its rank the threshold in the sample may miss it, so that few counts find one.
const SLACK: f64 = 6.0;

/// How many elements are sampled and listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Sampled elements of a unit.
    pub sample_items: usize,
    /// The element of the sample that is the threshold, counted from the greatest, from 1, ...
    pub rank: usize,
    /// ... or one of so many after it.
    pub slack: usize,
    /// Listed columns of a unit.
    pub list_items: usize,
}

/// The plan for k of `cols` elements with `units` in a cube; the length of the list that it would need
/// where that is too long.
pub(crate) fn plan(k: usize, cols: usize, units: usize) -> Result<Plan, usize> {
    let sample_items = if cols < LONG_SAMPLE {
        SAMPLE_ITEMS
    } else {
        LONG_SAMPLE_ITEMS
    };
    let sampled = (units * sample_items) as f64;
    let weight = cols as f64 / sampled;
    // Among so many of the sample at least k of the row are found, ...
    let expected = k as f64 / weight;
    let rank = (expected + MARGIN * expected.sqrt() + MARGIN).ceil();
    let slack = (rank / SLACK).ceil();
    // ... and no more than so many.
    let most = rank + slack;
    let needed = ((most + MARGIN * most.sqrt()) * weight).ceil() as usize;
    let fits = LIST_ITEMS.into_iter().find(|items| items * units >= needed);
    match fits {
        Some(list_items) if most <= sampled => Ok(Plan {
            sample_items,
            rank: rank as usize,
            slack: slack as usize,
            list_items,
        }),
        _ => Err(needed),
    }
}

impl Job<'_> {
    /// Launches the stream routine.
    pub(super) fn stream<E: Element>(&self, target: Target) -> Result<(), KernelError> {
        let input = self.input;
        let plane = self.plane_size();
        let units = stream_units(self.client, input.cols);
        let plan = plan(self.options.k, input.cols, units as usize).expect("checked by select");
        let width = load_widths(self.client, self.input).max().unwrap_or(1);
        let shape = |lanes: u32, width: usize, items: usize, exact_fit: bool| Shape {
            lanes,
            planes: (lanes / plane).max(1),
            width,
            loads: (items / width).max(1),
            exact_fit,
        };
        let (values, indices) = self.cleared_outputs(&target)?;
        let blueprint = StreamBlueprint {
            memory: self.memory_blueprint(&target),
            sample: shape(units, width, plan.sample_items, true),
            floats: is_single(input.dtype),
            part: shape(plane, width, TILE_ITEMS, false),
            list: shape(units, 1, plan.list_items, false),
        };
        debug_assert_eq!(blueprint.memory.search.method, MethodKind::Exact);
        let samples = blueprint.sample.loads * units as usize;
        let spacing = input.cols / samples / width * width;
        let grid = Grid::new(
            self.client,
            input.rows,
            CubeDim::new_2d(plane, units / plane),
            self.elements(),
        )?;
        let source = || argument(&input.handle, "input", input.dtype, input.extent());
        // SAFETY: as in `registers`; sampled and listed columns lie inside the row.
        unsafe {
            stream_select::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                source()?,
                source()?,
                values,
                indices,
                self.layout(),
                self.params(),
                SamplingLaunch::new(
                    plan.rank as u32,
                    plan.slack as u32,
                    normal_launch(
                        plan.rank + plan.slack / 2,
                        units as usize * plan.sample_items,
                    ),
                    spacing as u32,
                ),
                blueprint,
                self.index,
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_room_for_more_than_k() {
        for (k, cols, units) in [
            (1, 1 << 13, 128),
            (256, 1 << 15, 256),
            (1024, 1 << 20, 512),
            (64, 1 << 22, 512),
        ] {
            let plan = plan(k, cols, units).expect("a plan");
            assert!(plan.list_items * units > k);
            assert!(plan.rank * cols > k * plan.sample_items * units);
        }
    }

    #[test]
    fn too_many_members_have_no_plan() {
        assert!(plan(1 << 13, 1 << 15, 256).is_err());
        assert!(plan(1 << 14, 1 << 24, 256).is_err());
    }
}
