//! The gradient of top-k on Burn tensors, plain and under gradient checkpointing.

use burn::tensor::{Tensor, TensorData};
use sparsek::topk::{Method, TopkOptions, topk, topk_mask};
use sparsek_tests::backend::Backend;
use sparsek_tests::data::Random;
use sparsek_tests::runner::Cases;

pub fn add(cases: &mut Cases, backend: &Backend) {
    for (name, checkpointing) in [("plain", false), ("checkpointed", true)] {
        cases.check(backend, format!("tensor/topk/gradient/{name}"), move |b| {
            gradient(b, checkpointing)
        });
    }
}

/// The gradient is the output's gradient at the selected places and zero elsewhere. Small integers
/// make every product exact.
fn gradient(backend: &Backend, checkpointing: bool) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    let device = if checkpointing {
        device.gradient_checkpointing()
    } else {
        device
    };
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
        let options = TopkOptions::new(k)
            .with_dim(dim)
            .with_largest(largest)
            .with_method(method);
        let along_rows = dim == 1 || dim == -1;
        let reduced = if along_rows {
            [shape[0], k]
        } else {
            [k, shape[1]]
        };
        let data = integers(shape[0] * shape[1]);
        let weights = integers(shape[0] * shape[1]);
        let upstream: Vec<f32> = weights[..reduced[0] * reduced[1]].to_vec();

        // loss = Σ w v², v selected from 2x: dx = 2 · 2 w v.
        let x =
            Tensor::<2>::from_data(TensorData::new(data.clone(), shape), &device).require_grad();
        let w = Tensor::<2>::from_data(TensorData::new(upstream.clone(), reduced), &device);
        let (values, indices) = topk(x.clone() * 2.0, &options);
        let selected: Vec<f32> = values.to_data().iter::<f32>().collect();
        let positions: Vec<usize> = indices
            .into_data()
            .iter::<i64>()
            .map(|i| i as usize)
            .collect();
        let gradients = (values.clone() * values * w).backward();
        let found = x.grad(&gradients).ok_or("topk has no gradient")?;
        let mut expected = vec![0.0f32; data.len()];
        for (n, &p) in positions.iter().enumerate() {
            let at = if along_rows {
                (n / k) * shape[1] + p
            } else {
                p * shape[1] + n % shape[1]
            };
            expected[at] = 4.0 * upstream[n] * selected[n];
        }
        same(&found, &expected).map_err(|e| format!("topk, {options:?}: {e}"))?;

        // loss = Σ w m², m the masked 2x.
        let x =
            Tensor::<2>::from_data(TensorData::new(data.clone(), shape), &device).require_grad();
        let w = Tensor::<2>::from_data(TensorData::new(weights.clone(), shape), &device);
        let dense = topk_mask(x.clone() * 2.0, &options);
        let gradients = (dense.clone() * dense * w).backward();
        let found = x.grad(&gradients).ok_or("topk_mask has no gradient")?;
        let mut expected = vec![0.0f32; data.len()];
        for (n, &p) in positions.iter().enumerate() {
            let at = if along_rows {
                (n / k) * shape[1] + p
            } else {
                p * shape[1] + n % shape[1]
            };
            expected[at] = 8.0 * weights[at] * data[at];
        }
        same(&found, &expected).map_err(|e| format!("topk_mask, {options:?}: {e}"))?;
    }
    Ok(())
}

fn same(found: &Tensor<2>, expected: &[f32]) -> Result<(), String> {
    let found: Vec<f32> = found.to_data().iter::<f32>().collect();
    match (0..expected.len()).find(|&i| found[i] != expected[i]) {
        Some(i) => Err(format!(
            "gradient {i} is {} instead of {}",
            found[i], expected[i]
        )),
        None => Ok(()),
    }
}
