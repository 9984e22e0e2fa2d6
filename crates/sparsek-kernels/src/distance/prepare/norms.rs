use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    parts::NORM_BLOCK,
    range::{power, row_shift, shifted},
};
use crate::{
    device::{accumulator, require_rounding},
    distance::{
        launch::planes_for,
        semiring::{Gradient, Parameter, Rescale, Semiring, combine},
        types::{Matrix, Prepared},
    },
    error::KernelError,
    launch::{Grid, allocate, argument},
};

pub(in crate::distance) fn prepare<M: Semiring>(
    client: &Client,
    matrix: &Matrix,
    parameter: Parameter,
) -> Result<Prepared, KernelError> {
    let dtype = accumulator(client, matrix.dtype)?;
    let rescaled = M::STRATEGY.rescale == Some(Rescale::Rows);
    let written = M::ALGEBRA.prepared || rescaled || matrix.dtype != dtype;
    let int = i32::elem_type_native();
    let values = if written {
        allocate(client, "values", matrix.nnz, dtype)?
    } else {
        matrix.values.clone()
    };
    let norms = allocate(client, "norms", 2 * matrix.rows, dtype)?;
    let prepared = Prepared {
        indptr: matrix.indptr.clone(),
        indices: matrix.indices.clone(),
        values,
        norms,
        dtype,
        rows: matrix.rows,
        cols: matrix.cols,
        longest: matrix.longest,
        nnz: matrix.nnz,
        greatest: matrix.greatest,
    };
    if matrix.rows == 0 || !(written || M::ALGEBRA.norms) {
        return Ok(prepared);
    }
    if !(M::ALGEBRA.norms || M::ALGEBRA.prepared || rescaled) {
        widen(client, matrix, &prepared.values, dtype)?;
        return Ok(prepared);
    }
    // LLVM moves `abs` before widening, which rounds bf16.
    let wide = match require_rounding(client, matrix.dtype) {
        Ok(()) => None,
        Err(_) => {
            let wide = allocate(client, "wide", matrix.nnz, dtype)?;
            widen(client, matrix, &wide, dtype)?;
            Some(wide)
        }
    };
    let (values, values_dtype) = match &wide {
        Some(wide) => (wide, dtype),
        None => (matrix.values, matrix.dtype),
    };
    let elements = matrix.nnz.max(2 * matrix.rows);
    let (grid, plane) = planes_for(client, matrix.rows, elements)?;
    // SAFETY: lengths checked; `Matrix` bounds offsets.
    unsafe {
        norms_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(matrix.indptr, "indptr", int, matrix.rows + 1)?,
            argument(values, "values", values_dtype, matrix.nnz)?,
            argument(&prepared.values, "prepared", dtype, matrix.nnz)?,
            argument(&prepared.norms, "norms", dtype, 2 * matrix.rows)?,
            parameter.launch(),
            matrix.rows,
            plane,
            written,
            [values_dtype, dtype],
        );
    }
    Ok(prepared)
}

fn widen(
    client: &Client,
    matrix: &Matrix,
    wide: &Handle,
    dtype: ElemType,
) -> Result<(), KernelError> {
    let (nnz, dtypes) = (matrix.nnz, [matrix.dtype, dtype]);
    if nnz == 0 {
        return Ok(());
    }
    let grid = Grid::elementwise(client, nnz, nnz)?;
    // SAFETY: lengths checked.
    unsafe {
        widen_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(matrix.values, "values", dtypes[0], nnz)?,
            argument(wide, "prepared", dtypes[1], nnz)?,
            dtypes,
        );
    }
    Ok(())
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn widen_kernel<E: Float, S: Float>(
    values: &[E],
    prepared: &mut [S],
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS < prepared.len() {
        prepared[ABSOLUTE_POS] = S::cast_from(values[ABSOLUTE_POS]);
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn norms_kernel<M: Semiring, E: Float, S: Float>(
    indptr: &[i32],
    values: &[E],
    prepared: &mut [S],
    norms: &mut [S],
    parameter: Parameter,
    rows: usize,
    #[comptime] plane: u32,
    #[comptime] written: bool,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    let row = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if row >= rows {
        terminate!();
    }
    let p = parameter.value::<S>();
    let first = indptr[row] as usize + UNIT_POS_X as usize;
    let end = indptr[row + 1] as usize;
    let block = comptime!(NORM_BLOCK * plane as usize);
    let mut shift = 0i32;
    let mut entry = first;
    if comptime!(M::STRATEGY.rescale == Some(Rescale::Rows)) {
        let mut greatest = S::new(0.0);
        while entry < end {
            greatest = max(greatest, S::cast_from(values[entry]).abs());
            entry += plane as usize;
        }
        if comptime!(plane > 1) {
            greatest = plane_max(greatest);
        }
        shift = row_shift::<S>(greatest);
    }
    let mut norm = S::new(0.0);
    entry = first;
    while entry < end {
        let stop = min(entry + block, end);
        let mut part = S::new(0.0);
        while entry < stop {
            let value = scaled::<M, S>(S::cast_from(values[entry]), shift);
            part = combine::<M, S>(part, M::norm::<S>(value, p));
            entry += plane as usize;
        }
        norm = combine::<M, S>(norm, part);
    }
    if comptime!(plane > 1) {
        norm = if comptime!(M::ALGEBRA.maxima) { plane_max(norm) } else { plane_sum(norm) };
    }
    let mut second = S::new(0.0);
    entry = first;
    while entry < end {
        let stop = min(entry + block, end);
        let mut part = S::new(0.0);
        while entry < stop {
            let value = scaled::<M, S>(S::cast_from(values[entry]), shift);
            let value = M::prepare::<S>(value, norm);
            part += M::second::<S>(value);
            if comptime!(written) {
                prepared[entry] = value;
            }
            entry += plane as usize;
        }
        second += part;
    }
    if comptime!(plane > 1) {
        second = plane_sum(second);
    }
    if UNIT_POS_X == 0 {
        norms[2 * row] = norm;
        if comptime!(M::ALGEBRA.gradient == Some(Gradient::Angle)) {
            norms[2 * row + 1] = power::<S>(shift);
        } else {
            norms[2 * row + 1] = second;
        }
    }
}

#[cube]
fn scaled<M: Semiring, S: Float>(value: S, shift: i32) -> S {
    if comptime!(M::STRATEGY.rescale == Some(Rescale::Rows)) {
        shifted::<S>(value, shift)
    } else {
        value
    }
}
