//! How planes share the entries of compressed rows.

use crate::device::LLVMPIPE_REFUSAL;
use crate::device::is_llvmpipe;
use crate::device::plane_size;
use crate::device::units_per_cube;
use cubecl::{features::Plane, prelude::*};

use super::{Operand, entries::Factors};
use crate::error::KernelError;

/// Units of a cube: 64 and 256 take the same time within 2% (NVIDIA H200).
const UNITS: u32 = 128;

/// Units of a plane, where planes can wait for themselves and the bytes that one of so many units needs of shared memory are there.
pub(super) fn check(
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
            "{} bytes of shared memory for a row; a cube may use {room}",
            bytes(plane)
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
    /// For entries of k elements, loaded `vector` at a time, of rows of `width`; a plane has at most `sums` sums, and a unit about
    /// `flight` elements under way.
    pub fn new(
        client: &Client,
        plane: u32,
        operand: &Operand,
        [k, width]: [usize; 2],
        [vector, sums, flight]: [usize; 3],
    ) -> Self {
        let loads = k / vector;
        let team = loads
            .max(fewest(plane, width, sums))
            .next_power_of_two()
            .min(plane as usize);
        let members = loads.div_ceil(team);
        let planes = units_per_cube(client, UNITS) / plane;
        let shape = Self {
            plane,
            planes,
            team: team as u32,
            vector,
            members,
            full: members * team == loads,
            flight: (flight / (members * vector)).max(1),
            width,
            factors: operand.factors(),
        };
        // Sums of f64 at most.
        let bytes = shape.room() * size_of::<f64>();
        let room = client.properties().hardware.max_shared_memory_size / 2;
        Self {
            planes: planes.clamp(1, (room / bytes).max(1) as u32),
            ..shape
        }
    }

    pub fn teams(&self) -> usize {
        (self.plane / self.team) as usize
    }

    /// Columns that lie in one bank, in the sums of a team: [`super::sums`].
    pub fn group(&self) -> usize {
        self.width.div_ceil(self.team as usize)
    }

    /// Sums of a plane.
    pub fn room(&self) -> usize {
        room(self.plane as usize, self.team as usize, self.width)
    }
}

/// Sums of a plane whose teams have so many units: a group of columns in each bank, or all columns in a row with one left out after
/// each plane of them.
pub(super) fn room(plane: usize, team: usize, width: usize) -> usize {
    (plane * width.div_ceil(team)).max(width + width.div_ceil(plane))
}

/// Fewest units that share an entry, so that there are no more than `sums` sums.
pub(super) fn fewest(plane: u32, width: usize, sums: usize) -> usize {
    (plane as usize * width).div_ceil(sums)
}

/// Puts a row times its factor into the place of the plane, for all its units to read.
#[cube]
pub(super) fn load_row<S: Float>(
    dense: &mut Shared<[S]>,
    matrix: &[S],
    row: usize,
    factor: S,
    #[comptime] shape: Shape,
) {
    let width = comptime!(shape.width);
    let mut place = UNIT_POS_X as usize;
    while place < width {
        dense[UNIT_POS_Y as usize * width + place] = factor * matrix[row * width + place];
        place += comptime!(shape.plane as usize);
    }
    sync_plane();
}
