//! Products of a sparse CSR matrix with dense matrices: aggregation over a graph and its gradients.
//! Each output element is summed by one unit in the order of the entries: deterministic, no atomics.

use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument, require_dtype},
};

/// A CSR pattern in device memory: contiguous buffers of `i32`, so at most 2^31 − 1 entries.
#[derive(Clone, Copy, Debug)]
pub struct Csr<'a> {
    /// `rows + 1` offsets into `indices`, monotone.
    pub indptr: &'a Handle,
    /// Column of each entry, below `cols`.
    pub indices: &'a Handle,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Entries.
    pub nnz: usize,
}

/// The values of a CSR matrix: entry `e` weighs `values[e]`, or `values[entries[e]]`.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// Contiguous, one for each entry, in the dtype of the dense operand.
    pub values: &'a Handle,
    /// Contiguous `i32`: which value belongs to each entry; in order when absent.
    pub entries: Option<&'a Handle>,
}

/// `y[i] = Σ w[e] x[j]` over the entries `e = (i, j)` of row `i`; all weights are 1 when absent.
///
/// `x` is contiguous `[cols, width]` of `dtype` (f32, f64, f16 or bf16; the last two accumulate in
/// f32); the result is contiguous `[rows, width]`. Reads a row of `x` for each entry.
///
/// # Errors
///
/// [`KernelError`] for a dtype that is not a float or that the device lacks, and for buffers that
/// are too short, too large or need wider addresses.
pub fn spmm(
    client: &Client,
    csr: &Csr,
    weights: Option<Weights>,
    x: &Handle,
    dtype: ElemType,
    width: usize,
) -> Result<Handle, KernelError> {
    let sum = accumulator(client, dtype)?;
    let elements = csr.rows * width;
    let output = allocate(client, "output", elements, dtype)?;
    if elements == 0 {
        return Ok(output);
    }
    let offset = x.offset_start.unwrap_or(0) as usize;
    let vector = client
        .io_optimized_vector_sizes(dtype.size())
        .filter(|size| width.is_multiple_of(*size) && offset.is_multiple_of(size * dtype.size()))
        .max()
        .unwrap_or(1);
    let vectors = width / vector;
    let grid = Grid::elementwise(client, csr.rows * vectors, elements.max(csr.cols * width))?;
    let int = i32::elem_type_native();
    let permuted = weights.is_some_and(|weights| weights.entries.is_some());
    let values = weights.map_or(x, |weights| weights.values);
    let entries = weights
        .and_then(|weights| weights.entries)
        .unwrap_or(csr.indptr);
    // SAFETY: `argument` checks the lengths; offsets and columns are in range by the contract of
    // `Csr`; unused buffers stand in for absent ones and are not read.
    unsafe {
        spmm_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            vector,
            argument(csr.indptr, "indptr", int, csr.rows + 1)?,
            argument(csr.indices, "indices", int, csr.nnz)?,
            argument(
                values,
                "weights",
                dtype,
                if weights.is_some() { csr.nnz } else { 1 },
            )?,
            argument(entries, "entries", int, if permuted { csr.nnz } else { 1 })?,
            argument(x, "x", dtype, csr.cols * width)?,
            argument(&output, "output", dtype, elements)?,
            csr.rows,
            vectors as u32,
            weights.is_some(),
            permuted,
            [dtype, sum],
        );
    }
    Ok(output)
}

