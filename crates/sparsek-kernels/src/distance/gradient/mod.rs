//! Gradient by one matrix: for an entry (i, c) of value a,
//!
//! ```text
//! Σ_j w_ij (f'(a, b_jc) − f'(a, 0)) + t_i f'(a, 0) + s_i
//! ```
//!
//! over rows j of the other with column c. One kernel makes w, t and s; one sums transposed
//! columns, in fixed order. Minkowski's f' depends on the distance: entries add f'(a, 0) over all
//! j. Jensen-Shannon's shares sum to 1: a third kernel subtracts the mean slope.

mod kernel;

use cubecl::{prelude::*, server::Handle};

use self::kernel::{entries_kernel, per_pair, project_kernel, weights_kernel};
use super::{
    launch::planes_for,
    metrics::Cosine,
    prepare::norms,
    semiring::{Gradient, Parameter},
    types::{Matrix, Prepared},
};
use crate::{
    device::{require_buffers, require_rounding},
    error::KernelError,
    launch::{allocate, argument},
};

const ENTRIES_BUFFERS: usize = 10;

/// Matrix by column, renumbered if [`is_wide`](crate::distance::is_wide).
#[derive(Clone, Copy, Debug)]
pub struct Transposed<'a> {
    /// The other's renumbered columns, i32.
    pub places: &'a Handle,
    /// Renumbered column count.
    pub cols: usize,
    /// `cols+1` offsets, i32.
    pub indptr: &'a Handle,
    /// Rows, i32.
    pub rows: &'a Handle,
    /// Positions of values, i32.
    pub entries: &'a Handle,
}

/// `[rows of x, rows of y]`, of [`Prepared::dtype`].
#[derive(Clone, Copy, Debug)]
pub struct Upstream<'a> {
    /// Gradient of the distances.
    pub gradient: &'a Handle,
    /// Distances.
    pub distances: &'a Handle,
    /// By [`divisor`](crate::distance::divisor), or anything of this size.
    pub divisors: &'a Handle,
}

/// Gradient of `x`'s values, in their dtype.
///
/// Errors: dtypes that kernels cannot round to.
pub fn gradient(
    client: &Client,
    [x, y]: [&Matrix; 2],
    [x_norms, y_norms]: [&Prepared; 2],
    transposed: &Transposed,
    upstream: &Upstream,
    slope: Gradient,
    parameter: Parameter,
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
    let numbers = per_pair(slope) * pairs;
    let weights = allocate(client, "weights", numbers, dtype)?;
    let sums = allocate(client, "sums", 2 * x.rows, dtype)?;
    let prepared = slope.takes_prepared_values();
    let (x_values, y_values, values_dtype) = match prepared {
        true => (&x_norms.values, &y_norms.values, dtype),
        false => (x.values, y.values, x.dtype),
    };
    // Angles' norms hold them already.
    let powers = match prepared && slope != Gradient::Angle {
        true => norms::prepare::<Cosine>(client, x, parameter)?.norms,
        false => x_norms.norms.clone(),
    };
    let projected = slope == Gradient::JensenShannon;
    let (slopes, slopes_dtype) = match projected {
        true => (allocate(client, "slopes", x.nnz, dtype)?, dtype),
        false => (output.clone(), x.dtype),
    };
    let elements = numbers.max(x.nnz).max(y.nnz).max(2 * x.rows.max(y.rows));
    let (grid, plane) = planes_for(client, x.rows, elements)?;
    // SAFETY: lengths checked; `Matrix`, `Transposed` bound positions.
    unsafe {
        weights_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(upstream.gradient, "upstream", dtype, pairs)?,
            argument(upstream.distances, "distances", dtype, pairs)?,
            argument(upstream.divisors, "divisors", dtype, pairs)?,
            argument(&x_norms.norms, "norms", dtype, 2 * x.rows)?,
            argument(&y_norms.norms, "norms", dtype, 2 * y.rows)?,
            argument(&powers, "powers", dtype, 2 * x.rows)?,
            argument(&weights, "weights", dtype, numbers)?,
            argument(&sums, "sums", dtype, 2 * x.rows)?,
            x.rows,
            y.rows,
            x.cols as f32,
            plane,
            slope,
            dtype,
        );
        let (grid, plane) = planes_for(client, x.nnz, elements)?;
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
            argument(&weights, "weights", dtype, numbers)?,
            argument(&sums, "sums", dtype, 2 * x.rows)?,
            argument(&slopes, "gradient", slopes_dtype, x.nnz)?,
            parameter.launch(),
            x.rows as u32,
            y.rows,
            plane,
            slope,
            [slopes_dtype, values_dtype, dtype],
        );
        if projected {
            let (grid, plane) = planes_for(client, x.rows, elements)?;
            project_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(x.indptr, "indptr", int, x.rows + 1)?,
                argument(x_values, "values", dtype, x.nnz)?,
                argument(&slopes, "slopes", dtype, x.nnz)?,
                argument(&output, "gradient", x.dtype, x.nnz)?,
                x.rows,
                plane,
                [x.dtype, dtype],
            );
        }
    }
    Ok(output)
}
