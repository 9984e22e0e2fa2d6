//! How planes share the entries of compressed rows.
//!
//! The units of a team share an entry. Small teams read more entries at once, but each team needs
//! sums of its own.

use cubecl::{features::Plane, prelude::*};

use super::{
    operand::{Factors, Operand},
    tuning::PLANE_CUBE_UNITS,
};
use crate::{
    device::{LLVMPIPE_REFUSAL, is_llvmpipe, plane_size, units_per_cube},
    error::KernelError,
};

/// Returns the plane size, if planes can synchronize and a cube has room for one.
///
/// `bytes` maps the plane size to its shared memory.
pub(super) fn require_planes(
    client: &Client,
    routine: &'static str,
    bytes: impl Fn(u32) -> usize,
) -> Result<u32, KernelError> {
    let refuse = |reason: String| Err(KernelError::Routine { routine, reason });
    let features = &client.features().plane;
    let able = features.contains(Plane::Ops) && features.contains(Plane::Sync);
    let room = client.properties().hardware.max_shared_memory_size / 2;
    match plane_size(client) {
        _ if is_llvmpipe(client) => refuse(LLVMPIPE_REFUSAL.into()),
        Some(plane) if bytes(plane) > room => refuse(format!(
            "a row needs {} bytes of shared memory; the limit is {room}",
            bytes(plane)
        )),
        Some(plane) if able => Ok(plane),
        _ => refuse("the device has no planes of one fixed size that can synchronize".into()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlaneLayout {
    pub plane: u32,
    /// Planes of a cube.
    pub planes: u32,
    /// Units that share an entry.
    pub team: u32,
    pub vector: usize,
    /// Loads of a unit for an entry.
    pub loads: usize,
    /// Whether every unit of a team has all its loads.
    pub full: bool,
    /// Entries that a team loads at a time.
    pub flight: usize,
    pub width: usize,
    pub factors: Factors,
}

pub(super) struct Limits {
    pub vector: usize,
    /// Most sums of a plane.
    pub sums: usize,
    /// Elements that a unit loads at a time, about.
    pub flight: usize,
}

impl PlaneLayout {
    pub fn new(
        client: &Client,
        plane: u32,
        operand: &Operand,
        [k, width]: [usize; 2],
        limits: Limits,
    ) -> Self {
        let Limits {
            vector,
            sums,
            flight,
        } = limits;
        let all = k / vector;
        let team = all
            .max(min_team(plane, width, sums))
            .next_power_of_two()
            .min(plane as usize);
        let loads = all.div_ceil(team);
        let planes = units_per_cube(client, PLANE_CUBE_UNITS) / plane;
        let layout = Self {
            plane,
            planes,
            team: team as u32,
            vector,
            loads,
            full: loads * team == all,
            flight: (flight / (loads * vector)).max(1),
            width,
            factors: operand.factors(),
        };
        // Sums have at most the size of f64.
        let bytes = layout.sums_len() * size_of::<f64>();
        let room = client.properties().hardware.max_shared_memory_size / 2;
        Self {
            planes: planes.clamp(1, (room / bytes).max(1) as u32),
            ..layout
        }
    }

    pub fn teams(&self) -> usize {
        (self.plane / self.team) as usize
    }

    /// Columns in one bank of the sums of a team.
    pub fn columns_per_bank(&self) -> usize {
        self.width.div_ceil(self.team as usize)
    }

    pub fn sums_len(&self) -> usize {
        sums_len(self.plane as usize, self.team as usize, self.width)
    }
}

/// Elements for the sums of all teams, and for one row with a padding slot after each `plane`
/// columns.
pub(super) fn sums_len(plane: usize, team: usize, width: usize) -> usize {
    (plane * width.div_ceil(team)).max(width + width.div_ceil(plane))
}

/// The smallest team for which a plane has at most `sums` sums.
pub(super) fn min_team(plane: u32, width: usize, sums: usize) -> usize {
    (plane as usize * width).div_ceil(sums)
}
