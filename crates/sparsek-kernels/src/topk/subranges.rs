//! The plan and the launch of the delegate routine.

use cubecl::prelude::*;

use super::{
    element::Element,
    launch::{Job, Target, is_single, load_widths},
    options::MethodKind,
    routines::{delegate::delegate_select, stream::StreamBlueprint, team::Shape},
};
use crate::{
    error::KernelError,
    launch::{Grid, argument},
};

/// Subranges of each unit of a plane.
pub(crate) const SUBRANGES: usize = 8;
/// Columns that a unit of it lists.
const LISTED: usize = 8;

/// The greatest k: of so many random elements, a quarter of the delegates, 1.15 k reach the kth delegate.
pub(crate) fn most_members(plane: usize) -> usize {
    plane * SUBRANGES / 4
}

impl Job<'_> {
    /// Launches the delegate routine.
    pub(super) fn delegate<E: Element>(&self, target: Target) -> Result<(), KernelError> {
        let input = self.input;
        let plane = self.plane_size();
        let width = load_widths(self.client, self.input).max().unwrap_or(1);
        let shape = |width: usize, loads: usize, exact_fit: bool| Shape {
            lanes: plane,
            planes: 1,
            width,
            loads,
            exact_fit,
        };
        let (values, indices) = self.cleared_outputs(&target)?;
        let blueprint = StreamBlueprint {
            memory: self.memory_blueprint(&target),
            floats: is_single(input.dtype),
            sample: shape(1, SUBRANGES, true),
            part: shape(width, 1, false),
            list: shape(1, LISTED, false),
        };
        debug_assert_eq!(blueprint.memory.search.method, MethodKind::Exact);
        let dim = CubeDim::new_2d(plane, 1);
        let grid = Grid::new(self.client, input.rows, dim, self.elements())?;
        let source = || argument(&input.handle, "input", input.dtype, input.extent());
        // SAFETY: as in `registers`; listed columns lie inside the row.
        unsafe {
            delegate_select::launch_unchecked::<E>(
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
                blueprint,
                self.index,
            );
        }
        Ok(())
    }
}
