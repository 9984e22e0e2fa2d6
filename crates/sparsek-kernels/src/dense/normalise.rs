//! Layer normalisation: a plane, or where there are none a unit, for each row.

use crate::device::plane_or_unit;
use crate::device::rounded_accumulator;
use crate::device::units_per_cube;
use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    Rows,
    columns::{FLIGHT, RUN, finish},
};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;

/// Units of a cube.
const UNITS: u32 = 128;

/// Rows to be normalised, and how.
#[derive(Clone, Copy, Debug)]
pub struct Normalised<'a> {
    /// The rows.
    pub x: Rows<'a>,
    /// Contiguous `[width]` factors of the columns, in the dtype of the rows.
    pub gamma: &'a Handle,
    /// What is added to the variance.
    pub epsilon: f32,
    /// Whether rows are shared by the units of a plane: where there are planes when absent.
    pub planes: Option<bool>,
}

/// How kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Blueprint {
    /// Units that share a row.
    team: u32,
    /// Teams of a cube.
    teams: u32,
    /// Elements of a load.
    vector: usize,
}

impl Normalised<'_> {
    fn blueprint(&self, client: &Client, vector: usize) -> Result<Blueprint, KernelError> {
        let team = match (self.planes, plane_or_unit(client)) {
            (Some(true), 1) => {
                return Err(KernelError::Routine {
                    routine: "plane",
                    reason: "the device has no planes of one fixed size".into(),
                });
            }
            (Some(false), _) => 1,
            (_, team) => team,
        };
        Ok(Blueprint {
            team,
            teams: (units_per_cube(client, UNITS) / team).max(1),
            vector,
        })
    }

    fn grid(&self, client: &Client, blueprint: &Blueprint) -> Result<Grid, KernelError> {
        let cubes = self.x.rows.div_ceil(blueprint.teams as usize);
        let dim = CubeDim::new_2d(blueprint.team, blueprint.teams);
        Grid::new(client, cubes, dim, self.x.elements())
    }
}

/// `y = (x - mean) / sqrt(var + epsilon) * gamma + beta`, mean and biased variance over each row: `[rows, width]`.
///
/// Sums are kept in f32, or f64 where the rows are; the variance is of the differences from the mean. Rows are read from memory once.
///
/// # Errors
///
/// [`KernelError`] for a dtype that is not a float or that the device lacks, for buffers that are too short, too large or
/// need wider addresses, and for planes that are asked for where there are none.
pub fn layer_norm(
    client: &Client,
    request: &Normalised,
    beta: &Handle,
) -> Result<Handle, KernelError> {
    let x = &request.x;
    let sum = rounded_accumulator(client, x.dtype)?;
    let output = allocate(client, "output", x.elements(), x.dtype)?;
    let vector = x.vector(client, &[request.gamma, beta]);
    let blueprint = request.blueprint(client, vector)?;
    if x.elements() == 0 {
        return Ok(output);
    }
    let grid = request.grid(client, &blueprint)?;
    // SAFETY: `argument` checks the lengths.
    unsafe {
        normalise_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            vector,
            argument(x.handle, "rows", x.dtype, x.elements())?,
            argument(request.gamma, "gamma", x.dtype, x.width)?,
            argument(beta, "beta", x.dtype, x.width)?,
            argument(&output, "output", x.dtype, x.elements())?,
            x.rows,
            x.width / vector,
            request.epsilon,
            blueprint,
            [x.dtype, sum],
        );
    }
    Ok(output)
}

