//! Top-k tensors with ragged rows: ranks, dimensions, views, dtypes, panics.

use burn::tensor::{DType, Device, Float, Int, Tensor, TensorData};
use sparsek::topk::{
    Method, RowBounds, TopkOptions, argtopk_ragged, topk_mask_ragged, topk_ragged,
};
use sparsek_tests::{
    backend::Backend,
    data::{Matrix, Random},
    element::{Dtype, Element},
    panics::expect_panic,
    runner::{Cases, Outcome, Verdict},
    with_dtype,
};

use crate::topk::common::{RowsBetween, compare, compare_mask};

pub fn add(cases: &mut Cases, backend: &Backend) {
    for dtype in Dtype::ALL {
        with_dtype!(dtype, T => add_dtype::<T>(cases, backend));
    }
    for dtype in [DType::I32, DType::U32, DType::I64] {
        let name = format!("tensor/topk/ragged/lengths/{dtype:?}").to_lowercase();
        cases.add(backend, name, move |b| lengths_of(b, dtype));
    }
    for (name, body) in [
        ("rank-1", rank_1 as fn(&Backend) -> Result<(), String>),
        ("rank-2", rank_2),
        ("rank-3", rank_3),
        ("views", views),
        ("maps", maps),
        ("empty", empty),
        ("panics", panics),
    ] {
        cases.check(backend, format!("tensor/topk/ragged/{name}"), body);
    }
}

fn add_dtype<T: Element>(cases: &mut Cases, backend: &Backend) {
    for (name, method) in [
        ("exact", Method::Exact),
        ("early-4", Method::EarlyStop(4)),
        ("precision-1e-2", Method::Precision(1e-2)),
    ] {
        let name = format!("tensor/topk/ragged/{}/{name}", T::NAME);
        cases.add(backend, name, move |b| dtype::<T>(b, method));
    }
}

/// Lengths inside and outside of 0..=cols.
fn lengths(rows: usize, cols: usize) -> Vec<i64> {
    let mut random = Random::new(rows as u64);
    let outside = [-1, i64::from(i32::MIN), i64::from(i32::MAX)];
    let boundaries = [0, 1, cols as i64, cols as i64 + 1];
    let each = (0..rows).map(|i| match i % 4 {
        0 => outside[i / 4 % outside.len()],
        1 => boundaries[i / 4 % boundaries.len()],
        _ => random.below(cols + 1) as i64,
    });
    each.collect()
}

/// A tensor of mixed rows along `dim`; elements past a length are arbitrary.
fn tensor<const D: usize, T: Element>(
    shape: [usize; D],
    dim: usize,
    lengths: &[i64],
    device: &Device,
) -> Tensor<D, T::Kind> {
    let (cols, inner) = (shape[dim], shape[dim + 1..].iter().product::<usize>());
    let matrix = Matrix::<T>::mixed(lengths.len(), cols, 18 + dim as u64).ragged(lengths.to_vec());
    let mut data = matrix.data.clone();
    for i in 0..matrix.rows {
        for (j, &x) in matrix.row(i).iter().enumerate() {
            data[(i / inner * cols + j) * inner + i % inner] = x;
        }
    }
    Tensor::from_data(TensorData::new(data, shape), (device, T::dtype()))
}

/// Lengths as a tensor of `x`'s shape without `dim`.
fn lengths_tensor<const L: usize>(
    shape: &[usize],
    dim: usize,
    lengths: &[i64],
    dtype: DType,
    device: &Device,
) -> Tensor<L, Int> {
    let mut shape = shape.to_vec();
    if shape.len() > 1 {
        shape.remove(dim);
    } else {
        shape[dim] = 1;
    }
    let data = TensorData::new(lengths.to_vec(), shape).convert_dtype(dtype);
    Tensor::from_data(data, (device, dtype))
}

/// Starts before and past the ends, and outside of the row.
fn starts_of(ends: &[i64]) -> Vec<i64> {
    let each = ends.iter().enumerate().map(|(i, &end)| match i % 5 {
        0 => 0,
        1 => end.saturating_add(1).min(i64::from(i32::MAX)),
        4 => end.min(1 << 20) / 5 - 3,
        n => end.min(1 << 20) / n as i64,
    });
    each.map(|start| start.max(0)).collect()
}

