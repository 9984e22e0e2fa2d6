//! Gradient with respect to one matrix's values: for an entry (i, c) of value a,
//!
//! ```text
//! Σ_j w_ij (f(a, b_jc) − f(a, 0)) + t_i f'(a)
//! ```
//!
//! over the other's rows j with column c. One kernel makes weights w and row sums t; a second sums
//! over transposed columns, in fixed order.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    launch::planes_for,
    semiring::Gradient,
    types::{Matrix, Prepared},
};
use crate::{
    device::{require_buffers, require_rounding},
    error::KernelError,
    launch::{allocate, argument},
    primitives::csr::row_of,
};

const ENTRIES_BUFFERS: usize = 10;

/// A matrix by column, renumbered if wide ([`is_wide`](crate::distance::is_wide)).
#[derive(Clone, Copy, Debug)]
pub struct Transposed<'a> {
    /// Renumbered column of the other matrix's entries, i32.
    pub places: &'a Handle,
    /// Renumbered column count.
    pub cols: usize,
    /// `cols + 1` offsets, i32.
    pub indptr: &'a Handle,
    /// Rows, i32.
    pub rows: &'a Handle,
    /// Positions of values, i32.
    pub entries: &'a Handle,
}

/// Contiguous `[rows of x, rows of y]`, of [`Prepared::dtype`].
#[derive(Clone, Copy, Debug)]
pub struct Upstream<'a> {
    /// Gradient of the distances.
    pub gradient: &'a Handle,
    /// The distances.
    pub distances: &'a Handle,
}

/// Gradient of the values of `x`, in their dtype.
///
/// # Errors
///
/// [`KernelError`] for short or too large buffers, and dtypes that kernels cannot round to.
pub fn gradient(
    client: &Client,
    [x, y]: [&Matrix; 2],
    [x_norms, y_norms]: [&Prepared; 2],
    transposed: &Transposed,
    upstream: &Upstream,
    slope: Gradient,
) -> Result<Handle, KernelError> {
    require_rounding(client, x.dtype)?;
    require_buffers(client, ENTRIES_BUFFERS)?;
    let output = allocate(client, "gradient", x.nnz, x.dtype)?;
    if x.nnz == 0 {
        return Ok(output);
    }
    let dtype = x_norms.dtype;
    let pairs = x.rows * y.rows;
    let int = i32::elem_type_native();
    let weights = allocate(client, "weights", pairs, dtype)?;
    let sums = allocate(client, "sums", x.rows, dtype)?;
    // Angles use normalized rows.
    let (x_values, y_values, values_dtype) = match slope {
        Gradient::Angle => (&x_norms.values, &y_norms.values, dtype),
        _ => (x.values, y.values, x.dtype),
    };
    let elements = pairs.max(x.nnz).max(y.nnz).max(2 * x.rows.max(y.rows));
    let (grid, plane) = planes_for(client, x.rows, elements)?;
    // SAFETY: `argument` checks lengths; `Matrix` and `Transposed` bound positions.
    unsafe {
        weights_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(upstream.gradient, "upstream", dtype, pairs)?,
            argument(upstream.distances, "distances", dtype, pairs)?,
            argument(&x_norms.norms, "norms", dtype, 2 * x.rows)?,
            argument(&y_norms.norms, "norms", dtype, 2 * y.rows)?,
            argument(&weights, "weights", dtype, pairs)?,
            argument(&sums, "sums", dtype, x.rows)?,
            x.rows,
            y.rows,
            plane,
            slope,
            dtype,
        );
        let (grid, _) = planes_for(client, x.nnz, elements)?;
        entries_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(x.indptr, "indptr", int, x.rows + 1)?,
            argument(transposed.places, "indices", int, x.nnz)?,
            argument(x_values, "values", values_dtype, x.nnz)?,
            argument(transposed.indptr, "indptr", int, transposed.cols + 1)?,
            argument(transposed.rows, "rows", int, y.nnz)?,
            argument(transposed.entries, "entries", int, y.nnz)?,
            argument(y_values, "values", values_dtype, y.nnz)?,
            argument(&weights, "weights", dtype, pairs)?,
            argument(&sums, "sums", dtype, x.rows)?,
            argument(&output, "gradient", x.dtype, x.nnz)?,
            x.rows as u32,
            y.rows,
            plane,
            slope,
            [x.dtype, values_dtype, dtype],
        );
    }
    Ok(output)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn weights_kernel<S: Float>(
    upstream: &[S],
    distances: &[S],
    x_norms: &[S],
    y_norms: &[S],
    weights: &mut [S],
    sums: &mut [S],
    rows: usize,
    across: usize,
    #[comptime] plane: u32,
    #[comptime] slope: Gradient,
    #[define(S)] _dtype: ElemType,
) {
    let row = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if row >= rows {
        terminate!();
    }
    let zero = S::new(0.0);
    let mut sum = zero;
    let mut other = UNIT_POS_X as usize;
    while other < across {
        let at = row * across + other;
        let mut weight = upstream[at];
        let mut row_term = weight;
        if comptime!(slope == Gradient::Product) {
            row_term = zero;
        }
        if comptime!(slope == Gradient::Square) {
            row_term = S::new(2.0) * weight;
            weight = -row_term;
        }
        if comptime!(slope == Gradient::Root) {
            let distance = distances[at];
            let distinct = distance > zero;
            row_term = select(distinct, weight / select(distinct, distance, S::new(1.0)), zero);
            weight = -row_term;
        }
        if comptime!(slope == Gradient::Angle) {
            let x = x_norms[2 * row];
            let nonzero = x > zero && y_norms[2 * other] > zero;
            let x = select(nonzero, x, S::new(1.0));
            // Inverse norm: its square may overflow.
            let by_norm = weight / x.sqrt() * x_norms[2 * row + 1];
            row_term = select(nonzero, by_norm * (S::new(1.0) - distances[at]), zero);
            weight = select(nonzero, -by_norm, zero);
        }
        weights[at] = weight;
        sum += row_term;
        other += plane as usize;
    }
    if comptime!(plane > 1) {
        sum = plane_sum(sum);
    }
    if UNIT_POS_X == 0 {
        sums[row] = sum;
    }
}

