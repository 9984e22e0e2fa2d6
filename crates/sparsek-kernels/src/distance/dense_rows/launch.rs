use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
    server::Handle,
};

use super::kernel::{
    ListedConfig, dense_distances_kernel, listed_distances_kernel, unit_rows_kernel,
};
use crate::{
    device::{LLVMPIPE_JUMPS, LLVMPIPE_REFUSAL, is_llvmpipe, plane_or_unit},
    distance::{
        launch::{planes, planes_for},
        types::DenseForm,
    },
    error::KernelError,
    launch::{Grid, allocate, argument},
};

const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// Distances of queries to candidates or all rows: `[queries, candidates or rows]`.
///
/// Inputs: `[_, columns]`, f32 or f64; unit rows for [`DenseForm::Angle`]. `counts`: queries, rows,
/// columns. `candidates`: `[queries, each]`, `each`, dtype; clamped to the last row.
///
/// Errors: candidates without rows, rows too long for llvmpipe.
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

/// Row numbers per query, in any order.
#[derive(Clone, Copy)]
pub struct Listed<'a> {
    /// u32 `[queries, capacity]`, distinct up to the query's count.
    pub numbers: &'a Handle,
    /// u32 `[queries]`.
    pub counts: &'a Handle,
    /// Numbers that fit.
    pub capacity: usize,
}

/// Distances of queries to listed rows, by ascending number, and the numbers, of `index`: both
/// `[queries, capacity]`.
///
/// Inputs as [`dense_distances`]. Behind the count follow the last row and the farthest distance.
/// Counts above the capacity give NaN.
///
/// Errors as [`dense_distances`], for lists beyond shared memory, and on llvmpipe.
pub fn listed_distances(
    client: &Client,
    form: DenseForm,
    [queries, rows]: [&Handle; 2],
    counts: [usize; 3],
    listed: Listed,
    [dtype, index]: [ElemType; 2],
) -> Result<(Handle, Handle), KernelError> {
    let [query_count, row_count, columns] = counts;
    let capacity = listed.capacity;
    let shared = capacity.saturating_mul(2 * size_of::<u32>());
    let limit = client.properties().hardware.max_shared_memory_size;
    let refused = |reason| KernelError::Routine { routine: "listed_distances", reason };
    if is_llvmpipe(client) {
        return Err(refused(LLVMPIPE_REFUSAL.into()));
    }
    if shared > limit {
        let reason = format!("it needs {shared} bytes of shared memory; the limit is {limit}");
        return Err(refused(reason));
    }
    let pairs = query_count * capacity;
    let distances = allocate(client, "distances", pairs, dtype)?;
    let numbers = allocate(client, "numbers", pairs, index)?;
    if pairs == 0 {
        return Ok((distances, numbers));
    }
    if row_count == 0 {
        return Err(KernelError::Rows { first: 0, end: 1, rows: 0 });
    }
    let [plane, planes] = planes(client);
    let elements = pairs.max(query_count * columns).max(row_count * columns);
    let grid = Grid::new(client, query_count, CubeDim::new_2d(plane, planes), elements)?;
    // SAFETY: lengths checked; the kernel bounds numbers.
    unsafe {
        listed_distances_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(queries, "queries", dtype, query_count * columns)?,
            argument(rows, "rows", dtype, row_count * columns)?,
            argument(listed.numbers, "listed", U32, pairs)?,
            argument(listed.counts, "counts", U32, query_count)?,
            argument(&distances, "distances", dtype, pairs)?,
            argument(&numbers, "numbers", index, pairs)?,
            query_count,
            columns,
            row_count,
            ListedConfig { plane, planes, capacity: capacity as u32, form },
            [dtype, index],
        );
    }
    Ok((distances, numbers))
}

/// Normalizes rows, less their means if `centered`: `[rows, columns]`, f32 or f64.
///
/// NaN if a norm is zero or not finite.
///
/// Errors as [`dense_distances`].
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