/// Checks `topk_ragged` and `argtopk_ragged` against the oracle, with lengths and with bounds.
pub fn check<const D: usize, const L: usize, T: Element>(
    x: &Tensor<D, T::Kind>,
    lengths: &[i64],
    dtype: DType,
    (options, dim): (&TopkOptions, isize),
) -> Result<(), String> {
    let at = dim.rem_euclid(D as isize) as usize;
    let each = || lengths_tensor::<L>(&x.dims(), at, lengths, dtype, &x.device());
    let found = topk_ragged(x.clone(), each(), options, dim);
    let positions = argtopk_ragged(x.clone(), each(), options, dim);
    let bounds = RowsBetween { starts: None, ends: lengths };
    compare::<D, T::Kind, T>(x, Some(bounds), (options, dim), found, positions)?;

    let starts = starts_of(lengths);
    let from = || lengths_tensor::<L>(&x.dims(), at, &starts, dtype, &x.device());
    let found = topk_ragged(x.clone(), RowBounds::new(from(), each()), options, dim);
    let positions = argtopk_ragged(x.clone(), RowBounds::new(from(), each()), options, dim);
    let bounds = RowsBetween { starts: Some(&starts), ends: lengths };
    compare::<D, T::Kind, T>(x, Some(bounds), (options, dim), found, positions)
        .map_err(|error| format!("with starts, {error}"))
}

pub fn check_mask<const D: usize, const L: usize, T: Element>(
    x: &Tensor<D>,
    lengths: &[i64],
    (options, dim): (&TopkOptions, isize),
) -> Result<(), String> {
    let at = dim.rem_euclid(D as isize) as usize;
    let tensor =
        |bounds: &[i64]| lengths_tensor::<L>(&x.dims(), at, bounds, DType::I32, &x.device());
    let dense = topk_mask_ragged(x.clone(), tensor(lengths), options, dim);
    let bounds = RowsBetween { starts: None, ends: lengths };
    compare_mask::<D, T>(x, Some(bounds), (options, dim), dense)?;

    let starts = starts_of(lengths);
    let between = RowBounds::new(tensor(&starts), tensor(lengths));
    let dense = topk_mask_ragged(x.clone(), between, options, dim);
    let bounds = RowsBetween { starts: Some(&starts), ends: lengths };
    compare_mask::<D, T>(x, Some(bounds), (options, dim), dense)
        .map_err(|error| format!("with starts, {error}"))
}

fn dtype<T: Element>(backend: &Backend, method: Method) -> Outcome {
    if !backend.device.supports_dtype(T::dtype()) {
        let reason = format!("Burn has no {} tensors on this device", T::NAME);
        return Ok(Verdict::Skipped(reason));
    }
    let lengths = lengths(36, 203);
    let x = tensor::<2, T>([36, 203], 1, &lengths, &backend.device);
    for largest in [true, false] {
        for (k, sorted) in [(1, false), (32, false), (32, true), (203, true)] {
            let options =
                TopkOptions::new(k).with_largest(largest).with_sorted(sorted).with_method(method);
            check::<2, 1, T>(&x, &lengths, DType::I32, (&options, -1))?;
        }
    }
    Ok(Verdict::Passed)
}

fn lengths_of(backend: &Backend, dtype: DType) -> Outcome {
    if !backend.device.supports_dtype(dtype) {
        return Ok(Verdict::Skipped(format!("Burn has no {dtype:?} tensors on this device")));
    }
    let mut lengths = lengths(40, 30);
    if dtype == DType::U32 {
        lengths.iter_mut().for_each(|length| *length = (*length).max(0));
    }
    if dtype == DType::I64 {
        lengths[0] = i64::MAX;
        lengths[1] = i64::MIN;
        // Its low 32 bits are 7.
        lengths[2] = (1 << 32) + 7;
    }
    let x = tensor::<2, f32>([40, 30], 1, &lengths, &backend.device);
    check::<2, 1, f32>(&x, &lengths, dtype, (&TopkOptions::new(11), -1))?;
    Ok(Verdict::Passed)
}