/// `out[e] = left[i] · right[j]` for each entry `e = (i, j)`: the gradient of [`spmm`] with respect
/// to the weights.
///
/// `left` is contiguous `[rows, width]`, `right` contiguous `[cols, width]`, both of `dtype`; the
/// result has one element for each entry.
///
/// # Errors
///
/// As [`spmm`].
pub fn sddmm(
    client: &Client,
    csr: &Csr,
    left: &Handle,
    right: &Handle,
    dtype: ElemType,
    width: usize,
) -> Result<Handle, KernelError> {
    let sum = accumulator(client, dtype)?;
    let output = allocate(client, "output", csr.nnz, dtype)?;
    if csr.nnz == 0 {
        return Ok(output);
    }
    let elements = csr.nnz.max(csr.rows * width).max(csr.cols * width);
    let grid = Grid::elementwise(client, csr.nnz, elements)?;
    let int = i32::elem_type_native();
    // SAFETY: as in `spmm`.
    unsafe {
        sddmm_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(csr.indptr, "indptr", int, csr.rows + 1)?,
            argument(csr.indices, "indices", int, csr.nnz)?,
            argument(left, "left", dtype, csr.rows * width)?,
            argument(right, "right", dtype, csr.cols * width)?,
            argument(&output, "output", dtype, csr.nnz)?,
            csr.rows as u32,
            width,
            [dtype, sum],
        );
    }
    Ok(output)
}

/// The dtype that sums are kept in.
pub(crate) fn accumulator(client: &Client, dtype: ElemType) -> Result<ElemType, KernelError> {
    let sum = match dtype {
        ElemType::Float(FloatKind::F64) => f64::elem_type_native(),
        ElemType::Float(FloatKind::F32 | FloatKind::F16 | FloatKind::BF16) => {
            f32::elem_type_native()
        }
        dtype => {
            return Err(KernelError::Dtype {
                dtype,
                supported: "f32, f16, bf16, f64",
            });
        }
    };
    require_dtype(client, dtype)?;
    Ok(sum)
}

/// One unit for each vector of the output.
#[cube(launch_unchecked, address_type = "dynamic")]
fn spmm_kernel<E: Float, S: Float, N: Size>(
    indptr: &[i32],
    indices: &[i32],
    weights: &[E],
    entries: &[i32],
    x: &[Vector<E, N>],
    output: &mut [Vector<E, N>],
    rows: usize,
    vectors: u32,
    #[comptime] weighted: bool,
    #[comptime] permuted: bool,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    let vectors = vectors as usize;
    if ABSOLUTE_POS >= rows * vectors {
        terminate!();
    }
    let row = ABSOLUTE_POS / vectors;
    let column = ABSOLUTE_POS - row * vectors;
    let end = indptr[row + 1];
    let mut entry = indptr[row];
    let mut sum = Vector::<S, N>::zeroed();
    while entry < end {
        let source = usize::cast_from(indices[entry as usize]);
        let value = Vector::<S, N>::cast_from(x[source * vectors + column]);
        if weighted {
            let from = if permuted {
                entries[entry as usize]
            } else {
                entry
            };
            let weight = S::cast_from(weights[from as usize]);
            sum += Vector::<S, N>::new(weight) * value;
        } else {
            sum += value;
        }
        entry += 1;
    }
    output[ABSOLUTE_POS] = Vector::cast_from(sum);
}

/// The row of an entry, by bisection: the last that starts at or before it.
#[cube]
pub(crate) fn row_of(indptr: &[i32], rows: u32, entry: i32) -> u32 {
    let mut low = 0u32;
    let mut high = rows;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if indptr[middle as usize] <= entry {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// One unit for each entry; its row is found by bisection of the offsets.
#[cube(launch_unchecked, address_type = "dynamic")]
fn sddmm_kernel<E: Float, S: Float>(
    indptr: &[i32],
    indices: &[i32],
    left: &[E],
    right: &[E],
    output: &mut [E],
    rows: u32,
    width: usize,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS >= output.len() {
        terminate!();
    }
    let entry = i32::cast_from(ABSOLUTE_POS);
    let left_start = row_of(indptr, rows, entry) as usize * width;
    let right_start = usize::cast_from(indices[ABSOLUTE_POS]) * width;
    let mut sum = S::new(0.0);
    for i in 0..width {
        sum += S::cast_from(left[left_start + i]) * S::cast_from(right[right_start + i]);
    }
    output[ABSOLUTE_POS] = E::cast_from(sum);
}
