use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::kernel::{dense_distances_kernel, unit_rows_kernel};
use crate::{
    device::{LLVMPIPE_JUMPS, is_llvmpipe, plane_or_unit},
    distance::{launch::planes_for, types::DenseForm},
    error::KernelError,
    launch::{allocate, argument},
};

/// Distances of queries to candidates or all rows: `[queries, candidates or rows]`.
///
/// Inputs: contiguous `[_, columns]`, f32 or f64; unit rows for [`DenseForm::Angle`]. `counts`:
/// queries, rows, columns. `candidates`: `[queries, each]`, `each`, dtype; clamped to the last row.
///
/// # Errors
///
/// [`KernelError`] for bad buffer sizes, candidates without rows, rows too long for llvmpipe.
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
    if row_count == 0 {
        return Err(KernelError::Rows { first: 0, end: 1, rows: 0 });
    }
    check_loops(client, columns)?;
    let elements = pairs.max(query_count * columns).max(row_count * columns);
    let (grid, plane) = planes_for(client, pairs, elements)?;
    let index = candidates.map_or(i32::elem_type_native(), |(.., index)| index);
    let candidates = candidates.map(|(handle, ..)| argument(handle, "candidates", index, pairs));
    // SAFETY: lengths checked; the kernel bounds candidates.
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
            row_count,
            plane,
            form,
            [dtype, index],
        );
    }
    Ok(output)
}

/// Normalizes rows, less their means if `centered`: contiguous `[rows, columns]`, f32 or f64.
///
/// NaN if a norm is zero or not finite.
///
/// # Errors
///
/// As [`dense_distances`].
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
        check_loops(client, columns)?;
        let (grid, plane) = planes_for(client, rows, elements)?;
        // SAFETY: lengths checked.
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

fn check_loops(client: &Client, columns: usize) -> Result<(), KernelError> {
    let steps = columns.div_ceil(plane_or_unit(client) as usize);
    if is_llvmpipe(client) && steps > LLVMPIPE_JUMPS {
        let reason = format!("{steps} loop iterations; llvmpipe stops after {LLVMPIPE_JUMPS}");
        return Err(KernelError::Routine { routine: "dense_distances", reason });
    }
    Ok(())
}
