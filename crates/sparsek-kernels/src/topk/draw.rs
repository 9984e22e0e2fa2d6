//! Draws one of the sorted candidates of each row.
//!
//! A cube, or else a unit, takes a row; `w = exp((x - greatest) / temperature)`:
//!
//! ```text
//! total  = sum of w
//! kept   = candidates with (sum of w before them) < top_p * total and w >= min_p
//! chosen = number of kept candidates with (sum of w through them) <= uniform * sum of kept w
//! ```
//!
//! Weights descend, so the kept candidates are the first ones. Each line reads the row once.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    key::require_index,
    tuning::{CUBE_UNITS, DRAW_ITEMS, LONG_CUBE_UNITS},
    types::{DRAW_COUNT_BASE, DRAW_SETTINGS},
};
use crate::{
    device::{accumulator, has_many_units, is_llvmpipe, require_dtype, units_per_cube},
    error::KernelError,
    launch::{Grid, allocate, argument},
};

/// Candidates to draw from.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a> {
    /// Logits: contiguous `[rows, k]`, the greatest first.
    pub values: &'a Handle,
    /// Dtype of the logits: a float.
    pub dtype: ElemType,
    /// Tokens of the logits: contiguous `[rows, k]`.
    pub tokens: &'a Handle,
    /// Dtype of the tokens: i32, u32 or i64.
    pub index: ElemType,
    /// Contiguous `[rows, 6]` in f32: temperature above 0, `top_p` (above 1 to keep all), `min_p`,
    /// a number in [0, 1), and the count of candidates in two digits to base 2^16, low first.
    pub settings: &'a Handle,
    /// Rows.
    pub rows: usize,
    /// Candidates per row, at least 1.
    pub k: usize,
}

/// Returns the drawn token of each row, `[rows]`.
///
/// The first candidate is always kept; others need a positive weight. Computes in f32, in a fixed
/// order.
///
/// # Errors
///
/// [`KernelError`]: the device lacks a dtype, or a buffer is too short, too large or needs wider
/// addresses.
pub fn draw(client: &Client, request: &Draw) -> Result<Handle, KernelError> {
    let Draw { dtype, index, rows, k, .. } = *request;
    require_dtype(client, dtype)?;
    require_index(index, u32::MAX as usize)?;
    require_dtype(client, index)?;
    if k > u32::MAX as usize / 2 {
        return Err(KernelError::RowTooLong { cols: k, limit: u32::MAX as usize / 2 });
    }
    let output = allocate(client, "tokens", rows, index)?;
    if rows == 0 {
        return Ok(output);
    }
    let units = units_of_row(client, k);
    let (cubes, dim) = match units {
        1 => {
            let units = units_per_cube(client, CUBE_UNITS);
            (rows.div_ceil(units as usize), CubeDim::new_1d(units))
        }
        units => (rows, CubeDim::new_1d(units)),
    };
    let grid = Grid::new(client, cubes, dim, rows * k.max(DRAW_SETTINGS))?;
    let settings = f32::elem_type_native();
    // SAFETY: `argument` checks lengths; the kernel checks each place against `k`.
    unsafe {
        draw_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(request.values, "values", dtype, rows * k)?,
            argument(request.tokens, "tokens", index, rows * k)?,
            argument(request.settings, "settings", settings, rows * DRAW_SETTINGS)?,
            argument(&output, "output", index, rows)?,
            rows,
            k as u32,
            units,
            [dtype, accumulator(client, dtype)?, index],
        );
    }
    Ok(output)
}

/// Units that share a row: a power of two, 1 without shared memory.
fn units_of_row(client: &Client, k: usize) -> u32 {
    if !has_many_units(client) || is_llvmpipe(client) {
        return 1;
    }
    let wanted = k.div_ceil(DRAW_ITEMS).next_power_of_two().max(32);
    units_per_cube(client, wanted.min(LONG_CUBE_UNITS as usize) as u32)
}

#[derive(CubeType, Clone, Copy)]
struct Prefix<T: Numeric> {
    before: T,
    total: T,
}

/// Sum of the units before this one, and of all. All units of the cube must call it.
#[cube]
fn prefix_sum<T: Numeric>(value: T, #[comptime] units: u32) -> Prefix<T> {
    let mut before = T::from_int(0);
    let mut total = value;
    if comptime!(units > 1) {
        let mut sums = Shared::<[T]>::new_slice(comptime!(2 * units as usize));
        // Others may still read the last sums.
        sync_cube();
        sums[UNIT_POS as usize] = value;
        sync_cube();
        #[unroll]
        for step in 0..comptime!(units.ilog2()) {
            let distance = comptime!(1u32 << step);
            let from = comptime!(step % 2 * units);
            let to = comptime!(units - from);
            let mut sum = sums[(from + UNIT_POS) as usize];
            if UNIT_POS >= distance {
                sum += sums[(from + UNIT_POS - distance) as usize];
            }
            sums[(to + UNIT_POS) as usize] = sum;
            sync_cube();
        }
        let last = comptime!(units.ilog2() % 2 * units);
        if UNIT_POS > 0 {
            before = sums[(last + UNIT_POS - 1) as usize];
        }
        total = sums[comptime!((last + units - 1) as usize)];
    }
    Prefix::<T> { before, total }
}