/// Every dimension, positive and negative, sorted and not, and the mask.
fn dims<const D: usize, const L: usize>(
    backend: &Backend,
    shape: [usize; D],
    k: usize,
) -> Result<(), String> {
    for dim in 0..D {
        let rows = shape.iter().product::<usize>() / shape[dim];
        let lengths = match D {
            1 => vec![shape[0] as i64 / 2],
            _ => lengths(rows, shape[dim]),
        };
        let x = tensor::<D, f32>(shape, dim, &lengths, &backend.device);
        for dim in [dim as isize, dim as isize - D as isize] {
            for sorted in [false, true] {
                let options = TopkOptions::new(k).with_sorted(sorted);
                check::<D, L, f32>(&x, &lengths, DType::I32, (&options, dim))?;
            }
            check_mask::<D, L, f32>(&x, &lengths, (&TopkOptions::new(k), dim))?;
        }
    }
    Ok(())
}

fn rank_1(backend: &Backend) -> Result<(), String> {
    dims::<1, 1>(backend, [130], 15)?;
    dims::<1, 1>(backend, [130], 100)
}

fn rank_2(backend: &Backend) -> Result<(), String> {
    dims::<2, 1>(backend, [36, 40], 19)
}

fn rank_3(backend: &Backend) -> Result<(), String> {
    dims::<3, 2>(backend, [9, 7, 10], 5)
}

fn views(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    let each = lengths(6 * 33, 21);
    let x = tensor::<3, f32>([6, 21, 33], 1, &each, device);
    let options = TopkOptions::new(4).with_sorted(true);
    check::<3, 2, f32>(&x.clone().swap_dims(1, 2), &each, DType::I32, (&options, 2))?;

    // The same rows permuted, with lengths as a transposed view.
    let swapped: Vec<i64> = (0..33 * 6).map(|i| each[i % 6 * 33 + i / 6]).collect();
    let y = x.permute([2, 0, 1]);
    check::<3, 2, f32>(&y, &swapped, DType::I32, (&options, 2))?;
    let view = lengths_tensor::<2>(&[6, 33, 21], 2, &each, DType::I32, device).transpose();
    let found = topk_ragged(y.clone(), view.clone(), &options, 2);
    let positions = argtopk_ragged(y.clone(), view, &options, 2);
    let bounds = RowsBetween { starts: None, ends: &swapped };
    compare::<3, Float, f32>(&y, Some(bounds), (&options, 2), found, positions)?;

    let ints = tensor::<2, i32>([25, 40], 0, &lengths(40, 25), device).transpose();
    check::<2, 1, i32>(&ints, &lengths(40, 25), DType::I32, (&TopkOptions::new(7), -1))
}

