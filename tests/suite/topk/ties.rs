//! Ties that go to the highest index.

use burn::tensor::{Float, Int, Tensor, TensorData, kind::Ordered};
use sparsek::topk::{
    Method, RowOptions, TieBreak, TopkOptions, argtopk, topk, topk_bool_mask, topk_mask,
    topk_mask_fill,
};
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix},
    element::Element,
    oracle,
    runner::Cases,
};

use super::common::{elements, upload};

pub fn add(cases: &mut Cases, backend: &Backend) {
    cases.check(backend, "tensor/topk/ties/f32", selections::<f32, Float>);
    cases.check(backend, "tensor/topk/ties/i32", selections::<i32, Int>);
    cases.check(backend, "tensor/topk/ties/mask", masks);
    cases.check(backend, "tensor/topk/ties/early-stop", early_stop);
    cases.check(backend, "tensor/topk/ties/gradient", gradient);
    cases.check(backend, "tensor/topk/ties/empty", empty);
}

fn highest(options: TopkOptions) -> RowOptions {
    RowOptions::new(options).with_tie_break(TieBreak::Highest)
}

/// The k best by (value, highest index), by sorting; NaN is greatest.
fn select<T: Element>(row: &[T], options: &TopkOptions) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&i, &j| {
        let (a, b) = (row[i].wide_f64(), row[j].wide_f64());
        let ascending = match (a.is_nan(), b.is_nan()) {
            (false, false) => a.partial_cmp(&b).expect("neither is NaN"),
            (a, b) => a.cmp(&b),
        };
        let better = if options.largest { ascending.reverse() } else { ascending };
        better.then(j.cmp(&i))
    });
    order.truncate(options.k);
    if !options.sorted {
        order.sort_unstable();
    }
    order
}

/// Every k, end and order.
fn requests() -> impl Iterator<Item = TopkOptions> {
    [0, 1, 32, 203].into_iter().flat_map(|k| {
        [(true, false), (true, true), (false, false), (false, true)]
            .map(|(largest, sorted)| TopkOptions::new(k).with_largest(largest).with_sorted(sorted))
    })
}

/// Compares `topk` and `argtopk` along both dimensions; `wanted`: columns of each row.
fn check<T: Element, K: Ordered>(
    matrix: &Matrix<T>,
    x: &Tensor<2, K>,
    options: TopkOptions,
    wanted: &[Vec<usize>],
) -> Result<(), String> {
    let columns: Vec<i64> = wanted.iter().flatten().map(|&at| at as i64).collect();
    let rows = wanted.iter().enumerate();
    let values: Vec<T> =
        rows.flat_map(|(row, wanted)| wanted.iter().map(move |&at| matrix.row(row)[at])).collect();
    for dim in [1, 0] {
        let x = if dim == 0 { x.clone().transpose() } else { x.clone() };
        let (found, indices) = topk(x.clone(), highest(options), dim);
        let alone = argtopk(x, highest(options), dim);
        let found = if dim == 0 { found.transpose() } else { found };
        for indices in [indices, alone] {
            let indices = if dim == 0 { indices.transpose() } else { indices };
            let indices: Vec<i64> = indices.into_data().iter::<i64>().collect();
            if indices != columns {
                let slot = indices.iter().zip(&columns).position(|(found, wanted)| found != wanted);
                return Err(format!("dim {dim}, {options:?}: indices differ at {slot:?}"));
            }
        }
        let found = elements::<T>(&found.into_data())?;
        let differs = |(found, wanted): (&T, &T)| !found.same(*wanted);
        match found.iter().zip(&values).position(differs) {
            None if found.len() == values.len() => {}
            slot => return Err(format!("dim {dim}, {options:?}: values differ at {slot:?}")),
        }
    }
    Ok(())
}

fn selections<T: Element, K: Ordered>(backend: &Backend) -> Result<(), String> {
    let matrix = Matrix::<T>::mixed(Distribution::ALL.len(), 203, 51);
    let x = upload::<K, T>(&matrix, backend);
    for options in requests() {
        let wanted: Vec<_> = (0..matrix.rows).map(|i| select(matrix.row(i), &options)).collect();
        check(&matrix, &x, options, &wanted)?;
    }
    Ok(())
}

