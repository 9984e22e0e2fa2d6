//! How planes share entries: small teams read more at once, but need more sums.

use cubecl::prelude::*;

use super::tuning::PLANE_CUBE_UNITS;
use crate::{
    device::{LLVMPIPE_REFUSAL, has_plane_barrier, is_llvmpipe, plane_size, planes_per_cube},
    error::KernelError,
};

pub(super) fn require_planes(
    client: &Client,
    routine: &'static str,
    bytes: impl Fn(u32) -> usize,
) -> Result<u32, KernelError> {
    let refuse = |reason: String| Err(KernelError::Routine { routine, reason });
    let room = client.properties().hardware.max_shared_memory_size / 2;
    match plane_size(client) {
        _ if is_llvmpipe(client) => refuse(LLVMPIPE_REFUSAL.into()),
        Some(plane) if bytes(plane) > room => refuse(format!(
            "a row needs {} bytes of shared memory; the limit is {room}",
            bytes(plane)
        )),
        Some(plane) => Ok(plane),
        None => refuse("the device has no planes of one fixed size".into()),
    }
}

pub(super) fn require_plane_barrier(
    client: &Client,
    routine: &'static str,
) -> Result<u32, KernelError> {
    let plane = require_planes(client, routine, |_| 0)?;
    match has_plane_barrier(client) {
        true => Ok(plane),
        false => {
            let reason = "planes cannot synchronize".to_string();
            Err(KernelError::Routine { routine, reason })
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlaneLayout {
    pub plane: u32,
    pub planes: u32,
    /// Units per entry.
    pub team: u32,
    pub vector: usize,
    /// Loads per unit and entry.
    pub loads: usize,
    /// No unit lacks a load.
    pub full: bool,
    /// Entries in flight.
    pub flight: usize,
    pub width: usize,
}

pub(super) struct Limits {
    pub vector: usize,
    /// Most sums per plane.
    pub sums: usize,
    /// Elements in flight.
    pub flight: usize,
}

impl PlaneLayout {
    pub fn new(client: &Client, plane: u32, [k, width]: [usize; 2], limits: Limits) -> Self {
        let Limits { vector, sums, flight } = limits;
        let all = k / vector;
        let team = all.max(min_team(plane, width, sums)).next_power_of_two().min(plane as usize);
        let loads = all.div_ceil(team);
        let planes = planes_per_cube(client, PLANE_CUBE_UNITS, plane);
        let layout = Self {
            plane,
            planes,
            team: team as u32,
            vector,
            loads,
            full: loads * team == all,
            flight: (flight / (loads * vector)).max(1),
            width,
        };
        // Sums are at most f64.
        let bytes = layout.sums_len() * size_of::<f64>();
        let room = client.properties().hardware.max_shared_memory_size / 2;
        Self { planes: planes.clamp(1, (room / bytes).max(1) as u32), ..layout }
    }

    pub fn teams(&self) -> usize {
        (self.plane / self.team) as usize
    }

    pub fn columns_per_bank(&self) -> usize {
        self.width.div_ceil(self.team as usize)
    }

    pub fn sums_len(&self) -> usize {
        sums_len(self.plane as usize, self.team as usize, self.width)
    }
}

/// Of all teams, or a row padded per `plane` columns.
pub(super) fn sums_len(plane: usize, team: usize, width: usize) -> usize {
    (plane * width.div_ceil(team)).max(width + width.div_ceil(plane))
}

pub(super) fn min_team(plane: u32, width: usize, sums: usize) -> usize {
    (plane as usize * width).div_ceil(sums)
}
