//! Order statistics and sorting.

use burn::tensor::{Float, Int, Tensor, TensorData, kind::Ordered};
use sparsek::topk::{TopkOptions, argsort, argtopk, kthvalue, sort};
use sparsek_tests::{
    backend::Backend,
    data::Matrix,
    element::Element,
    oracle::topk::select,
    runner::{Cases, Outcome, Verdict},
};

use super::{
    common::{compare, elements},
    tensors::tensor,
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    cases.check(backend, "tensor/topk/sort/f32", sorts::<f32, Float>);
    cases.check(backend, "tensor/topk/sort/i32", sorts::<i32, Int>);
    cases.check(backend, "tensor/topk/sort/gradient", gradient);
    for (rows, cols) in [(3, 5000), (2, 70_001), (1, 1 << 20)] {
        cases.add(backend, format!("tensor/topk/sort/long-rows/{cols}"), move |b| {
            long_rows(b, rows, cols)
        });
    }
    cases.check(backend, "tensor/topk/kthvalue/f32", kth_values::<f32, Float>);
    cases.check(backend, "tensor/topk/kthvalue/i32", kth_values::<i32, Int>);
    cases.check(backend, "tensor/topk/kthvalue/gradient", kth_gradient);
}

fn check_sort<const D: usize, K: Ordered, T: Element>(
    x: &Tensor<D, K>,
    dim: isize,
) -> Result<(), String> {
    let length = x.dims()[dim.rem_euclid(D as isize) as usize];
    for descending in [false, true] {
        let options = TopkOptions::new(length).with_largest(descending).with_sorted(true);
        let found = sort(x.clone(), dim, descending);
        let alone = argsort(x.clone(), dim, descending);
        compare::<D, K, T>(x, None, (&options, dim), found, alone)?;
    }
    Ok(())
}

fn sorts<T: Element, K: Ordered>(backend: &Backend) -> Result<(), String> {
    let x = tensor::<3, K, T>([9, 18, 33], 31, &backend.device);
    for dim in [-1, 0, 1] {
        check_sort::<3, K, T>(&x, dim)?;
    }
    check_sort::<2, K, T>(&tensor::<2, K, T>([18, 203], 32, &backend.device), 1)
}

fn long_rows(backend: &Backend, rows: usize, cols: usize) -> Outcome {
    if let Some(reason) = backend.loop_limit(cols) {
        return Ok(Verdict::Skipped(reason));
    }
    check_sort::<2, Float, f32>(&tensor::<2, Float, f32>([rows, cols], 33, &backend.device), -1)?;
    Ok(Verdict::Passed)
}

/// The gradient of each sorted element returns to its place.
fn gradient(backend: &Backend) -> Result<(), String> {
    let x = tensor::<2, Float, f32>([9, 40], 34, &backend.device).autodiff().require_grad();
    let weights: Vec<f32> = (0..9 * 40).map(|i| i as f32 - 100.0).collect();
    let w = TensorData::new(weights.clone(), [9, 40]);
    let w = Tensor::<2>::from_data(w, &backend.device).autodiff();
    let (values, indices) = sort(x.clone(), 1, false);
    // d(v · w)/dv = w, also where v is NaN.
    let gradients = (values * w).backward();
    let found = elements::<f32>(&x.grad(&gradients).ok_or("a gradient")?.into_data())?;
    for (i, at) in indices.into_data().iter::<i64>().enumerate() {
        let place = i / 40 * 40 + at as usize;
        if found[place] != weights[i] {
            return Err(format!("gradient {place} is {} instead of {}", found[place], weights[i]));
        }
    }
    Ok(())
}

fn kth_values<T: Element, K: Ordered>(backend: &Backend) -> Result<(), String> {
    let matrix = Matrix::<T>::mixed(18, 203, 35);
    let data = TensorData::new(matrix.data.clone(), [18, 203]);
    let x = Tensor::<2, K>::from_data(data, (&backend.device, T::dtype()));
    for (k, largest) in [(1, true), (1, false), (32, true), (102, false), (203, true)] {
        let options = TopkOptions::new(k).with_largest(largest);
        let last = |i: usize| select(matrix.row(i), &options.with_sorted(true))[k - 1];
        let columns = kthvalue(x.clone().transpose(), &options, 0);
        for (values, indices) in [kthvalue(x.clone(), &options, 1), columns] {
            let values = elements::<T>(&values.into_data())?;
            let indices: Vec<i64> = indices.into_data().iter::<i64>().collect();
            if values.len() != 18 || indices.len() != 18 {
                return Err(format!("{} values, {} indices", values.len(), indices.len()));
            }
            for i in 0..18 {
                let at = last(i);
                if indices[i] != at as i64 || !values[i].same(matrix.row(i)[at]) {
                    let found = (indices[i], values[i]);
                    return Err(format!("row {i}, {options:?}: {found:?} instead of {at}"));
                }
            }
        }
    }
    Ok(())
}

/// Only the kth element receives the gradient.
fn kth_gradient(backend: &Backend) -> Result<(), String> {
    let x = tensor::<2, Float, f32>([9, 40], 36, &backend.device);
    let options = TopkOptions::new(7).with_sorted(true);
    let places = argtopk(x.clone(), &options, 1).narrow(1, 6, 1);
    let places: Vec<i64> = places.into_data().iter::<i64>().collect();
    let x = x.autodiff().require_grad();
    let (values, _) = kthvalue(x.clone(), &options, 1);
    let gradients = (values * 3.0).backward();
    let found = elements::<f32>(&x.grad(&gradients).ok_or("a gradient")?.into_data())?;
    let wanted = |i: usize| if places[i / 40] == (i % 40) as i64 { 3.0 } else { 0.0 };
    match (0..found.len()).find(|&i| found[i] != wanted(i)) {
        Some(i) => Err(format!("gradient {i} is {} instead of {}", found[i], wanted(i))),
        None => Ok(()),
    }
}
