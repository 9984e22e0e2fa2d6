//! Gradients of top-k tensors, with and without gradient checkpointing.

use burn::tensor::{Tensor, TensorData};
use sparsek::topk::{
    Method, RowBounds, TopkOptions, topk, topk_mask, topk_mask_ragged, topk_ragged,
};
use sparsek_tests::{backend::Backend, data::Random, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    for (name, checkpointing) in [("plain", false), ("checkpointed", true)] {
        cases.check(backend, format!("tensor/topk/gradient/{name}"), move |b| {
            gradient(b, checkpointing, false)
        });
        cases.check(backend, format!("tensor/topk/gradient/ragged/{name}"), move |b| {
            gradient(b, checkpointing, true)
        });
    }
}

/// The upstream gradient reaches the selected elements; all others get 0. Gradients of missing
/// slots are ignored. Small integers make products exact.
fn gradient(backend: &Backend, checkpointing: bool, ragged: bool) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    let device = if checkpointing { device.gradient_checkpointing() } else { device };
    let mut random = Random::new(17);
    let mut integers =
        |n: usize| -> Vec<f32> { (0..n).map(|_| random.below(61) as f32 - 30.0).collect() };
    let shape = [13, 40];
    for (k, dim, largest, method) in [
        (8, 1, true, Method::Exact),
        (5, 0, false, Method::Exact),
        (40, -1, true, Method::Exact),
        (0, 1, true, Method::Exact),
        (8, 1, true, Method::EarlyStop(2)),
        (4, -2, true, Method::Precision(0.1)),
    ] {
        let options = TopkOptions::new(k).with_largest(largest).with_method(method);
        let along_rows = dim == 1 || dim == -1;
        let reduced = if along_rows { [shape[0], k] } else { [k, shape[1]] };
        let data = integers(shape[0] * shape[1]);
        let weights = integers(shape[0] * shape[1]);
        let upstream: Vec<f32> = weights[..reduced[0] * reduced[1]].to_vec();

        let rows = shape[usize::from(!along_rows)];
        let lengths: Vec<i64> = (0..rows as i64).map(|i| 3 * i - 4).collect();
        let starts: Vec<i64> = lengths.iter().map(|length| length / 4).collect();
        let bounds = || -> RowBounds<1> {
            let lengths = Tensor::from_data(&lengths[..], &device);
            if largest {
                RowBounds::new(Tensor::from_data(&starts[..], &device), lengths)
            } else {
                lengths.into()
            }
        };

        // loss = Σ w (v + 1)² with v from 2x: dx = 4 w (v + 1).
        let x =
            Tensor::<2>::from_data(TensorData::new(data.clone(), shape), &device).require_grad();
        let w = Tensor::<2>::from_data(TensorData::new(upstream.clone(), reduced), &device);
        let (values, indices) = if ragged {
            topk_ragged(x.clone() * 2.0, bounds(), &options, dim)
        } else {
            topk(x.clone() * 2.0, &options, dim)
        };
        let selected: Vec<f32> = values.to_data().iter::<f32>().collect();
        // Skip missing slots.
        let positions: Vec<(usize, usize)> = indices
            .into_data()
            .iter::<i64>()
            .enumerate()
            .filter_map(|(n, p)| Some((n, usize::try_from(p).ok()?)))
            .collect();
        if (positions.len() < selected.len()) != (ragged && k > 0) {
            return Err(format!("{} selected elements, {options:?}", positions.len()));
        }
        let shifted = values + 1.0;
        let gradients = (shifted.clone() * shifted * w).backward();
        let found = x.grad(&gradients).ok_or("topk has no gradient")?;
        let mut expected = vec![0.0f32; data.len()];
        for &(n, p) in &positions {
            let at = if along_rows { (n / k) * shape[1] + p } else { p * shape[1] + n % shape[1] };
            expected[at] = 4.0 * upstream[n] * (selected[n] + 1.0);
        }
        same(&found, &expected).map_err(|e| format!("topk, dim {dim}, {options:?}: {e}"))?;

        // loss = Σ w (m + 1)² with m the mask of 2x.
        let x =
            Tensor::<2>::from_data(TensorData::new(data.clone(), shape), &device).require_grad();
        let w = Tensor::<2>::from_data(TensorData::new(weights.clone(), shape), &device);
        let dense = if ragged {
            topk_mask_ragged(x.clone() * 2.0, bounds(), &options, dim)
        } else {
            topk_mask(x.clone() * 2.0, &options, dim)
        };
        let shifted = dense + 1.0;
        let gradients = (shifted.clone() * shifted * w).backward();
        let found = x.grad(&gradients).ok_or("topk_mask has no gradient")?;
        let mut expected = vec![0.0f32; data.len()];
        for &(n, p) in &positions {
            let at = if along_rows { (n / k) * shape[1] + p } else { p * shape[1] + n % shape[1] };
            expected[at] = 4.0 * weights[at] * (2.0 * data[at] + 1.0);
        }
        same(&found, &expected).map_err(|e| format!("topk_mask, dim {dim}, {options:?}: {e}"))?;
    }
    Ok(())
}

fn same(found: &Tensor<2>, expected: &[f32]) -> Result<(), String> {
    let found: Vec<f32> = found.to_data().iter::<f32>().collect();
    match (0..expected.len()).find(|&i| found[i] != expected[i]) {
        Some(i) => Err(format!("gradient {i} is {} instead of {}", found[i], expected[i])),
        None => Ok(()),
    }
}