/// The gradients of [`layer_norm`]: that of the rows, `[rows, width]`, and in one buffer `[2, width]` those of gamma and of beta.
///
/// `upstream` is contiguous `[rows, width]`. Deterministic. Reads the rows and `upstream` twice. Scratch: two numbers for each row, two
/// rows of sums for each 128.
///
/// # Errors
///
/// As [`layer_norm`].
pub fn layer_norm_gradient(
    client: &Client,
    request: &Normalised,
    upstream: &Handle,
) -> Result<[Handle; 2], KernelError> {
    let x = &request.x;
    let sum = rounded_accumulator(client, x.dtype)?;
    let gradient = allocate(client, "gradient", x.elements(), x.dtype)?;
    let vector = x.vector(client, &[request.gamma, upstream]);
    let blueprint = request.blueprint(client, vector)?;
    let runs = x.rows.div_ceil(RUN);
    let sums = Rows {
        handle: &allocate(client, "sums", (runs * 2 * x.width).max(1), sum)?,
        dtype: sum,
        rows: runs,
        width: 2 * x.width,
    };
    if x.elements() == 0 {
        return Ok([gradient, finish(client, &sums, sum, x.dtype)?]);
    }
    let moments = allocate(client, "moments", 2 * x.rows, sum)?;
    let grid = request.grid(client, &blueprint)?;
    let rows = || argument(x.handle, "rows", x.dtype, x.elements());
    let upstream = || argument(upstream, "upstream", x.dtype, x.elements());
    let moments = || argument(&moments, "moments", sum, 2 * x.rows);
    // SAFETY: `argument` checks the lengths.
    unsafe {
        gradient_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            vector,
            rows()?,
            argument(request.gamma, "gamma", x.dtype, x.width)?,
            upstream()?,
            argument(&gradient, "gradient", x.dtype, x.elements())?,
            moments()?,
            x.rows,
            x.width / vector,
            request.epsilon,
            blueprint,
            [x.dtype, sum],
        );
        let units = runs * (x.width / vector);
        let grid = Grid::elementwise(client, units, x.elements())?;
        parameter_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            vector,
            rows()?,
            upstream()?,
            moments()?,
            argument(sums.handle, "sums", sum, runs * 2 * x.width)?,
            x.rows,
            x.width / vector,
            [x.dtype, sum],
        );
    }
    Ok([gradient, finish(client, &sums, sum, x.dtype)?])
}

/// A row, shared by the units of a team.
#[derive(CubeType, Clone, Copy)]
struct Share {
    /// Where the row begins, in vectors.
    start: usize,
    /// Vectors of it.
    across: usize,
    /// This unit's place in the team.
    lane: usize,
    #[cube(comptime)]
    blueprint: Blueprint,
}

/// The mean of a row and the inverse of its standard deviation.
#[derive(CubeType, Clone, Copy)]
struct Moments<S: Float> {
    mean: S,
    inverse: S,
}

#[cube]
impl Share {
    /// The mean over the row of a number of each element, given their sums in each unit.
    fn mean<S: Float, N: Size>(&self, own: Vector<S, N>) -> S {
        let mut sum = own.extract(0usize);
        #[unroll]
        for v in 1..self.blueprint.vector {
            sum += own.extract(v);
        }
        if comptime!(self.blueprint.team > 1) {
            sum = plane_sum(sum);
        }
        sum / S::cast_from(self.across * comptime!(self.blueprint.vector))
    }

    fn moments<E: Float, S: Float, N: Size>(&self, x: &[Vector<E, N>], epsilon: f32) -> Moments<S> {
        let mut sum = Vector::<S, N>::zeroed();
        let mut at = self.lane;
        while at < self.across {
            sum += Vector::<S, N>::cast_from(x[self.start + at]);
            at += comptime!(self.blueprint.team as usize);
        }
        let mean = self.mean::<S, N>(sum);
        let mut squares = Vector::<S, N>::zeroed();
        let mut at = self.lane;
        while at < self.across {
            let own = Vector::<S, N>::cast_from(x[self.start + at]) - Vector::<S, N>::new(mean);
            squares += own * own;
            at += comptime!(self.blueprint.team as usize);
        }
        let variance = self.mean::<S, N>(squares);
        let deviation = S::sqrt(variance + S::cast_from(epsilon));
        Moments::<S> {
            mean,
            inverse: S::new(1.0) / deviation,
        }
    }
}

/// The number of a team's row.
#[cube]
fn row_of_team(#[comptime] blueprint: Blueprint) -> usize {
    CUBE_POS * comptime!(blueprint.teams as usize) + UNIT_POS_Y as usize
}

/// The elements of a vector that are normalised.
#[cube]
fn normalised<E: Float, S: Float, N: Size>(
    value: Vector<E, N>,
    moments: &Moments<S>,
) -> Vector<S, N> {
    let centred = Vector::<S, N>::cast_from(value) - Vector::<S, N>::new(moments.mean);
    centred * Vector::<S, N>::new(moments.inverse)
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "rows and parameters")]
fn normalise_kernel<E: Float, S: Float, N: Size>(
    x: &[Vector<E, N>],
    gamma: &[Vector<E, N>],
    beta: &[Vector<E, N>],
    output: &mut [Vector<E, N>],
    rows: usize,
    across: usize,
    epsilon: f32,
    #[comptime] blueprint: Blueprint,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    let row = row_of_team(blueprint);
    if row >= rows {
        terminate!();
    }
    let share = Share {
        start: row * across,
        across,
        lane: UNIT_POS_X as usize,
        blueprint,
    };
    let moments = share.moments::<E, S, N>(x, epsilon);
    let mut at = share.lane;
    while at < across {
        let factor = Vector::<S, N>::cast_from(gamma[at]);
        let offset = Vector::<S, N>::cast_from(beta[at]);
        let value = normalised::<E, S, N>(x[share.start + at], &moments);
        output[share.start + at] = Vector::cast_from(value * factor + offset);
        at += comptime!(blueprint.team as usize);
    }
}

