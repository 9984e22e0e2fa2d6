//! Sampled dense products (SDDMM).

use cubecl::{features::Plane, ir::ElemType, prelude::*, server::Handle};

use super::{
    compressed::Compressed,
    operand::{Entries, Operand},
    tuning::SDDMM_CUBE_UNITS,
};
use crate::{
    device::{plane_size, rounded_accumulator, units_per_cube},
    error::KernelError,
    launch::{Grid, aligned, allocate, argument},
    primitives::csr::row_of,
};

struct Right<'a> {
    values: &'a Handle,
    /// Dense when absent.
    columns: Option<(&'a Handle, ElemType)>,
    dtype: ElemType,
    k: usize,
    width: usize,
}

impl Right<'_> {
    fn vector(&self, client: &Client, left: &Handle) -> usize {
        let size = self.dtype.size();
        let fits = |vector: &usize| {
            let whole = self.columns.is_none() && self.width.is_multiple_of(*vector);
            whole && [left, self.values].iter().all(|handle| aligned(handle, vector * size))
        };
        client.io_optimized_vector_sizes(size).filter(fits).max().unwrap_or(1)
    }

    fn team(&self, client: &Client, vector: usize, sum: ElemType) -> u32 {
        let able = client.features().plane.contains(Plane::Ops) && self.columns.is_none();
        let narrow = sum == f32::elem_type_native();
        match plane_size(client) {
            Some(plane) if able && narrow && self.width / vector >= plane as usize => plane,
            _ => 1,
        }
    }
}

/// Weight gradient of [`spmm`](super::spmm): `out[e] = rows[i] cols[j] Σ left[i] right[j]` for
/// entries `e = (i, j)`.
///
/// `left` is `[rows, width]`, `right` `[cols, width]`, both of `dtype`; returns `[nnz]`. Ignores
/// weights.
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

/// [`sddmm`] for [`spmm_compressed`](super::spmm_compressed).
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
    let vector = right.vector(client, left);
    let team = right.team(client, vector, sum);
    let per_cube = units_per_cube(client, SDDMM_CUBE_UNITS) / team;
    let cubes = csr.nnz.div_ceil(per_cube as usize);
    let grid = Grid::new(client, cubes, CubeDim::new_2d(team, per_cube), elements)?;
    let int = i32::elem_type_native();
    let unweighted = Operand { weights: None, ..*operand };
    let (columns, index, needed) = match right.columns {
        Some((columns, index)) => (columns, index, csr.cols * right.k),
        None => (csr.indptr, int, 1),
    };
    // SAFETY: lengths checked; inputs promise indices.
    unsafe {
        sddmm_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            vector,
            argument(csr.indptr, "indptr", int, csr.rows + 1)?,
            unweighted.entries(client, dtype, sum)?,
            argument(left, "left", dtype, csr.rows * right.width)?,
            argument(right.values, "right", dtype, csr.cols * right.k)?,
            argument(columns, "columns", index, needed)?,
            argument(&output, "output", dtype, csr.nnz)?,
            csr.rows as u32,
            right.k / vector,
            right.width / vector,
            right.columns.is_some(),
            team,
            [dtype, sum, index],
        );
    }
    Ok(output)
}

/// A team per entry bisects the offsets.
#[cube(launch_unchecked, address_type = "dynamic")]
fn sddmm_kernel<E: Float, S: Float, I: Numeric, N: Size>(
    indptr: &[i32],
    source: Entries<E, S>,
    left: &[Vector<E, N>],
    right: &[Vector<E, N>],
    columns: &[I],
    output: &mut [E],
    rows: u32,
    k: usize,
    width: usize,
    #[comptime] compressed: bool,
    #[comptime] team: u32,
    #[define(E, S, I)] _dtypes: [ElemType; 3],
) {
    let number = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if number >= output.len() {
        terminate!();
    }
    let entry = i32::cast_from(number);
    let row = row_of(indptr, rows, entry) as usize;
    let column = source.column(entry);
    let mut sums = Vector::<S, N>::zeroed();
    let mut i = UNIT_POS_X as usize;
    while i < k {
        let from =
            if comptime!(compressed) { usize::cast_from(columns[column * k + i]) } else { i };
        let left = Vector::<S, N>::cast_from(left[row * width + from]);
        sums += left * Vector::cast_from(right[column * k + i]);
        i += comptime!(team as usize);
    }
    let mut sum = S::new(0.0);
    #[unroll]
    for i in 0..N::value().comptime() {
        sum += sums.extract(i);
    }
    if comptime!(team > 1) {
        sum = plane_sum(sum);
    }
    if UNIT_POS_X == 0 {
        let factor = source.factor(entry, column) * source.row_factor(row);
        output[number] = E::cast_from(sum * factor);
    }
}
