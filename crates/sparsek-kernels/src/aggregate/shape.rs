//! How planes share the entries of compressed rows.

use cubecl::{features::Plane, prelude::*};

use super::{Operand, entries::Factors};
use crate::{
    error::KernelError,
    launch::units_per_cube,
    topk::select::{NO_LAYOUTS, is_llvmpipe, plane_size},
};

/// Units of a cube: 64 and 256 take the same time within 2% (NVIDIA H200).
const UNITS: u32 = 128;
/// Elements of a unit whose loads are under way at a time: 8 took 2.70, 4.41 and 7.90 ms for k = 16, 32 and 64 of 256 on a graph
/// of Reddit's size, 16 took 2.79, 4.56 and 8.02, 32 2.80, 4.59 and 8.06 (NVIDIA H200).
const FLIGHT: usize = 8;

/// Units of a plane, where planes can wait for themselves and so many bytes of shared memory are there for each.
pub(super) fn check(
    client: &Client,
    routine: &'static str,
    bytes: usize,
) -> Result<u32, KernelError> {
    let refuse = |reason: String| Err(KernelError::Routine { routine, reason });
    let features = &client.features().plane;
    let able = features.contains(Plane::Ops) && features.contains(Plane::Sync);
    let room = client.properties().hardware.max_shared_memory_size / 2;
    match plane_size(client) {
        _ if is_llvmpipe(client) => refuse(NO_LAYOUTS.into()),
        Some(_) if bytes > room => refuse(format!(
            "{bytes} bytes of shared memory for a row; a cube may use {room}"
        )),
        Some(plane) if able => Ok(plane),
        _ => {
            refuse("the device has no planes of one fixed size that can wait for themselves".into())
        }
    }
}

/// How planes share entries, for which kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub plane: u32,
    /// Planes of a cube.
    pub planes: u32,
    /// Units that share an entry.
    pub team: u32,
    /// Elements of a load, and loads of a unit for an entry, the last perhaps for nothing.
    pub vector: usize,
    pub members: usize,
    pub full: bool,
    /// Entries of a team that are under way at a time.
    pub flight: usize,
    /// Elements of a dense row.
    pub width: usize,
    pub factors: Factors,
}

impl Shape {
    /// For entries of k elements, loaded `vector` at a time, of rows of `width`; a plane has at most `sums` sums.
    pub fn new(
        client: &Client,
        plane: u32,
        operand: &Operand,
        [k, width]: [usize; 2],
        [vector, sums]: [usize; 2],
    ) -> Self {
        let loads = k / vector;
        let team = loads
            .max(fewest(plane, width, sums))
            .next_power_of_two()
            .min(plane as usize);
        let members = loads.div_ceil(team);
        let planes = units_per_cube(client, UNITS) / plane;
        // Sums of f64 at most.
        let bytes = plane as usize / team * padded(width, team) * size_of::<f64>();
        let room = client.properties().hardware.max_shared_memory_size / 2;
        let planes = planes.clamp(1, (room / bytes).max(1) as u32);
        Self {
            plane,
            planes,
            team: team as u32,
            vector,
            members,
            full: members * team == loads,
            flight: (FLIGHT / (members * vector)).max(1),
            width,
            factors: operand.factors(),
        }
    }

    pub fn teams(&self) -> usize {
        (self.plane / self.team) as usize
    }

    /// Distance between the sums of teams.
    pub fn stride(&self) -> usize {
        padded(self.width, self.team as usize)
    }
}

/// Words of shared memory that are served at a time.
pub(super) const BANKS: usize = 32;

/// Elements between the sums of teams of so many units: the same column of all teams lies in other banks, because rows that are
/// alike, as those of trained networks are, have members in the same columns. On a graph of Reddit's size a product took 7.4 ms
/// in such layers without and 4.7 with (4.4 in the first; NVIDIA H200).
pub(super) fn padded(width: usize, team: usize) -> usize {
    width.next_multiple_of(BANKS) + team.min(BANKS)
}

/// Fewest units that share an entry, so that there are no more than `sums` sums.
pub(super) fn fewest(plane: u32, width: usize, sums: usize) -> usize {
    (plane as usize * width).div_ceil(sums)
}
