//! Plane or unit per row.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    column_sum::reduce_rows,
    tuning::{FLIGHT, NORM_UNITS, RUN},
    types::DenseRows,
};
use crate::{
    device::{plane_or_unit, rounded_accumulator, units_per_cube},
    error::KernelError,
    launch::{Grid, allocate, argument},
};

/// Rows to normalize.
#[derive(Clone, Copy, Debug)]
pub struct Normalized<'a> {
    /// Rows.
    pub x: DenseRows<'a>,
    /// Factors: `[width]`.
    pub gamma: &'a Handle,
    /// Added to the variance.
    pub epsilon: f32,
    /// Whether planes share rows; by default if possible.
    pub planes: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LayerNormConfig {
    team: u32,
    teams: u32,
    vector: usize,
}

impl Normalized<'_> {
    fn config(&self, client: &Client, vector: usize) -> Result<LayerNormConfig, KernelError> {
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
        Ok(LayerNormConfig {
            team,
            teams: (units_per_cube(client, NORM_UNITS) / team).max(1),
            vector,
        })
    }

    fn grid(&self, client: &Client, config: &LayerNormConfig) -> Result<Grid, KernelError> {
        let cubes = self.x.rows.div_ceil(config.teams as usize);
        let dim = CubeDim::new_2d(config.team, config.teams);
        Grid::new(client, cubes, dim, self.x.elements())
    }
}

/// Normalizes rows: `y = (x - mean) / sqrt(var + epsilon) * gamma + beta`.
///
/// The variance is biased. `beta` is `[width]`, the result `[rows, width]`. Errors: missing planes.
pub fn layer_norm(
    client: &Client,
    request: &Normalized,
    beta: &Handle,
) -> Result<Handle, KernelError> {
    let x = &request.x;
    let sum = rounded_accumulator(client, x.dtype)?;
    let output = allocate(client, "output", x.elements(), x.dtype)?;
    let vector = x.vector(client, &[request.gamma, beta]);
    let config = request.config(client, vector)?;
    if x.elements() == 0 {
        return Ok(output);
    }
    let grid = request.grid(client, &config)?;
    // SAFETY: lengths checked.
    unsafe {
        normalize_kernel::launch_unchecked(
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
            config,
            [x.dtype, sum],
        );
    }
    Ok(output)
}

/// Gradients of [`layer_norm`]: `[rows, width]`, and `[2, width]` of gamma and beta.
///
/// `upstream` is `[rows, width]`. Errors as [`layer_norm`].
pub fn layer_norm_gradient(
    client: &Client,
    request: &Normalized,
    upstream: &Handle,
) -> Result<[Handle; 2], KernelError> {
    let x = &request.x;
    let sum = rounded_accumulator(client, x.dtype)?;
    let gradient = allocate(client, "gradient", x.elements(), x.dtype)?;
    let vector = x.vector(client, &[request.gamma, upstream]);
    let config = request.config(client, vector)?;
    let runs = x.rows.div_ceil(RUN);
    let sums = DenseRows {
        handle: &allocate(client, "sums", (runs * 2 * x.width).max(1), sum)?,
        dtype: sum,
        rows: runs,
        width: 2 * x.width,
    };
    if x.elements() == 0 {
        return Ok([gradient, reduce_rows(client, &sums, sum, x.dtype)?]);
    }
    let moments = allocate(client, "moments", 2 * x.rows, sum)?;
    let grid = request.grid(client, &config)?;
    let rows = || argument(x.handle, "rows", x.dtype, x.elements());
    let upstream = || argument(upstream, "upstream", x.dtype, x.elements());
    let moments = || argument(&moments, "moments", sum, 2 * x.rows);
    // SAFETY: lengths checked.
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
            config,
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
    Ok([gradient, reduce_rows(client, &sums, sum, x.dtype)?])
}

#[derive(CubeType, Clone, Copy)]
struct TeamRow {
    start: usize,
    across: usize,
    lane: usize,
    #[cube(comptime)]
    config: LayerNormConfig,
}

#[derive(CubeType, Clone, Copy)]
struct Moments<S: Float> {
    mean: S,
    inverse: S,
}

#[cube]
impl TeamRow {
    fn mean<S: Float, N: Size>(&self, own: Vector<S, N>) -> S {
        let mut sum = own.extract(0usize);
        #[unroll]
        for v in 1..self.config.vector {
            sum += own.extract(v);
        }
        if comptime!(self.config.team > 1) {
            sum = plane_sum(sum);
        }
        sum / S::cast_from(self.across * comptime!(self.config.vector))
    }