#[derive(CubeType, Clone, Copy)]
struct DrawRow<A: Float> {
    start: usize,
    count: u32,
    greatest: A,
    temperature: f32,
}

#[cube]
impl<A: Float> DrawRow<A> {
    /// 0 beyond the candidates.
    fn weight<E: Float>(&self, values: &[E], place: u32) -> f32 {
        let mut weight = 0.0f32;
        if place < self.count {
            let below = A::cast_from(values[self.start + place as usize]) - self.greatest;
            // The bound makes weights of infinities and NaN 0, as WGSL promises neither.
            let exponent = f32::cast_from(below) / self.temperature;
            if exponent > -200.0f32 {
                weight = f32::exp(exponent);
            }
        }
        weight
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn draw_kernel<E: Float, A: Float, I: Numeric>(
    values: &[E],
    tokens: &[I],
    rules: &[f32],
    output: &mut [I],
    rows: usize,
    k: u32,
    #[comptime] units: u32,
    #[define(E, A, I)] _dtypes: [ElemType; 3],
) {
    let index = if comptime!(units > 1) { CUBE_POS } else { ABSOLUTE_POS };
    if index >= rows {
        terminate!();
    }
    let lane = if comptime!(units > 1) { UNIT_POS } else { 0u32.runtime() };
    let own = index * DRAW_SETTINGS;
    let (top_p, min_p, uniform) = (rules[own + 1], rules[own + 2], rules[own + 3]);
    let base = comptime!(DRAW_COUNT_BASE as u32);
    let count = u32::cast_from(rules[own + 4]) + u32::cast_from(rules[own + 5]) * base;
    let start = index * k as usize;
    let row = DrawRow::<A> {
        start,
        count: min(count, k),
        greatest: A::cast_from(values[start]),
        temperature: rules[own],
    };

    let items = comptime!(DRAW_ITEMS as u32);
    let tile = comptime!(units * items);
    let tiles = k.div_ceil(tile);
    let mut sum = 0.0f32;
    for at in 0..tiles {
        #[unroll]
        for i in 0..items {
            sum += row.weight::<E>(values, at * tile + lane * items + i);
        }
    }
    let limit = top_p * prefix_sum::<f32>(sum, units).total;

    let mut through = 0.0f32;
    let mut kept = 0u32;
    let mut kept_sum = 0.0f32;
    for at in 0..tiles {
        let first = at * tile + lane * items;
        let mut weights = Array::<f32>::new(comptime!(items as usize));
        let mut sum = 0.0f32;
        #[unroll]
        for i in 0..items {
            weights[i as usize] = row.weight::<E>(values, first + i);
            sum += weights[i as usize];
        }
        let prefix = prefix_sum::<f32>(sum, units);
        let mut before = through + prefix.before;
        #[unroll]
        for i in 0..items {
            let weight = weights[i as usize];
            let stays = weight > 0.0f32 && weight >= min_p && before < limit;
            if stays || first + i == 0 {
                kept += 1;
                kept_sum += weight;
            }
            before += weight;
        }
        through += prefix.total;
    }
    let kept = prefix_sum::<u32>(kept, units).total;
    let point = uniform * prefix_sum::<f32>(kept_sum, units).total;

    let mut through = 0.0f32;
    let mut passed = 0u32;
    for at in 0..tiles {
        let first = at * tile + lane * items;
        let mut weights = Array::<f32>::new(comptime!(items as usize));
        let mut sum = 0.0f32;
        #[unroll]
        for i in 0..items {
            weights[i as usize] = row.weight::<E>(values, first + i);
            sum += weights[i as usize];
        }
        let prefix = prefix_sum::<f32>(sum, units);
        let mut sum = through + prefix.before;
        #[unroll]
        for i in 0..items {
            sum += weights[i as usize];
            if first + i < kept && sum <= point {
                passed += 1;
            }
        }
        through += prefix.total;
    }
    let passed = prefix_sum::<u32>(passed, units).total;
    if lane == 0 {
        // Rounding may leave the point at the last sum.
        output[index] = tokens[start + min(passed, kept - 1) as usize];
    }
}
