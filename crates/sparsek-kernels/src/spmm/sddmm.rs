//! Gradients of weights: sampled products of dense matrices (SDDMM).

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    compressed::Compressed,
    operand::{Entries, Operand},
};
use crate::{
    device::rounded_accumulator,
    error::KernelError,
    launch::{Grid, allocate, argument},
    primitives::csr::row_of,
};

struct Right<'a> {
    values: &'a Handle,
    /// Of compressed rows; dense when absent.
    columns: Option<(&'a Handle, ElemType)>,
    dtype: ElemType,
    k: usize,
    width: usize,
}

/// Computes the gradient of [`spmm`](super::spmm) for the weights:
/// `out[e] = rows[i] cols[j] Σ left[i] right[j]` for each entry `e = (i, j)`. Deterministic.
///
/// `left` is contiguous `[rows, width]`, `right` `[cols, width]`, both of `dtype`; returns `[nnz]`.
/// Ignores weights. Errors: as [`spmm`](super::spmm).
pub fn sddmm(
    client: &Client,
    operand: &Operand,
    left: &Handle,
    right: &Handle,
    dtype: ElemType,
    width: usize,
) -> Result<Handle, KernelError> {
    let right = Right { values: right, columns: None, dtype, k: width, width };
    launch(client, operand, left, &right)
}

/// [`sddmm`] with compressed rows: the gradient of [`spmm_compressed`](super::spmm_compressed).
pub fn sddmm_compressed(
    client: &Client,
    operand: &Operand,
    left: &Handle,
    right: &Compressed,
) -> Result<Handle, KernelError> {
    let right = Right {
        values: right.values,
        columns: Some((right.columns, right.index)),
        dtype: right.dtype,
        k: right.k,
        width: right.width,
    };
    launch(client, operand, left, &right)
}

fn launch(
    client: &Client,
    operand: &Operand,
    left: &Handle,
    right: &Right,
) -> Result<Handle, KernelError> {
    let dtype = right.dtype;
    let sum = rounded_accumulator(client, dtype)?;
    let csr = operand.csr;
    let output = allocate(client, "output", csr.nnz, dtype)?;
    if csr.nnz == 0 {
        return Ok(output);
    }
    let elements = csr.nnz.max(csr.rows * right.width).max(csr.cols * right.k);
    let grid = Grid::elementwise(client, csr.nnz, elements)?;
    let int = i32::elem_type_native();
    let unweighted = Operand { weights: None, ..*operand };
    let (columns, index, needed) = match right.columns {
        Some((columns, index)) => (columns, index, csr.cols * right.k),
        None => (csr.indptr, int, 1),
    };
    // SAFETY: `argument` checks lengths; `Csr` and `Compressed` promise indices.
    unsafe {
        sddmm_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(csr.indptr, "indptr", int, csr.rows + 1)?,
            unweighted.entries(client, dtype, sum)?,
            argument(left, "left", dtype, csr.rows * right.width)?,
            argument(right.values, "right", dtype, csr.cols * right.k)?,
            argument(columns, "columns", index, needed)?,
            argument(&output, "output", dtype, csr.nnz)?,
            csr.rows as u32,
            right.k,
            right.width,
            right.columns.is_some(),
            [dtype, sum, index],
        );
    }
    Ok(output)
}

/// A unit for each entry bisects the offsets for its row.
#[cube(launch_unchecked, address_type = "dynamic")]
fn sddmm_kernel<E: Float, S: Float, I: Numeric>(
    indptr: &[i32],
    source: Entries<E, S>,
    left: &[E],
    right: &[E],
    columns: &[I],
    output: &mut [E],
    rows: u32,
    k: usize,
    width: usize,
    #[comptime] compressed: bool,
    #[define(E, S, I)] _dtypes: [ElemType; 3],
) {
    if ABSOLUTE_POS >= output.len() {
        terminate!();
    }
    let entry = i32::cast_from(ABSOLUTE_POS);
    let row = row_of(indptr, rows, entry) as usize;
    let column = source.column(entry);
    let mut sum = S::new(0.0);
    for i in 0..k {
        let from =
            if comptime!(compressed) { usize::cast_from(columns[column * k + i]) } else { i };
        sum += S::cast_from(left[row * width + from]) * S::cast_from(right[column * k + i]);
    }
    let factor = source.factor(entry, column) * source.row_factor(row);
    output[ABSOLUTE_POS] = E::cast_from(sum * factor);
}
