//! Top-k tensors: ranks, dimensions, views, dtypes, panics.

use burn::tensor::kind::Ordered;
use burn::tensor::{DType, Device, Float, Int, IntDType, Tensor, TensorData};
use half::{bf16, f16};
use sparsek::topk::{Method, TopkOptions, argtopk, topk, topk_mask};
use sparsek_kernels::topk as kernel;
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix},
    element::Element,
    panics::expect_panic,
    runner::{Cases, Outcome, Verdict},
    verify,
};

use crate::{
    kernels::{I32, Layout, refusal, topk as launch},
    topk::common::{compare, compare_mask, elements},
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    add_dtype::<f32, Float>(cases, backend);
    add_dtype::<f64, Float>(cases, backend);
    add_dtype::<f16, Float>(cases, backend);
    add_dtype::<bf16, Float>(cases, backend);
    add_dtype::<i32, Int>(cases, backend);
    add_dtype::<u32, Int>(cases, backend);
    add_dtype::<i64, Int>(cases, backend);
    for dtype in [IntDType::I8, IntDType::I16, IntDType::U8, IntDType::U16] {
        let name = format!("tensor/topk/{}", format!("{dtype:?}").to_lowercase());
        cases.add(backend, name, move |b| small_int(b, dtype));
    }
    for (name, body) in [
        ("rank-1", rank_1 as fn(&Backend) -> Result<(), String>),
        ("rank-2", rank_2),
        ("rank-3", rank_3),
        ("rank-4", rank_4),
        ("views", views),
        ("mask", masks),
        ("empty", empty),
        ("panics", panics),
    ] {
        cases.check(backend, format!("tensor/topk/{name}"), body);
    }
    cases.add(backend, "tensor/topk/long-rows", long_rows);
    cases.add(backend, "tensor/topk/long-vector", long_vector);
}

fn add_dtype<T: Element, K: Ordered>(cases: &mut Cases, backend: &Backend) {
    for (name, method) in [
        ("exact", Method::Exact),
        ("early-4", Method::EarlyStop(4)),
        ("early-all", Method::EarlyStop(u32::MAX)),
        ("precision-1e-2", Method::Precision(1e-2)),
    ] {
        cases.add(backend, format!("tensor/topk/{}/{name}", T::NAME), move |b| {
            dtype::<T, K>(b, method)
        });
    }
}

pub fn tensor<const D: usize, K: Ordered, T: Element>(
    shape: [usize; D],
    seed: u64,
    device: &Device,
) -> Tensor<D, K> {
    let cols = shape[D - 1];
    let rows = shape.iter().product::<usize>() / cols.max(1);
    let data = Matrix::<T>::mixed(rows, cols, seed).data;
    Tensor::from_data(TensorData::new(data, shape), (device, T::dtype()))
}

/// Checks `topk` and `argtopk` against the oracle.
pub fn check<const D: usize, K: Ordered, T: Element>(
    x: &Tensor<D, K>,
    options: &TopkOptions,
    dim: isize,
) -> Result<(), String> {
    let found = topk(x.clone(), options, dim);
    let alone = argtopk(x.clone(), options, dim);
    compare::<D, K, T>(x, None, (options, dim), found, alone)
}

fn dtype<T: Element, K: Ordered>(backend: &Backend, method: Method) -> Outcome {
    if !backend.device.supports_dtype(T::dtype()) {
        // Burn lacks the dtype; the kernels must refuse it too.
        let Some(client) = &backend.client else {
            return Err(format!("{} is missing on {}", T::NAME, backend.kind));
        };
        let input = Layout::Contiguous.upload(client, &Matrix::<T>::mixed(2, 8, 0));
        return match launch::<T>(client, &input, &TopkOptions::new(1), I32, None) {
            Err(error) => refusal(&error).map(Verdict::Skipped).ok_or_else(|| error.to_string()),
            Ok(_) => {
                Ok(Verdict::Skipped(format!("Burn has no {} tensors on this device", T::NAME)))
            }
        };
    }
    // A search of f64 halves its interval up to 2200 times.
    let halvings = matches!(method, Method::EarlyStop(n) if n > 4) && T::dtype() == DType::F64;
    if let Some(reason) = backend.loop_limit(if halvings { usize::MAX } else { 203 }) {
        return Ok(Verdict::Skipped(reason));
    }
    let x = tensor::<2, K, T>([18, 203], 90, &backend.device);
    for largest in [true, false] {
        for sorted in [true, false] {
            for k in [1, 32, 203] {
                let options = TopkOptions::new(k)
                    .with_largest(largest)
                    .with_sorted(sorted)
                    .with_method(method);
                check::<2, K, T>(&x, &options, -1)?;
            }
        }
    }
    Ok(Verdict::Passed)
}