    fn moments<E: Float, S: Float, N: Size>(&self, x: &[Vector<E, N>], epsilon: f32) -> Moments<S> {
        let mut sum = Vector::<S, N>::zeroed();
        let mut at = self.lane;
        while at < self.across {
            sum += Vector::<S, N>::cast_from(x[self.start + at]);
            at += comptime!(self.config.team as usize);
        }
        let mean = self.mean::<S, N>(sum);
        let mut squares = Vector::<S, N>::zeroed();
        let mut at = self.lane;
        while at < self.across {
            let own = Vector::<S, N>::cast_from(x[self.start + at]) - Vector::<S, N>::new(mean);
            squares += own * own;
            at += comptime!(self.config.team as usize);
        }
        let variance = self.mean::<S, N>(squares);
        let deviation = S::sqrt(variance + S::cast_from(epsilon));
        Moments::<S> { mean, inverse: S::new(1.0) / deviation }
    }
}

#[cube]
fn row_of_team(#[comptime] config: LayerNormConfig) -> usize {
    CUBE_POS * comptime!(config.teams as usize) + UNIT_POS_Y as usize
}

#[cube]
fn normalized<E: Float, S: Float, N: Size>(
    value: Vector<E, N>,
    moments: &Moments<S>,
) -> Vector<S, N> {
    let centered = Vector::<S, N>::cast_from(value) - Vector::<S, N>::new(moments.mean);
    centered * Vector::<S, N>::new(moments.inverse)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn normalize_kernel<E: Float, S: Float, N: Size>(
    x: &[Vector<E, N>],
    gamma: &[Vector<E, N>],
    beta: &[Vector<E, N>],
    output: &mut [Vector<E, N>],
    rows: usize,
    across: usize,
    epsilon: f32,
    #[comptime] config: LayerNormConfig,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    let row = row_of_team(config);
    if row >= rows {
        terminate!();
    }
    let team = TeamRow { start: row * across, across, lane: UNIT_POS_X as usize, config };
    let moments = team.moments::<E, S, N>(x, epsilon);
    let mut at = team.lane;
    while at < across {
        let factor = Vector::<S, N>::cast_from(gamma[at]);
        let offset = Vector::<S, N>::cast_from(beta[at]);
        let value = normalized::<E, S, N>(x[team.start + at], &moments);
        output[team.start + at] = Vector::cast_from(value * factor + offset);
        at += comptime!(config.team as usize);
    }
}

/// `dx = inverse (g - mean(g) - n mean(g n))`, with `g = upstream gamma`, normalized row `n`.
#[cube(launch_unchecked, address_type = "dynamic")]
fn gradient_kernel<E: Float, S: Float, N: Size>(
    x: &[Vector<E, N>],
    gamma: &[Vector<E, N>],
    upstream: &[Vector<E, N>],
    gradient: &mut [Vector<E, N>],
    all_moments: &mut [S],
    rows: usize,
    across: usize,
    epsilon: f32,
    #[comptime] config: LayerNormConfig,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    let row = row_of_team(config);
    if row >= rows {
        terminate!();
    }
    let team = TeamRow { start: row * across, across, lane: UNIT_POS_X as usize, config };
    let moments = team.moments::<E, S, N>(x, epsilon);
    if team.lane == 0 {
        all_moments[2 * row] = moments.mean;
        all_moments[2 * row + 1] = moments.inverse;
    }
    let mut plain = Vector::<S, N>::zeroed();
    let mut along = Vector::<S, N>::zeroed();
    let mut at = team.lane;
    while at < across {
        let value = normalized::<E, S, N>(x[team.start + at], &moments);
        let own = Vector::<S, N>::cast_from(upstream[team.start + at])
            * Vector::<S, N>::cast_from(gamma[at]);
        plain += own;
        along += own * value;
        at += comptime!(config.team as usize);
    }
    let plain = team.mean::<S, N>(plain);
    let along = team.mean::<S, N>(along);
    let mut at = team.lane;
    while at < across {
        let value = normalized::<E, S, N>(x[team.start + at], &moments);
        let own = Vector::<S, N>::cast_from(upstream[team.start + at])
            * Vector::<S, N>::cast_from(gamma[at]);
        let rest = own - Vector::<S, N>::new(plain) - value * Vector::<S, N>::new(along);
        gradient[team.start + at] = Vector::cast_from(rest * Vector::<S, N>::new(moments.inverse));
        at += comptime!(config.team as usize);
    }
}

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
            let own = min(row + comptime!(i), end - 1);
            values[i] = x[own * across + column];
            gradients[i] = upstream[own * across + column];
        }
        #[unroll]
        for i in 0..FLIGHT {
            let own = row + comptime!(i);
            if own < end {
                let moments =
                    Moments::<S> { mean: all_moments[2 * own], inverse: all_moments[2 * own + 1] };
                let gradient = Vector::<S, N>::cast_from(gradients[i]);
                scales += gradient * normalized::<E, S, N>(values[i], &moments);
                offsets += gradient;
            }
        }
        row += FLIGHT;
    }
    sums[run * 2 * across + column] = scales;
    sums[run * 2 * across + across + column] = offsets;
}
