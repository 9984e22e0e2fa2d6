//! Gradients of CSR matrices, with and without gradient checkpointing.

use burn::tensor::{Device, Tensor};
use sparsek::sparse::Csr;
use sparsek_tests::{
    backend::Backend,
    data::Random,
    runner::Cases,
    sparse::{Sparse, Structure, Values, vector},
};

use crate::sparse::csr::{elements, same, shuffled};

pub fn add(cases: &mut Cases, backend: &Backend) {
    for (name, checkpointing) in [("plain", false), ("checkpointed", true)] {
        cases.check(backend, format!("tensor/csr/gradient/{name}"), move |b| {
            gradient_of_dense(b, checkpointing)?;
            gradient_of_values(b, checkpointing)
        });
    }
}

fn tracking(backend: &Backend, checkpointing: bool) -> Device {
    let device = backend.device.clone().autodiff();
    match checkpointing {
        true => device.gradient_checkpointing(),
        false => device,
    }
}

fn integers(n: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..n).map(|_| random.below(15) as f64 - 7.0).collect()
}

fn matrix(data: &[f64], shape: [usize; 2], device: &Device) -> Tensor<2> {
    vector::<f32>(data, device).reshape(shape)
}

/// loss = Σ w (2x)ᵀ through the entries of x: dx = 2 wᵀ where x ≠ 0, else 0.
fn gradient_of_dense(backend: &Backend, checkpointing: bool) -> Result<(), String> {
    let device = tracking(backend, checkpointing);
    let recipe = Sparse::new("", [19, 23], 0.3, Structure::EmptyRows, Values::Dyadic);
    let elements_of_x = recipe.matrix(4).dense().concat();
    let upstream = integers(19 * 23, 5);
    let x = matrix(&elements_of_x, [19, 23], &device).require_grad();
    let csr = Csr::from_dense(x.clone() * 2.0).map_err(|e| e.to_string())?;
    let loss = csr.transpose().to_dense() * matrix(&upstream, [23, 19], &device);
    let gradient = x.grad(&loss.backward()).ok_or("no gradient for x")?;
    let expected: Vec<f64> = (0..19 * 23)
        .map(|at| match elements_of_x[at] == 0.0 {
            true => 0.0,
            false => 2.0 * upstream[at % 23 * 19 + at / 23],
        })
        .collect();
    same::<f32>("dx", &elements(&gradient)?, &expected)
}

/// loss = Σ w A[3..] with A built from v, possibly with duplicates: dv is w at the entry, and 0 in
/// the first rows. A round trip to the device changes nothing.
fn gradient_of_values(backend: &Backend, checkpointing: bool) -> Result<(), String> {
    let device = tracking(backend, checkpointing);
    let recipe = Sparse::new("", [14, 9], 0.4, Structure::Uniform, Values::Dyadic);
    for twice in [false, true] {
        let mut entries: Vec<_> = recipe.matrix(6).entries().collect();
        if twice {
            entries.extend(entries.clone().into_iter().step_by(3));
        }
        let entries = shuffled(entries, 7);
        let of = |id: fn(&(usize, usize, f64)) -> usize| -> Vec<u32> {
            entries.iter().map(|entry| id(entry) as u32).collect()
        };
        let upstream = integers(14 * 9, 8);
        let weights: Vec<f64> = entries.iter().map(|entry| entry.2).collect();
        let values = vector::<f32>(&weights, &device).require_grad();
        let csr = Csr::from_coo([14, 9], &of(|e| e.0), &of(|e| e.1), values.clone());
        let moved = csr.and_then(|csr| csr.to_device(&device));
        let rows = moved.map_err(|e| e.to_string())?.slice_rows(3..14);
        let loss = rows.to_dense() * matrix(&upstream[27..], [11, 9], &device);
        let gradient = values.grad(&loss.backward()).ok_or("no gradient for the values")?;
        let expected: Vec<f64> = entries
            .iter()
            .map(|&(i, j, _)| if i < 3 { 0.0 } else { upstream[i * 9 + j] })
            .collect();
        same::<f32>("dv", &elements(&gradient)?, &expected)?;
    }
    Ok(())
}
