//! Maximum aggregation: a unit per result.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::types::Csr;
use crate::{
    device::rounded_accumulator,
    error::KernelError,
    launch::{Grid, allocate, argument},
};

/// Computes `y[i] = max x[j]` over entries `(i, j)`, per column.
///
/// Returns values and winning entries (`i32`), `[rows, width]`. `x` is `[cols, width]`, of dtypes
/// as in [`spmm`](super::spmm).
///
/// The first of equal values wins. Empty rows give 0 and −1. NaN is unspecified.
pub fn maximum(
    client: &Client,
    csr: &Csr,
    x: &Handle,
    dtype: ElemType,
    width: usize,
) -> Result<(Handle, Handle), KernelError> {
    rounded_accumulator(client, dtype)?;
    let int = i32::elem_type_native();
    let elements = csr.rows * width;
    let values = allocate(client, "values", elements, dtype)?;
    let winners = allocate(client, "entries", elements, int)?;
    if elements == 0 {
        return Ok((values, winners));
    }
    let grid = Grid::elementwise(client, elements, elements.max(csr.cols * width))?;
    // SAFETY: lengths checked; `Csr` promises indices.
    unsafe {
        maximum_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(csr.indptr, "indptr", int, csr.rows + 1)?,
            argument(csr.indices, "indices", int, csr.nnz)?,
            argument(x, "x", dtype, csr.cols * width)?,
            argument(&values, "values", dtype, elements)?,
            argument(&winners, "entries", int, elements)?,
            width,
            elements,
            dtype,
        );
    }
    Ok((values, winners))
}

/// Gradient of [`maximum`]: `dx[j] = Σ dy[i]` over winning entries `(i, j)`,
/// `[transposed.rows, width]`.
///
/// `entries` maps entries of `transposed` to the pattern's; `winners` is from [`maximum`];
/// `upstream` has its shape.
pub fn maximum_gradient(
    client: &Client,
    transposed: &Csr,
    entries: &Handle,
    winners: &Handle,
    upstream: &Handle,
    dtype: ElemType,
    width: usize,
) -> Result<Handle, KernelError> {
    let sum = rounded_accumulator(client, dtype)?;
    let int = i32::elem_type_native();
    let elements = transposed.rows * width;
    let output = allocate(client, "output", elements, dtype)?;
    if elements == 0 {
        return Ok(output);
    }
    let given = transposed.cols * width;
    let grid = Grid::elementwise(client, elements, elements.max(given))?;
    // SAFETY: as in `maximum`.
    unsafe {
        gradient_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(transposed.indptr, "indptr", int, transposed.rows + 1)?,
            argument(transposed.indices, "indices", int, transposed.nnz)?,
            argument(entries, "entries", int, transposed.nnz)?,
            argument(winners, "winners", int, given)?,
            argument(upstream, "upstream", dtype, given)?,
            argument(&output, "output", dtype, elements)?,
            width,
            elements,
            [dtype, sum],
        );
    }
    Ok(output)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn maximum_kernel<E: Float>(
    indptr: &[i32],
    indices: &[i32],
    x: &[E],
    values: &mut [E],
    winners: &mut [i32],
    width: usize,
    elements: usize,
    #[define(E)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= elements {
        terminate!();
    }
    let row = ABSOLUTE_POS / width;
    let column = ABSOLUTE_POS - row * width;
    let first = indptr[row];
    let end = indptr[row + 1];
    let mut best = E::new(0.0);
    let mut winner = i32::new(-1);
    let mut entry = first;
    while entry < end {
        let value = x[usize::cast_from(indices[entry as usize]) * width + column];
        let leads = entry == first || value > best;
        if leads {
            best = value;
            winner = entry;
        }
        entry += 1;
    }
    values[ABSOLUTE_POS] = best;
    winners[ABSOLUTE_POS] = winner;
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn gradient_kernel<E: Float, S: Float>(
    indptr: &[i32],
    indices: &[i32],
    entries: &[i32],
    winners: &[i32],
    upstream: &[E],
    output: &mut [E],
    width: usize,
    elements: usize,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS >= elements {
        terminate!();
    }
    let row = ABSOLUTE_POS / width;
    let column = ABSOLUTE_POS - row * width;
    let end = indptr[row + 1];
    let mut entry = indptr[row];
    let mut sum = S::new(0.0);
    while entry < end {
        let from = usize::cast_from(indices[entry as usize]) * width + column;
        let won = winners[from] == entries[entry as usize];
        sum += select(won, S::cast_from(upstream[from]), S::new(0.0));
        entry += 1;
    }
    output[ABSOLUTE_POS] = E::cast_from(sum);
}
