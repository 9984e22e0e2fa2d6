//! Equal inputs give equal bits in every run.

use burn::tensor::{Tensor, TensorData};
use sparsek::sparse::{Adjacency, Pattern, spmm_weighted};
use sparsek::topk::{Method, TopkOptions, topk, topk_mask};
use sparsek_kernels::topk as kernel;
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix, Random},
    runner::{Cases, Outcome, Verdict},
};

use crate::kernels::{I32, Layout, read, read_positions, refusal, topk as launch};

const REPEATS: usize = 20;

pub fn add(cases: &mut Cases, backend: &Backend) {
    for (name, method) in [
        ("exact", Method::Exact),
        ("early-4", Method::EarlyStop(4)),
        ("precision-1e-3", Method::Precision(1e-3)),
    ] {
        if backend.client.is_some() {
            for routine in kernel::ROUTINES {
                cases.add(
                    backend,
                    format!("kernel/determinism/{}/{name}", routine.name()),
                    move |b| kernels(b, *routine, method),
                );
            }
        }
        cases
            .check(backend, format!("tensor/determinism/topk/{name}"), move |b| tensors(b, method));
    }
    if backend.client.is_some() {
        cases.check(backend, "kernel/determinism/vector", vectors);
    }
    cases.check(backend, "tensor/determinism/spmm", spmm);
}

fn inputs() -> [Matrix<f32>; 3] {
    [
        Matrix::mixed(36, 250, 0),
        Matrix::of(Distribution::Equal, 40, 250, 1),
        Matrix::of(Distribution::Eight, 40, 250, 2),
    ]
}

fn repeat<R: PartialEq>(mut run: impl FnMut() -> R) -> Result<(), String> {
    let first = run();
    (1..REPEATS).try_for_each(|n| {
        if run() == first { Ok(()) } else { Err(format!("run {n} differs from the first")) }
    })
}

/// Selects with one cube and with many, where the device can.
fn vectors(backend: &Backend) -> Result<(), String> {
    let client = backend.client.as_ref().expect("a client");
    let length = if backend.is_llvmpipe() { 3000 } else { 40_000 };
    for distribution in [Distribution::Normal, Distribution::Equal, Distribution::Eight] {
        let matrix = Matrix::<f32>::of(distribution, 1, length, 3);
        let input = Layout::Contiguous.upload(client, &matrix);
        for k in [50, 1500] {
            let options = kernel::VectorOptions::new(k);
            let run =
                || kernel::topk_vector(client, &input.handle, input.dtype, length, &options, I32);
            run().map_err(|error| error.to_string())?;
            repeat(|| {
                let selected = run().expect("it ran before");
                let values: Vec<f32> = read(client, selected.values, k);
                let bits: Vec<u32> = values.iter().map(|x| x.to_bits()).collect();
                (bits, read_positions(client, selected.indices, I32, k))
            })?;
        }
    }
    Ok(())
}

fn kernels(backend: &Backend, routine: kernel::Routine, method: Method) -> Outcome {
    let client = backend.client.as_ref().expect("a client");
    let options = TopkOptions { k: 32, largest: true, sorted: false, method };
    let ragged = Matrix::mixed(36, 250, 3).with_any_lengths(3);
    for matrix in inputs().into_iter().chain([ragged]) {
        let input = Layout::Contiguous.upload(client, &matrix);
        if let Err(error) = launch::<f32>(client, &input, &options, I32, Some(routine)) {
            return refusal(&error).map(Verdict::Skipped).ok_or_else(|| error.to_string());
        }
        repeat(|| {
            let (values, positions) =
                launch::<f32>(client, &input, &options, I32, Some(routine)).expect("it ran before");
            (values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>(), positions)
        })?;
    }
    Ok(Verdict::Passed)
}

fn tensors(backend: &Backend, method: Method) -> Result<(), String> {
    let options = TopkOptions::new(32).with_method(method).with_sorted(true);
    for matrix in inputs() {
        let x = Tensor::<2>::from_data(
            TensorData::new(matrix.data, [matrix.rows, matrix.cols]),
            &backend.device,
        );
        repeat(|| {
            let (values, indices) = topk(x.clone(), &options, -1);
            let dense = topk_mask(x.clone(), &options, -1);
            [values.into_data(), indices.into_data(), dense.into_data()]
                .map(|data| data.as_bytes().to_vec())
        })?;
    }
    Ok(())
}

/// Float sums in both directions: the order of terms must not depend on the run.
fn spmm(backend: &Backend) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    let mut random = Random::new(3);
    let (n, degree, width) = (300, 40, 32);
    let indices: Vec<u32> = (0..n * degree).map(|_| random.below(n) as u32).collect();
    let indptr = (0..=n).map(|i| (i * degree) as u32).collect();
    let adjacency =
        Adjacency::new(&Pattern::new(n, n, indptr, indices).expect("a valid pattern"), &device);
    let mut normals =
        |count: usize| -> Vec<f32> { (0..count).map(|_| random.normal() as f32).collect() };
    let (x, w) = (normals(n * width), normals(n * degree));
    repeat(|| {
        let x =
            Tensor::<2>::from_data(TensorData::new(x.clone(), [n, width]), &device).require_grad();
        let w = Tensor::<1>::from_data(TensorData::new(w.clone(), [n * degree]), &device)
            .require_grad();
        let y = spmm_weighted(&adjacency, w.clone(), x.clone());
        let gradients = (y.clone() * y.clone()).backward();
        let (dx, dw) = (x.grad(&gradients), w.grad(&gradients));
        (
            y.into_data().as_bytes().to_vec(),
            dx.map(|g| g.into_data().as_bytes().to_vec()).expect("a gradient for x"),
            dw.map(|g| g.into_data().as_bytes().to_vec()).expect("a gradient for the weights"),
        )
    })
}