/// Offsets and pages, along each dimension.
fn maps(backend: &Backend) -> Result<(), String> {
    const SHAPE: [usize; 3] = [5, 7, 6];
    const PAGE: usize = 4;
    let device = &backend.device;
    for (dim, cols) in SHAPE.into_iter().enumerate() {
        let rows = SHAPE.iter().product::<usize>() / cols;
        let each = lengths(rows, cols);
        let x = tensor::<3, f32>(SHAPE, dim, &each, device);
        let mut outer = SHAPE.to_vec();
        outer.remove(dim);
        let mut random = Random::new(dim as u64);
        let per_row = cols.div_ceil(PAGE) + 1;
        let pages: Vec<i64> = (0..rows * per_row).map(|_| random.below(90) as i64).collect();
        let offsets: Vec<i64> = (0..rows as i64).map(|row| 1000 * row - 3000).collect();
        let ends = lengths_tensor::<2>(&SHAPE, dim, &each, DType::I32, device);
        let ends = RowBounds::from(ends);
        let options = TopkOptions::new(3).with_sorted(true);
        let plain = argtopk_ragged(x.clone(), ends.clone(), &options, dim);
        let last = |indices: Tensor<3, Int>| -> Vec<i64> {
            indices.movedim(dim as i32, 2).into_data().iter::<i64>().collect()
        };
        let plain = last(plain);
        let table = TensorData::new(pages.clone(), [rows, per_row]);
        let table = Tensor::<2, Int>::from_data(table, device);
        let shape: [usize; 2] = outer.try_into().expect("two dimensions");
        let added = Tensor::<2, Int>::from_data(TensorData::new(offsets.clone(), shape), device);
        for (paged, offset) in [(true, false), (false, true), (true, true)] {
            let mut bounds = ends.clone();
            if paged {
                bounds = bounds.with_pages(table.clone(), PAGE);
            }
            if offset {
                bounds = bounds.with_offsets(added.clone());
            }
            let expected: Vec<i64> = plain
                .iter()
                .enumerate()
                .map(|(at, &column)| {
                    let row = at / 3;
                    if column == -1 {
                        return -1;
                    }
                    let (page, inside) = (column as usize / PAGE, column % PAGE as i64);
                    let paged_to = pages[row * per_row + page] * PAGE as i64 + inside;
                    let place = if paged { paged_to } else { column };
                    place + if offset { offsets[row] } else { 0 }
                })
                .collect();
            let (_, found) = topk_ragged(x.clone(), bounds.clone(), &options, dim);
            if last(found) != expected {
                return Err(format!("dimension {dim}, pages {paged}, offsets {offset}"));
            }
            if last(argtopk_ragged(x.clone(), bounds, &options, dim)) != expected {
                return Err(format!("indices alone: dimension {dim}"));
            }
        }
    }
    let x = Tensor::<2>::ones([3, 9], device);
    let ends = RowBounds::from(Tensor::<1, Int>::from_data([9, 9, 9], device));
    let one = TopkOptions::new(1);
    let refused = |bounds: RowBounds<1>, word: &str| {
        let message = expect_panic(|| drop(argtopk_ragged(x.clone(), bounds, &one, 1)))?;
        match message.contains(word) {
            true => Ok(()),
            false => Err(format!("{message}: no {word}")),
        }
    };
    for (shape, size) in [([3, 4], 2), ([2, 5], 2), ([3, 5], 0)] {
        let pages = Tensor::<2, Int>::zeros(shape, device);
        refused(ends.clone().with_pages(pages, size), "pages of shape")?;
    }
    refused(ends.clone().with_offsets(Tensor::zeros([2], device)), "offsets have shape")
}

fn empty(backend: &Backend) -> Result<(), String> {
    for (shape, k) in [([3, 5], 0), ([0, 5], 2), ([3, 0], 0), ([0, 0], 0)] {
        let data = TensorData::new(vec![1.0f32; shape[0] * shape[1]], shape);
        let x = Tensor::<2>::from_data(data, &backend.device);
        let lengths = vec![2; shape[0]];
        check::<2, 1, f32>(&x, &lengths, DType::I32, (&TopkOptions::new(k), -1))?;
        check_mask::<2, 1, f32>(&x, &lengths, (&TopkOptions::new(k), -1))?;
    }
    Ok(())
}

fn panics(backend: &Backend) -> Result<(), String> {
    let x = Tensor::<2>::from_floats([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], &backend.device);
    let two = Tensor::<1, Int>::from_ints([1, 2], &backend.device);
    type Call = fn(Tensor<2>, Tensor<1, Int>, &TopkOptions, isize);
    let calls: [(&str, Call); 3] = [
        ("topk_ragged", |x, l, options, dim| drop(topk_ragged(x, l, options, dim))),
        ("argtopk_ragged", |x, l, options, dim| drop(argtopk_ragged(x, l, options, dim))),
        ("topk_mask_ragged", |x, l, options, dim| drop(topk_mask_ragged(x, l, options, dim))),
    ];
    let wrong = [(4, -1, ["k = 4", "3"]), (1, 0, ["[2]", "[3]"]), (1, 2, ["2", "dim"])];
    for (name, call) in calls {
        for (k, dim, words) in &wrong {
            let options = TopkOptions::new(*k);
            let message = expect_panic(|| call(x.clone(), two.clone(), &options, *dim))
                .map_err(|e| format!("{name}, k = {k}, dim {dim}: {e}"))?;
            if !message.starts_with(name) || words.iter().any(|word| !message.contains(word)) {
                return Err(format!(
                    "{name}, k = {k}, dim {dim}: the message lacks one of {words:?}: {message}"
                ));
            }
        }
    }
    Ok(())
}