#[cube]
fn sign<S: Float>(a: S) -> S {
    let positive = select(a > S::new(0.0), S::new(1.0), S::new(0.0));
    select(a < S::new(0.0), S::new(-1.0), positive)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn entries_kernel<E: Float, V: Float, S: Float>(
    indptr: &[i32],
    indices: &[i32],
    values: &[V],
    transposed_indptr: &[i32],
    transposed_rows: &[i32],
    transposed_entries: &[i32],
    others: &[V],
    weights: &[S],
    sums: &[S],
    output: &mut [E],
    rows: u32,
    across: usize,
    #[comptime] plane: u32,
    #[comptime] slope: Gradient,
    #[define(E, V, S)] _dtypes: [ElemType; 3],
) {
    let at = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if at >= output.len() {
        terminate!();
    }
    let entry = i32::cast_from(at);
    let row = row_of(indptr, rows, entry) as usize;
    let left = S::cast_from(values[at]);
    let column = indices[at] as usize;
    let mut place = transposed_indptr[column] as usize + UNIT_POS_X as usize;
    let end = transposed_indptr[column + 1] as usize;
    let mut sum = S::new(0.0);
    while place < end {
        let other = S::cast_from(others[transposed_entries[place] as usize]);
        let weight = weights[row * across + transposed_rows[place] as usize];
        if comptime!(slope == Gradient::Sign) {
            sum += weight * (sign::<S>(left - other) - sign::<S>(left));
        } else {
            sum += weight * other;
        }
        place += plane as usize;
    }
    if comptime!(plane > 1) {
        sum = plane_sum(sum);
    }
    if UNIT_POS_X == 0 {
        let slope_of_left = if comptime!(slope == Gradient::Sign) { sign::<S>(left) } else { left };
        output[at] = E::cast_from(sum + slope_of_left * sums[row]);
    }
}
