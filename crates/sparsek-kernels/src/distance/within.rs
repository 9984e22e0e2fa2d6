//! Which of some distances are within a radius: counted first, then listed where each has room.

use cubecl::{features::Plane, ir::ElemType, prelude::*, server::Handle};

use super::planes_for;
use crate::{
    error::KernelError,
    launch::{allocate, argument},
};

/// Distances of a row that are counted and listed by one plane.
pub const STRETCH: usize = 4096;

/// Distances of some rows to all of an index, and how near is near.
#[derive(Clone, Copy, Debug)]
pub struct Within<'a> {
    /// Contiguous `[rows, across]`.
    pub distances: &'a Handle,
    /// f32 or f64.
    pub dtype: ElemType,
    /// Rows.
    pub rows: usize,
    /// Rows of the index.
    pub across: usize,
    /// The radius, of which f32 distances take the nearest f32. NaN is near nothing, and no distance that is NaN is near.
    pub radius: f64,
    /// Near is at least the radius, not at most.
    pub largest: bool,
    /// The index's row that the first row is, where rows are the index's own: none is near itself.
    pub own: Option<usize>,
}

impl Within<'_> {
    /// Stretches of a row.
    pub fn stretches(across: usize) -> usize {
        across.div_ceil(STRETCH)
    }

    /// How many are near in each stretch of each row: i32, `[rows, stretches]`.
    ///
    /// # Errors
    ///
    /// [`KernelError`] for buffers that are too short or too large.
    pub fn count(&self, client: &Client) -> Result<Handle, KernelError> {
        let counts = self.rows * Self::stretches(self.across);
        let output = allocate(client, "counts", counts, i32::elem_type_native())?;
        self.launch(client, &output, None)?;
        Ok(output)
    }

    /// The distances that are near and their places in their row, i32, both `[total]`: row after row, places ascending. `offsets`
    /// are where those of each stretch begin, i32, `[rows, stretches]`, by what [`count`](Self::count) has found.
    ///
    /// # Errors
    ///
    /// [`KernelError`] for buffers that are too short or too large.
    pub fn list(
        &self,
        client: &Client,
        offsets: &Handle,
        total: usize,
    ) -> Result<[Handle; 2], KernelError> {
        let values = allocate(client, "distances", total, self.dtype)?;
        let places = allocate(client, "places", total, i32::elem_type_native())?;
        self.launch(client, offsets, Some((&values, &places, total)))?;
        Ok([values, places])
    }

    fn launch(
        &self,
        client: &Client,
        counts: &Handle,
        listed: Option<(&Handle, &Handle, usize)>,
    ) -> Result<(), KernelError> {
        let int = i32::elem_type_native();
        let pairs = self.rows * self.across;
        if pairs == 0 {
            return Ok(());
        }
        let stretches = Self::stretches(self.across);
        let items = self.rows * stretches;
        let radius = client.create_from_slice(&match self.dtype.size() {
            8 => self.radius.to_le_bytes().to_vec(),
            _ => (self.radius as f32).to_le_bytes().to_vec(),
        });
        let (values, places, total) = listed.unwrap_or((&radius, &radius, 1));
        let (grid, plane) = planes_for(client, items, pairs)?;
        // SAFETY: `argument` checks the lengths; offsets are sums of what was counted of the same distances.
        unsafe {
            within_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(self.distances, "distances", self.dtype, pairs)?,
                argument(&radius, "radius", self.dtype, 1)?,
                argument(counts, "counts", int, items)?,
                argument(values, "near distances", self.dtype, total)?,
                argument(places, "places", int, total)?,
                self.rows,
                self.across,
                stretches,
                self.own.unwrap_or(0),
                Blueprint {
                    plane,
                    sync: plane > 1 && client.features().plane.contains(Plane::Sync),
                    largest: self.largest,
                    own: self.own.is_some(),
                    listed: listed.is_some(),
                },
                self.dtype,
            );
        }
        Ok(())
    }
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Blueprint {
    plane: u32,
    /// Whether planes can wait for themselves.
    sync: bool,
    largest: bool,
    own: bool,
    listed: bool,
}

/// A plane for each stretch of a row.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "three buffers in, two out")]
fn within_kernel<S: Float>(
    distances: &[S],
    radius: &[S],
    counts: &mut [i32],
    values: &mut [S],
    places: &mut [i32],
    rows: usize,
    across: usize,
    stretches: usize,
    own: usize,
    #[comptime] blueprint: Blueprint,
    #[define(S)] _dtype: ElemType,
) {
    let item = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if item >= rows * stretches {
        terminate!();
    }
    let plane = comptime!(blueprint.plane as usize);
    let row = item / stretches;
    let first = (item - row * stretches) * comptime!(STRETCH);
    let end = min(first + comptime!(STRETCH), across);
    let limit = radius[0];
    let mut found = 0i32;
    if comptime!(blueprint.listed) {
        found = counts[item];
    }
    let mut done = first;
    while done < end {
        let place = done + UNIT_POS_X as usize;
        // Units do not part, so that all see each other's values.
        let distance = distances[row * across + min(place, end - 1)];
        let within = if comptime!(blueprint.largest) {
            distance >= limit
        } else {
            distance <= limit
        };
        let mut near = select(within, 1i32, 0i32);
        near = select(place < end, near, 0i32);
        if comptime!(blueprint.own) {
            near = select(place == own + row, 0i32, near);
        }
        if comptime!(blueprint.listed) {
            let mut through = near;
            let mut all = near;
            if comptime!(plane > 1) {
                through = plane_inclusive_sum(near);
                all = plane_shuffle(through, comptime!(blueprint.plane - 1));
            }
            if near == 1 {
                let slot = (found + through - 1) as usize;
                values[slot] = distance;
                places[slot] = i32::cast_from(place);
            }
            if comptime!(blueprint.sync) {
                sync_plane();
            }
            found += all;
        } else {
            found += near;
        }
        done += plane;
    }
    if comptime!(!blueprint.listed) {
        if comptime!(plane > 1) {
            found = plane_sum(found);
        }
        if UNIT_POS_X == 0 {
            counts[item] = found;
        }
    }
}