fn masks(backend: &Backend) -> Result<(), String> {
    let matrix = Matrix::<f32>::mixed(Distribution::ALL.len(), 203, 52);
    let x = upload::<Float, f32>(&matrix, backend);
    for options in requests() {
        let mut kept = vec![false; matrix.data.len()];
        for row in 0..matrix.rows {
            for at in select(matrix.row(row), &options) {
                kept[row * matrix.cols + at] = true;
            }
        }
        let request = highest(options);
        let truths: Vec<bool> =
            topk_bool_mask(x.clone(), request, 1).into_data().iter::<bool>().collect();
        if truths != kept {
            return Err(format!("topk_bool_mask, {options:?}"));
        }
        let dense = topk_mask(x.clone(), request, 1);
        let turned = topk_mask(x.clone().transpose(), request, 0).transpose();
        let filled = topk_mask_fill(x.clone(), request, 1, -3.0);
        for (name, found, fill) in
            [("topk_mask", dense, 0.0), ("columns", turned, 0.0), ("topk_mask_fill", filled, -3.0)]
        {
            let found = elements::<f32>(&found.into_data())?;
            let wanted = |at: usize| if kept[at] { matrix.data[at] } else { fill };
            if let Some(at) = (0..kept.len()).find(|&at| !found[at].same(wanted(at))) {
                return Err(format!("{name}, {options:?}: {} at {at}", found[at]));
            }
        }
    }
    Ok(())
}

/// The selection from the reversed row.
fn early_stop(backend: &Backend) -> Result<(), String> {
    let matrix = Matrix::<f32>::mixed(Distribution::ALL.len(), 203, 53);
    let x = upload::<Float, f32>(&matrix, backend);
    for largest in [true, false] {
        let options = TopkOptions::new(32).with_largest(largest).with_method(Method::EarlyStop(4));
        let wanted = (0..matrix.rows).map(|i| {
            let reversed: Vec<f32> = matrix.row(i).iter().rev().copied().collect();
            let selected = oracle::topk::select(&reversed, &options);
            selected.into_iter().rev().map(|at| 202 - at).collect::<Vec<usize>>()
        });
        check(&matrix, &x, options, &wanted.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// The upstream gradient reaches the selected elements.
fn gradient(backend: &Backend) -> Result<(), String> {
    const SHAPE: [usize; 2] = [9, 40];
    const K: usize = 11;
    let matrix = Matrix::<f32>::of(Distribution::Eight, SHAPE[0], SHAPE[1], 54);
    let weights: Vec<f32> = (0..SHAPE[0] * SHAPE[1]).map(|i| i as f32 - 100.0).collect();
    let tracked = || upload::<Float, f32>(&matrix, backend).autodiff().require_grad();
    let upstream = |cols: usize| {
        let weights = TensorData::new(weights[..SHAPE[0] * cols].to_vec(), [SHAPE[0], cols]);
        Tensor::<2>::from_data(weights, &backend.device).autodiff()
    };
    for sorted in [false, true] {
        let options = TopkOptions::new(K).with_sorted(sorted);
        let (mut of_values, mut of_mask) = (vec![0.0; weights.len()], vec![0.0; weights.len()]);
        for row in 0..SHAPE[0] {
            for (slot, at) in select(matrix.row(row), &options).into_iter().enumerate() {
                let at = row * SHAPE[1] + at;
                of_values[at] = weights[row * K + slot];
                of_mask[at] = weights[at];
            }
        }
        let x = tracked();
        let (values, _) = topk(x.clone(), highest(options), 1);
        let gradients = (values * upstream(K)).backward();
        let found = x.grad(&gradients).ok_or("a gradient of topk")?;
        if elements::<f32>(&found.into_data())? != of_values {
            return Err(format!("topk, sorted {sorted}"));
        }
        let x = tracked();
        let gradients = (topk_mask(x.clone(), highest(options), 1) * upstream(SHAPE[1])).backward();
        let found = x.grad(&gradients).ok_or("a gradient of topk_mask")?;
        if elements::<f32>(&found.into_data())? != of_mask {
            return Err(format!("topk_mask, sorted {sorted}"));
        }
    }
    Ok(())
}

fn empty(backend: &Backend) -> Result<(), String> {
    for (shape, k) in [([3, 5], 0), ([0, 5], 2), ([3, 0], 0)] {
        let data = TensorData::new(vec![1.0_f32; shape[0] * shape[1]], shape);
        let x = Tensor::<2>::from_data(data, &backend.device);
        let request = highest(TopkOptions::new(k));
        let (values, indices) = topk(x.clone(), request, 1);
        let dims = [values.dims(), indices.dims(), topk_mask(x, request, 1).dims()];
        if dims != [[shape[0], k], [shape[0], k], shape] {
            return Err(format!("{shape:?}, k = {k}: {dims:?}"));
        }
    }
    Ok(())
}
