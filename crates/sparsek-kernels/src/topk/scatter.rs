//! The gradients of top-k: values put back at their indices, deterministic and without atomics
//! because the indices of a row are distinct. Slots without a member give nothing.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::launch::{require_index, zero};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument, require_dtype},
};

/// Values to put back at the columns that a selection came from.
#[derive(Clone, Debug)]
pub struct Scatter<'a> {
    /// Contiguous `[rows, k]`, or `[rows, cols]` when `dense`.
    pub source: &'a Handle,
    /// Dtype of source and result.
    pub dtype: ElemType,
    /// Contiguous `[rows, k]` columns, distinct in each row; those that are not below `cols`, such as
    /// -1, are skipped.
    pub indices: &'a Handle,
    /// Dtype of the columns: i32, u32 or i64.
    pub index: ElemType,
    /// Rows of the result.
    pub rows: usize,
    /// Columns of the result.
    pub cols: usize,
    /// Members per row.
    pub k: usize,
    /// Whether the source is a dense matrix of which only the members are kept.
    pub dense: bool,
}

/// A contiguous `[rows, cols]` matrix that is zero but at the given columns. Deterministic, without
/// atomics: columns of a row are distinct. Writes the result once and the members again.
///
/// # Errors
///
/// [`KernelError`] when the device lacks a dtype or a buffer is too short, too large or needs wider
/// addresses.
pub fn scatter(client: &Client, request: &Scatter) -> Result<Handle, KernelError> {
    let Scatter {
        dtype,
        index,
        rows,
        cols,
        k,
        dense,
        ..
    } = *request;
    require_dtype(client, dtype)?;
    require_index(index)?;
    let elements = rows * cols;
    let output = allocate(client, "output", elements, dtype)?;
    zero(client, &output, dtype, elements)?;
    let total = rows * k;
    if total == 0 {
        return Ok(output);
    }
    let needed = if dense { elements } else { total };
    let grid = Grid::elementwise(client, total, elements)?;
    // SAFETY: lengths are checked by `argument`, columns by the kernel.
    unsafe {
        scatter_members::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(request.source, "source", dtype, needed)?,
            argument(request.indices, "indices", index, total)?,
            argument(&output, "output", dtype, elements)?,
            total,
            k as u32,
            cols as u32,
            dense,
            [dtype, index],
        );
    }
    Ok(output)
}

/// Fills a buffer with zeros.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn fill_zero<E: Numeric, N: Size>(
    output: &mut [Vector<E, N>],
    #[define(E)] _dtype: ElemType,
) {
    if ABSOLUTE_POS < output.len() {
        output[ABSOLUTE_POS] = Vector::<E, N>::zeroed();
    }
}

/// `output[row, indices[row, i]] = source[row, i]`, or `source[row, indices[row, i]]` when the
/// source is dense.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn scatter_members<E: Numeric, I: Numeric>(
    source: &[E],
    indices: &[I],
    output: &mut [E],
    total: usize,
    k: u32,
    cols: u32,
    #[comptime] dense: bool,
    #[define(E, I)] _dtypes: [ElemType; 2],
) {
    let position = ABSOLUTE_POS;
    if position >= total {
        terminate!();
    }
    let row = position / k as usize;
    let column = usize::cast_from(indices[position]);
    if column < cols as usize {
        let target = row * cols as usize + column;
        let from = if dense { target } else { position };
        output[target] = source[from];
    }
}
