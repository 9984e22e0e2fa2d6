//! Helpers of the top-k cases.

use burn::tensor::kind::Ordered;
use burn::tensor::{Float, Int, Tensor, TensorData};
use cubecl::ir::ElemType;
use sparsek_kernels::topk::{self as kernel, Method, TopkOptions};
use sparsek_tests::{backend::Backend, data::Matrix, element::Element, verify};

use crate::kernels::{Check, Layout, read, read_positions, topk as run};

/// Checks positions alone, the mask, and the mask with positions.
pub fn each_output(check: &mut Check, matrix: &Matrix<f32>, index: ElemType) -> Result<(), String> {
    let (client, routine, cols) = (check.client(), check.routine, matrix.cols);
    let input = Layout::Contiguous.upload(client, matrix);
    for (k, sorted) in [(0, false), (1, false), (32, false), (32, true), (cols, false)] {
        let options = TopkOptions { k, largest: true, sorted, method: Method::Exact };
        let length = matrix.rows * k;
        match kernel::argtopk(client, &input, &options, index, routine) {
            Ok(handle) => {
                verify::selection(
                    matrix,
                    &options,
                    None,
                    &read_positions(client, handle, index, length),
                )?;
                check.passed += 1;
            }
            Err(error) => check.refuse(error)?,
        }
        match run::<f32>(client, &input, &options, index, routine) {
            Ok((values, positions)) => {
                verify::selection(matrix, &options, Some(&values), &positions)?
            }
            Err(error) => check.refuse(error)?,
        }
        if sorted {
            continue;
        }
        for with_positions in [false, true] {
            match kernel::topk_mask(
                client,
                &input,
                &options,
                with_positions.then_some(index),
                routine,
            ) {
                Ok(masked) => {
                    verify::mask(
                        matrix,
                        &options,
                        &read::<f32>(client, masked.values, matrix.data.len()),
                    )?;
                    match masked.indices {
                        Some(handle) if with_positions => {
                            let positions = read_positions(client, handle, index, length);
                            verify::selection(matrix, &options, None, &positions)?;
                        }
                        None if !with_positions => {}
                        other => {
                            return Err(format!(
                                "indices: {with_positions} asked, {} given",
                                other.is_some()
                            ));
                        }
                    }
                }
                Err(error) => check.refuse(error)?,
            }
        }
    }
    Ok(())
}

/// Moves `dim` last, so that each selection is a row.
fn lanes<T: Copy>(data: &[T], shape: &[usize], dim: usize) -> Vec<T> {
    let (n, inner) = (shape[dim], shape[dim + 1..].iter().product::<usize>());
    let outer: usize = shape[..dim].iter().product();
    let of = move |o: usize, i: usize| (0..n).map(move |j| data[(o * n + j) * inner + i]);
    (0..outer).flat_map(|o| (0..inner).flat_map(move |i| of(o, i))).collect()
}

pub fn upload<K: Ordered, T: Element>(matrix: &Matrix<T>, backend: &Backend) -> Tensor<2, K> {
    let data = TensorData::new(matrix.data.clone(), [matrix.rows, matrix.cols]);
    Tensor::from_data(data, (&backend.device, T::dtype()))
}

pub fn elements<T: Element>(data: &TensorData) -> Result<Vec<T>, String> {
    if data.dtype() != T::dtype() {
        return Err(format!("values of {:?} instead of {:?}", data.dtype(), T::dtype()));
    }
    Ok(bytemuck::pod_collect_to_vec(data.as_bytes()))
}

/// The selected dimension, and the elements with that dimension last.
fn rows_of<const D: usize, K: Ordered, T: Element>(
    x: &Tensor<D, K>,
    bounds: Option<RowsBetween>,
    dim: isize,
) -> Result<(usize, Matrix<T>), String> {
    let shape = x.dims();
    let dim = dim.rem_euclid(D as isize) as usize;
    let matrix = Matrix {
        starts: bounds.and_then(|bounds| bounds.starts).map(<[i64]>::to_vec),
        lengths: bounds.map(|bounds| bounds.ends.to_vec()),
        rows: shape.iter().product::<usize>() / shape[dim].max(1),
        cols: shape[dim],
        data: lanes(&elements::<T>(&x.to_data())?, &shape, dim),
    };
    Ok((dim, matrix))
}

/// Columns of ragged rows.
#[derive(Clone, Copy, Debug)]
pub struct RowsBetween<'a> {
    pub starts: Option<&'a [i64]>,
    pub ends: &'a [i64],
}

/// Compares results of `topk` and `argtopk` along a dimension with the oracle; `bounds` are those
/// of ragged rows.
pub fn compare<const D: usize, K: Ordered, T: Element>(
    x: &Tensor<D, K>,
    bounds: Option<RowsBetween>,
    (options, along): (&TopkOptions, isize),
    (values, indices): (Tensor<D, K>, Tensor<D, Int>),
    positions_alone: Tensor<D, Int>,
) -> Result<(), String> {
    let shape = x.dims();
    let (dim, matrix) = rows_of::<D, K, T>(x, bounds, along)?;
    let mut reduced = shape;
    reduced[dim] = options.k;
    if values.dims() != reduced || indices.dims() != reduced {
        return Err(format!(
            "shapes {:?} and {:?} instead of {reduced:?}",
            values.dims(),
            indices.dims()
        ));
    }
    let positions: Vec<i64> = indices.into_data().iter::<i64>().collect();
    let values = lanes(&elements::<T>(&values.into_data())?, &reduced, dim);
    let context = |e: String| format!("shape {shape:?}, dim {along}: {e}");
    verify::selection(&matrix, options, Some(&values), &lanes(&positions, &reduced, dim))
        .map_err(context)?;

    let positions: Vec<i64> = positions_alone.into_data().iter::<i64>().collect();
    verify::selection(&matrix, options, None, &lanes(&positions, &reduced, dim))
        .map_err(|e| format!("argtopk, {e}"))
}

/// Compares a mask with the oracle; `bounds` are those of ragged rows.
pub fn compare_mask<const D: usize, T: Element>(
    x: &Tensor<D>,
    bounds: Option<RowsBetween>,
    (options, along): (&TopkOptions, isize),
    dense: Tensor<D>,
) -> Result<(), String> {
    let shape = x.dims();
    let (dim, matrix) = rows_of::<D, Float, T>(x, bounds, along)?;
    if dense.dims() != shape {
        return Err(format!("shape {:?} instead of {shape:?}", dense.dims()));
    }
    let dense = lanes(&elements::<T>(&dense.into_data())?, &shape, dim);
    verify::mask(&matrix, options, &dense)
        .map_err(|e| format!("topk_mask, shape {shape:?}, dim {along}: {e}"))
}