/// Integers below 32 bits are selected as i32, and keep their dtype.
fn small_int(backend: &Backend, dtype: IntDType) -> Outcome {
    let device = &backend.device;
    if !device.supports_dtype(dtype) {
        return Ok(Verdict::Skipped(format!("Burn has no {dtype:?} tensors on this device")));
    }
    let numbers = Matrix::<i32>::mixed(18, 203, 90).data;
    let (least, width) = match dtype {
        IntDType::I8 => (-128, 256),
        IntDType::I16 => (-32_768, 65_536),
        IntDType::U8 => (0, 256),
        _ => (0, 65_536),
    };
    let numbers: Vec<i32> = numbers.into_iter().map(|x| x.rem_euclid(width) + least).collect();
    let wide = Tensor::<2, Int>::from_data(TensorData::new(numbers, [18, 203]), device);
    let x = wide.clone().cast(dtype);
    for options in [TopkOptions::new(32), TopkOptions::new(7).with_largest(false)] {
        check::<2, Int, i32>(&wide.clone().cast(IntDType::I32), &options, -1)?;
        let (values, indices) = topk(x.clone(), &options, -1);
        if values.dtype() != DType::from(dtype) {
            return Err(format!("values of {:?}", values.dtype()));
        }
        let (wide_values, wide_indices) = topk(wide.clone().cast(IntDType::I32), &options, -1);
        let equal = |a: Tensor<2, Int>, b: Tensor<2, Int>| {
            a.into_data().iter::<i64>().eq(b.into_data().iter::<i64>())
        };
        if !equal(values, wide_values) || !equal(indices, wide_indices) {
            return Err(format!("{options:?}: differs from i32"));
        }
    }
    Ok(Verdict::Passed)
}

/// Every dimension, positive and negative, sorted and not.
fn dims<const D: usize>(backend: &Backend, shape: [usize; D], k: usize) -> Result<(), String> {
    let x = tensor::<D, Float, f32>(shape, 7, &backend.device);
    for dim in 0..D as isize {
        for dim in [dim, dim - D as isize] {
            for sorted in [false, true] {
                check::<D, Float, f32>(&x, &TopkOptions::new(k).with_sorted(sorted), dim)?;
            }
        }
    }
    Ok(())
}

fn rank_1(backend: &Backend) -> Result<(), String> {
    dims(backend, [130], 15)
}

fn rank_2(backend: &Backend) -> Result<(), String> {
    dims(backend, [18, 20], 9)
}

fn rank_3(backend: &Backend) -> Result<(), String> {
    dims(backend, [9, 7, 10], 5)
}

fn rank_4(backend: &Backend) -> Result<(), String> {
    dims(backend, [4, 6, 5, 8], 4)
}

fn views(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    let x = tensor::<3, Float, f32>([6, 21, 33], 3, device);
    for (options, dim) in [
        (TopkOptions::new(4), -1),
        (TopkOptions::new(3).with_sorted(true), 1),
        (TopkOptions::new(2).with_largest(false), 0),
    ] {
        check::<3, Float, f32>(&x.clone().swap_dims(1, 2), &options, dim)?;
        check::<3, Float, f32>(&x.clone().swap_dims(0, 2), &options, dim)?;
        check::<3, Float, f32>(&x.clone().permute([2, 0, 1]), &options, dim)?;
        check::<3, Float, f32>(&x.clone().slice([1..5, 3..20, 7..31]), &options, dim)?;
        check::<3, Float, f32>(
            &x.clone().slice([1..5, 3..20, 7..31]).swap_dims(1, 2),
            &options,
            dim,
        )?;
        check::<3, Float, f32>(
            &x.clone().slice([0..4, 2..3, 0..33]).expand([4, 5, 33]),
            &options,
            dim,
        )?;
    }
    let ints = tensor::<2, Int, i32>([40, 25], 12, device).transpose();
    check::<2, Int, i32>(&ints, &TopkOptions::new(7), -1)
}

pub fn check_mask<const D: usize, T: Element>(
    x: &Tensor<D>,
    options: &TopkOptions,
    dim: isize,
) -> Result<(), String> {
    compare_mask::<D, T>(x, None, (options, dim), topk_mask(x.clone(), options, dim))
}

fn masks(backend: &Backend) -> Result<(), String> {
    let x = tensor::<3, Float, f32>([5, 18, 70], 0, &backend.device);
    for (dim, k) in [(-1, 32), (2, 0), (1, 18), (0, 2), (-2, 5)] {
        for method in [Method::Exact, Method::EarlyStop(4)] {
            for x in [x.clone(), x.clone().swap_dims(0, 1)] {
                let at = if dim < 0 { dim + 3 } else { dim } as usize;
                let k = x.dims()[at].min(k);
                let options = TopkOptions::new(k).with_method(method);
                check_mask::<3, f32>(&x, &options, dim)?;
            }
        }
    }
    Ok(())
}

