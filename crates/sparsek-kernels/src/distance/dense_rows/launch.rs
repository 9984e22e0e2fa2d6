use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::kernel::{dense_distances_kernel, unit_rows_kernel};
use crate::{
    distance::{launch::planes_for, types::DenseForm},
    error::KernelError,
    launch::{allocate, argument},
};

/// Distances of each query to its candidates, or to all rows: `[queries, candidates or rows]`.
///
/// `queries` and `rows`: contiguous `[_, columns]` of `dtype`, f32 or f64, of unit length for
/// [`DenseForm::Angle`]. `counts`: queries, rows, columns. `candidates`: `[queries, each]` row
/// numbers below the rows, their `each` and dtype.
///
/// # Errors
///
/// [`KernelError`] for short or too large buffers.
pub fn dense_distances(
    client: &Client,
    form: DenseForm,
    [queries, rows]: [&Handle; 2],
    counts: [usize; 3],
    candidates: Option<(&Handle, usize, ElemType)>,
    dtype: ElemType,
) -> Result<Handle, KernelError> {
    let [query_count, row_count, columns] = counts;
    let across = candidates.map_or(row_count, |(_, each, _)| each);
    let pairs = query_count * across;
    let output = allocate(client, "distances", pairs, dtype)?;
    if pairs == 0 {
        return Ok(output);
    }
    let elements = pairs.max(query_count * columns).max(row_count * columns);
    let (grid, plane) = planes_for(client, pairs, elements)?;
    let index = candidates.map_or(i32::elem_type_native(), |(.., index)| index);
    let candidates = candidates.map(|(handle, ..)| argument(handle, "candidates", index, pairs));
    // SAFETY: `argument` checks lengths; the caller bounds candidates.
    unsafe {
        dense_distances_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(queries, "queries", dtype, query_count * columns)?,
            argument(rows, "rows", dtype, row_count * columns)?,
            candidates.transpose()?.into(),
            argument(&output, "distances", dtype, pairs)?,
            pairs,
            across,
            columns,
            plane,
            form,
            [dtype, index],
        );
    }
    Ok(output)
}

/// Rows divided by their norms, less their means if `centered`: contiguous `[rows, columns]` of
/// `dtype`, f32 or f64. Rows of norm zero, and others that are not finite, have NaN.
///
/// # Errors
///
/// [`KernelError`] for short or too large buffers.
pub fn unit_rows(
    client: &Client,
    input: &Handle,
    [rows, columns]: [usize; 2],
    centered: bool,
    dtype: ElemType,
) -> Result<Handle, KernelError> {
    let elements = rows * columns;
    let output = allocate(client, "rows", elements, dtype)?;
    if elements > 0 {
        let (grid, plane) = planes_for(client, rows, elements)?;
        // SAFETY: `argument` checks lengths.
        unsafe {
            unit_rows_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(input, "input", dtype, elements)?,
                argument(&output, "rows", dtype, elements)?,
                rows,
                columns,
                plane,
                centered,
                dtype,
            );
        }
    }
    Ok(output)
}
