//! One pass counts, one fills.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{launch::planes_for, sizes::radius_blocks, tuning::RADIUS_BLOCK};
use crate::{
    device::has_plane_barrier,
    error::KernelError,
    launch::{allocate, argument},
};

/// Distances with a radius.
#[derive(Clone, Copy, Debug)]
pub struct Radius<'a> {
    /// `[rows, across]`.
    pub distances: &'a Handle,
    /// f32 or f64.
    pub dtype: ElemType,
    /// Row count.
    pub rows: usize,
    /// Index rows.
    pub across: usize,
    /// Nearest f32 for f32; NaN never matches.
    pub radius: f64,
    /// Matches distances ≥ the radius.
    pub largest: bool,
    /// Index row of row 0; rows skip themselves.
    pub exclude_self: Option<usize>,
}

impl Radius<'_> {
    /// Matches per block: i32, `[rows, blocks]`.
    pub fn count(&self, client: &Client) -> Result<Handle, KernelError> {
        let counts = self.rows * radius_blocks(self.across);
        let output = allocate(client, "counts", counts, i32::elem_type_native())?;
        self.launch(client, &output, None)?;
        Ok(output)
    }

    /// Matching distances and i32 positions, `[total]`, by row and position.
    ///
    /// `offsets`: exclusive prefix sums of [`count`](Self::count); `total`: the sum.
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
        let blocks = radius_blocks(self.across);
        let items = self.rows * blocks;
        let radius = client.create_from_slice(&match self.dtype.size() {
            8 => self.radius.to_le_bytes().to_vec(),
            _ => (self.radius as f32).to_le_bytes().to_vec(),
        });
        let (values, places, total) = listed.unwrap_or((&radius, &radius, 1));
        let (grid, plane) = planes_for(client, items, pairs)?;
        // SAFETY: lengths checked; offsets sum the counts.
        unsafe {
            radius_kernel::launch_unchecked(
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
                blocks,
                self.exclude_self.unwrap_or(0),
                RadiusConfig {
                    plane,
                    sync: plane > 1 && has_plane_barrier(client),
                    largest: self.largest,
                    exclude_self: self.exclude_self.is_some(),
                    listed: listed.is_some(),
                },
                self.dtype,
            );
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RadiusConfig {
    plane: u32,
    sync: bool,
    largest: bool,
    exclude_self: bool,
    listed: bool,
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn radius_kernel<S: Float>(
    distances: &[S],
    radius: &[S],
    counts: &mut [i32],
    values: &mut [S],
    places: &mut [i32],
    rows: usize,
    across: usize,
    blocks: usize,
    exclude_self: usize,
    #[comptime] config: RadiusConfig,
    #[define(S)] _dtype: ElemType,
) {
    let item = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if item >= rows * blocks {
        terminate!();
    }
    let plane = comptime!(config.plane as usize);
    let row = item / blocks;
    let first = (item - row * blocks) * comptime!(RADIUS_BLOCK);
    let end = min(first + comptime!(RADIUS_BLOCK), across);
    let limit = radius[0];
    let mut found = 0i32;
    if comptime!(config.listed) {
        found = counts[item];
    }
    let mut done = first;
    while done < end {
        let place = done + UNIT_POS_X as usize;
        // Plane operations need all lanes.
        let distance = distances[row * across + min(place, end - 1)];
        let within = if comptime!(config.largest) { distance >= limit } else { distance <= limit };
        let mut near = select(within, 1i32, 0i32);
        near = select(place < end, near, 0i32);
        if comptime!(config.exclude_self) {
            near = select(place == exclude_self + row, 0i32, near);
        }
        if comptime!(config.listed) {
            let mut through = near;
            let mut all = near;
            if comptime!(plane > 1) {
                through = plane_inclusive_sum(near);
                all = plane_shuffle(through, comptime!(config.plane - 1));
            }
            if near == 1 {
                let slot = (found + through - 1) as usize;
                values[slot] = distance;
                places[slot] = i32::cast_from(place);
            }
            if comptime!(config.sync) {
                sync_plane();
            }
            found += all;
        } else {
            found += near;
        }
        done += plane;
    }
    if comptime!(!config.listed) {
        if comptime!(plane > 1) {
            found = plane_sum(found);
        }
        if UNIT_POS_X == 0 {
            counts[item] = found;
        }
    }
}