fn long_rows(backend: &Backend) -> Outcome {
    if let Some(reason) = backend.loop_limit(10_000) {
        return Ok(Verdict::Skipped(reason));
    }
    dims(backend, [10_000], 2000)?;
    let x = tensor::<2, Float, f32>([4, 33_333], 13, &backend.device);
    for options in [
        TopkOptions::new(1000),
        TopkOptions::new(33_333).with_sorted(true),
        TopkOptions::new(64).with_method(Method::EarlyStop(8)),
    ] {
        check::<2, Float, f32>(&x, &options, -1)?;
    }
    Ok(Verdict::Passed)
}

/// A vector longer than the rows of a matrix may be, with its gradient.
fn long_vector(backend: &Backend) -> Outcome {
    const LENGTH: usize = kernel::MAX_COLS + 5;
    if let Some(reason) = backend.loop_limit(LENGTH) {
        return Ok(Verdict::Skipped(reason));
    }
    let matrix = Matrix::<f32>::of(Distribution::Normal, 1, LENGTH, 27);
    for (k, sorted) in [(3, true), (40, false)] {
        let options = TopkOptions::new(k).with_sorted(sorted);
        let device = backend.device.clone().autodiff();
        let data = TensorData::new(matrix.data.clone(), [LENGTH]);
        let x = Tensor::<1>::from_data(data, &device).require_grad();
        let (values, indices) = topk(x.clone(), &options, 0);
        let positions = |indices: Tensor<1, Int>| indices.into_data().iter::<i64>().collect();
        let found: Vec<i64> = positions(indices);
        let floats = elements::<f32>(&values.clone().into_data())?;
        verify::selection(&matrix, &options, Some(&floats), &found)?;
        let alone: Vec<i64> = positions(argtopk(x.clone().inner(), &options, 0));
        verify::selection(&matrix, &options, None, &alone)?;
        let gradients = values.sum().backward();
        let gradient = x.grad(&gradients).ok_or("a gradient")?;
        let gradient = elements::<f32>(&gradient.into_data())?;
        let ones = gradient.iter().filter(|&&g| g == 1.0).count();
        let zeros = gradient.iter().filter(|&&g| g == 0.0).count();
        let right = found.iter().all(|&at| gradient[at as usize] == 1.0);
        if !right || ones != k || zeros != LENGTH - k {
            return Err(format!("k = {k}: {ones} ones, {zeros} zeros in the gradient"));
        }
    }
    Ok(Verdict::Passed)
}

fn empty(backend: &Backend) -> Result<(), String> {
    for (shape, k) in [([3, 5], 0), ([0, 5], 2), ([3, 0], 0), ([0, 0], 0)] {
        let x = Tensor::<2>::from_data(
            TensorData::new(vec![1.0f32; shape[0] * shape[1]], shape),
            &backend.device,
        );
        let (values, indices) = topk(x.clone(), &TopkOptions::new(k), -1);
        let wanted = [shape[0], k];
        if values.dims() != wanted || indices.dims() != wanted {
            return Err(format!(
                "{shape:?}, k = {k}: {:?} and {:?}",
                values.dims(),
                indices.dims()
            ));
        }
        if values.into_data().num_elements() + indices.into_data().num_elements() != 0 {
            return Err(format!("{shape:?}, k = {k}: not empty"));
        }
        let dense = topk_mask(x, &TopkOptions::new(k), -1);
        let zeros = dense.dims() == shape && dense.into_data().iter::<f32>().all(|x| x == 0.0);
        if !zeros {
            return Err(format!("{shape:?}, k = {k}: the mask is not zero or has another shape"));
        }
    }
    Ok(())
}

fn panics(backend: &Backend) -> Result<(), String> {
    let x = Tensor::<2>::from_floats([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], &backend.device);
    type Call = fn(Tensor<2>, &TopkOptions, isize);
    let calls: [(&str, Call); 3] = [
        ("topk", |x, options, dim| drop(topk(x, options, dim))),
        ("argtopk", |x, options, dim| drop(argtopk(x, options, dim))),
        ("topk_mask", |x, options, dim| drop(topk_mask(x, options, dim))),
    ];
    let wrong = [
        (TopkOptions::new(4), -1, ["4", "3"]),
        (TopkOptions::new(3), 0, ["3", "2"]),
        (TopkOptions::new(1), 2, ["2", "dim"]),
        (TopkOptions::new(1), -3, ["-3", "dim"]),
        (TopkOptions::new(1).with_method(Method::Precision(-1.0)), -1, ["-1", "eps"]),
    ];
    for (name, call) in calls {
        for (options, dim, words) in &wrong {
            let message = expect_panic(|| call(x.clone(), options, *dim))
                .map_err(|e| format!("{name}, dim {dim}, {options:?}: {e}"))?;
            if words.iter().any(|word| !message.to_lowercase().contains(word)) {
                return Err(format!(
                    "{name}, dim {dim}, {options:?}: the message lacks one of {words:?}: {message}"
                ));
            }
        }
    }
    Ok(())
}