/// `dx = inverse (g - mean(g) - n mean(g n))`, where `n` is the normalised row and `g` the upstream gradient times gamma.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "rows and parameters")]
fn gradient_kernel<E: Float, S: Float, N: Size>(
    x: &[Vector<E, N>],
    gamma: &[Vector<E, N>],
    upstream: &[Vector<E, N>],
    gradient: &mut [Vector<E, N>],
    all_moments: &mut [S],
    rows: usize,
    across: usize,
    epsilon: f32,
    #[comptime] blueprint: Blueprint,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    let row = row_of_team(blueprint);
    if row >= rows {
        terminate!();
    }
    let share = Share {
        start: row * across,
        across,
        lane: UNIT_POS_X as usize,
        blueprint,
    };
    let moments = share.moments::<E, S, N>(x, epsilon);
    if share.lane == 0 {
        all_moments[2 * row] = moments.mean;
        all_moments[2 * row + 1] = moments.inverse;
    }
    let mut plain = Vector::<S, N>::zeroed();
    let mut along = Vector::<S, N>::zeroed();
    let mut at = share.lane;
    while at < across {
        let value = normalised::<E, S, N>(x[share.start + at], &moments);
        let own = Vector::<S, N>::cast_from(upstream[share.start + at])
            * Vector::<S, N>::cast_from(gamma[at]);
        plain += own;
        along += own * value;
        at += comptime!(blueprint.team as usize);
    }
    let plain = share.mean::<S, N>(plain);
    let along = share.mean::<S, N>(along);
    let mut at = share.lane;
    while at < across {
        let value = normalised::<E, S, N>(x[share.start + at], &moments);
        let own = Vector::<S, N>::cast_from(upstream[share.start + at])
            * Vector::<S, N>::cast_from(gamma[at]);
        let rest = own - Vector::<S, N>::new(plain) - value * Vector::<S, N>::new(along);
        gradient[share.start + at] = Vector::cast_from(rest * Vector::<S, N>::new(moments.inverse));
        at += comptime!(blueprint.team as usize);
    }
}

/// Sums over a run of rows: of the upstream gradient times the normalised rows, then of itself. A unit for each vector.
#[cube(launch_unchecked, address_type = "dynamic")]
fn parameter_kernel<E: Float, S: Float, N: Size>(
    x: &[Vector<E, N>],
    upstream: &[Vector<E, N>],
    all_moments: &[S],
    sums: &mut [Vector<S, N>],
    rows: usize,
    across: usize,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    let run = ABSOLUTE_POS / across;
    let column = ABSOLUTE_POS - run * across;
    let start = run * RUN;
    if start >= rows {
        terminate!();
    }
    let end = min(start + RUN, rows);
    let mut scales = Vector::<S, N>::zeroed();
    let mut offsets = Vector::<S, N>::zeroed();
    let mut row = start;
    while row < end {
        let mut values = Array::<Vector<E, N>>::new(FLIGHT);
        let mut gradients = Array::<Vector<E, N>>::new(FLIGHT);
        #[unroll]
        for i in 0..FLIGHT {
            // Past the end the last row is read again, for nothing.
            let own = min(row + comptime!(i), end - 1);
            values[i] = x[own * across + column];
            gradients[i] = upstream[own * across + column];
        }
        #[unroll]
        for i in 0..FLIGHT {
            let own = row + comptime!(i);
            if own < end {
                let moments = Moments::<S> {
                    mean: all_moments[2 * own],
                    inverse: all_moments[2 * own + 1],
                };
                let gradient = Vector::<S, N>::cast_from(gradients[i]);
                scales += gradient * normalised::<E, S, N>(values[i], &moments);
                offsets += gradient;
            }
        }
        row += FLIGHT;
    }
    sums[run * 2 * across + column] = scales;
    sums[run * 2 * across + across + column] = offsets;
}
