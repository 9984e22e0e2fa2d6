//! SpMM with compressed rows on tensors: results and gradients for all widths, dtypes and factors.

use burn::tensor::{Tensor, TensorData};
use sparsek::sparse::{
    Adjacency, Compressed, Scaling, sparse_topk, spmm, spmm_compressed, spmm_compressed_with,
    spmm_with,
};
use sparsek::topk::{Method, TopkOptions, topk_mask};
use sparsek_tests::{
    backend::Backend,
    data::normals,
    element::{Dtype, Element},
    oracle::spmm::Csr,
    panics::expect_panic,
    runner::{Cases, Outcome, Verdict},
    sparse::{pattern, vector},
};

use super::problem::{Factors, PatternKind, Problem, compare, upload};

macro_rules! with_float {
    ($dtype:expr, $float:ident => $body:expr) => {
        match $dtype {
            Dtype::F16 => {
                type $float = half::f16;
                $body
            }
            Dtype::Bf16 => {
                type $float = half::bf16;
                $body
            }
            Dtype::F64 => {
                type $float = f64;
                $body
            }
            _ => {
                type $float = f32;
                $body
            }
        }
    };
}

pub fn add(cases: &mut Cases, backend: &Backend) {
    for width in [1, 32, 200, 256, 384, 1000, 1024] {
        for k in ks(width) {
            cases.add(backend, format!("tensor/spmm/compressed/{width}/{k}"), move |b| {
                one::<f32>(b, PatternKind::Ragged, [width, k], Factors::Some)
            });
        }
    }
    for dtype in [Dtype::F16, Dtype::Bf16, Dtype::F64] {
        for [width, k] in [[32, 32], [200, 7], [256, 32], [384, 64]] {
            let name = format!("tensor/spmm/compressed/{dtype:?}/{width}/{k}").to_lowercase();
            cases.add(backend, name, move |b| {
                with_float!(dtype, T => one::<T>(b, PatternKind::Ragged, [width, k], Factors::All))
            });
        }
    }
    for factors in Factors::ALL {
        let name = format!("tensor/spmm/compressed/factors/{factors:?}").to_lowercase();
        cases.add(backend, name, move |b| one::<f32>(b, PatternKind::Ragged, [64, 9], factors));
    }
    for shape in [
        PatternKind::Empty,
        PatternKind::Hub,
        PatternKind::Wide,
        PatternKind::Nothing,
        PatternKind::Cut,
    ] {
        let name = format!("tensor/spmm/compressed/shape/{shape:?}").to_lowercase();
        cases.add(backend, name, move |b| one::<f32>(b, shape, [40, 5], Factors::All));
    }
    cases.add(backend, "tensor/spmm/compressed/differences", differences);
    cases.check(backend, "tensor/spmm/compressed/masked", masked);
    cases.check(backend, "tensor/spmm/compressed/nothing-kept", nothing_kept);
    cases.check(backend, "tensor/spmm/compressed/panics", panics);
}

fn ks(width: usize) -> Vec<usize> {
    let mut all = vec![1, width.div_ceil(8), width / 2 + 1, width];
    all.dedup();
    all
}

fn one<T: Element>(
    backend: &Backend,
    shape: PatternKind,
    sizes: [usize; 2],
    factors: Factors,
) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    // Rows are not split on llvmpipe, so long ones may hit its loop limit.
    let longest = if shape == PatternKind::Hub { 100_000 } else { 0 };
    if let Some(reason) = backend.loop_limit(longest) {
        return Ok(Verdict::Skipped(reason));
    }
    let problem = Problem::new::<T>(shape, sizes, factors);
    agrees::<T>(backend, &problem, factors).map(|()| Verdict::Passed)
}

pub fn agrees<T: Element>(
    backend: &Backend,
    problem: &Problem,
    factors: Factors,
) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    let adjacency = Adjacency::new(&pattern(&problem.csr), &device);
    let [rows, cols] = [problem.csr.rows, problem.csr.cols];
    let x = upload::<T>(&problem.x, [cols, problem.width], &device).require_grad();
    let weights = vector::<T>(&problem.csr.weights, &device).require_grad();
    let scaling = problem.scaling::<T>(factors, weights.clone(), &device);
    let compressed = sparse_topk(x.clone(), problem.k, Method::Exact);
    check_selected(problem, &compressed)?;
    let y = spmm_compressed_with(&adjacency, &compressed, &scaling);
    if y.dims() != [rows, problem.width] {
        return Err(format!("shape {:?}", y.dims()));
    }
    compare::<T, 2>("y", y.clone(), &problem.effective.spmm(&problem.masked, problem.width))?;
    let dense = spmm_with(&adjacency, compressed.to_dense(), &scaling);
    compare::<T, 2>("dense y", dense, &problem.effective.spmm(&problem.masked, problem.width))?;
    let upstream = upload::<T>(&problem.upstream, [rows, problem.width], &device);
    let gradients = (y * upstream).backward();
    let dx = x.grad(&gradients).ok_or("no gradient for x")?;
    compare::<T, 2>("dx", dx, &problem.gradient())?;
    if factors.weights() {
        let dw = weights.grad(&gradients).ok_or("no gradient for the weights")?;
        compare::<T, 1>("dw", dw, &problem.gradient_of_weights(factors))?;
    }
    Ok(())
}

fn check_selected(problem: &Problem, found: &Compressed) -> Result<(), String> {
    let columns: Vec<i64> = found.columns().to_data().iter::<i64>().collect();
    let expected: Vec<i64> = problem.selected.concat().iter().map(|&m| m as i64).collect();
    if columns != expected {
        return Err("other elements are selected".into());
    }
    let size = found.columns().dtype().size();
    let least = if problem.width <= 256 { 1 } else { 2 };
    if size != least && size != 4 {
        return Err(format!("columns of {size} bytes"));
    }
    let dense = found.to_dense().into_data();
    let dense: Vec<f64> = dense.iter::<f64>().collect();
    match dense == problem.masked {
        true => Ok(()),
        false => Err("the dense representation differs".into()),
    }
}

/// Gradients of x, the weights and the dense representation against finite differences in f64.
fn differences(backend: &Backend) -> Outcome {
    if !backend.device.supports_dtype(burn::tensor::DType::F64) {
        return Ok(Verdict::Skipped("the device has no f64".into()));
    }
    let problem = Problem::new::<f64>(PatternKind::Ragged, [12, 4], Factors::All);
    let device = backend.device.clone().autodiff();
    let adjacency = Adjacency::new(&pattern(&problem.csr), &device);
    let upstream = upload::<f64>(&problem.upstream, [problem.csr.rows, problem.width], &device);
    let own = normals(problem.x.len(), 21);
    let loss = |x: Tensor<2>, weights: Tensor<1>| {
        let scaling = problem.scaling::<f64>(Factors::All, weights, &device);
        let kept = sparse_topk(x, problem.k, Method::Exact).map(|values| values.clone() * values);
        let y = spmm_compressed_with(&adjacency, &kept, &scaling);
        let other =
            kept.to_dense() * upload::<f64>(&own, [problem.csr.cols, problem.width], &device);
        let terms = [y * upstream.clone(), other];
        terms.map(|term| term.sum())
    };
    let value = |x: &[f64], weights: &[f64]| -> f64 {
        let x = upload::<f64>(x, [problem.csr.cols, problem.width], &device);
        let [a, b] = loss(x, vector::<f64>(weights, &device));
        a.into_data().iter::<f64>().sum::<f64>() + b.into_data().iter::<f64>().sum::<f64>()
    };
    let x = upload::<f64>(&problem.x, [problem.csr.cols, problem.width], &device).require_grad();
    let weights = vector::<f64>(&problem.csr.weights, &device).require_grad();
    let [a, b] = loss(x.clone(), weights.clone());
    let gradients = (a + b).backward();
    let dx: Vec<f64> = x.grad(&gradients).ok_or("no dx")?.into_data().iter::<f64>().collect();
    let dw: Vec<f64> = weights.grad(&gradients).ok_or("no dw")?.into_data().iter::<f64>().collect();
    let step = 1e-6;
    let near = |what: &str, at: usize, found: f64, expected: f64| match (found - expected).abs()
        < 1e-5 * (1.0 + expected.abs())
    {
        true => Ok(()),
        false => Err(format!("{what}[{at}] is {found}, differences say {expected}")),
    };
    for at in (0..dx.len()).step_by(17) {
        let moved = |by: f64| {
            let mut x = problem.x.clone();
            x[at] += by;
            value(&x, &problem.csr.weights)
        };
        near("dx", at, dx[at], (moved(step) - moved(-step)) / (2.0 * step))?;
    }
    for at in (0..dw.len()).step_by(23) {
        let moved = |by: f64| {
            let mut weights = problem.csr.weights.clone();
            weights[at] += by;
            value(&problem.x, &weights)
        };
        near("dw", at, dw[at], (moved(step) - moved(-step)) / (2.0 * step))?;
    }
    Ok(Verdict::Passed)
}

/// Equals SpMM with masked dense rows, forward and backward, up to rounding; also with early stop.
fn masked(backend: &Backend) -> Result<(), String> {
    let problem = Problem::new::<f32>(PatternKind::Ragged, [256, 32], Factors::Ones);
    let device = backend.device.clone().autodiff();
    let adjacency = Adjacency::new(&pattern(&problem.csr), &device);
    let upstream = upload::<f32>(&problem.upstream, [problem.csr.rows, problem.width], &device);
    for method in [Method::Exact, Method::EarlyStop(4)] {
        let run = |compressed: bool| -> Result<[Vec<f64>; 2], String> {
            let x = upload::<f32>(&problem.x, [problem.csr.cols, problem.width], &device)
                .require_grad();
            let y = if compressed {
                spmm_compressed(&adjacency, &sparse_topk(x.clone(), 32, method))
            } else {
                let options = TopkOptions::new(32).with_method(method);
                spmm(&adjacency, topk_mask(x.clone(), &options, 1))
            };
            let gradients = (y.clone() * upstream.clone()).backward();
            let dx = x.grad(&gradients).ok_or("no gradient")?;
            Ok([y, dx].map(|tensor| tensor.into_data().iter::<f64>().collect()))
        };
        let [found, expected] = [run(true)?, run(false)?];
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            if (found - expected).abs() > 1e-4 {
                return Err(format!("{method:?}: {found} instead of {expected}"));
            }
        }
    }
    Ok(())
}

fn nothing_kept(backend: &Backend) -> Result<(), String> {
    let csr = PatternKind::Ragged.csr();
    let adjacency = Adjacency::new(&pattern(&csr), &backend.device);
    let x = upload::<f32>(&normals(csr.cols * 10, 1), [csr.cols, 10], &backend.device);
    let y = spmm_compressed(&adjacency, &sparse_topk(x, 0, Method::Exact));
    let zeros = TensorData::zeros::<f32, _>([csr.rows, 10]);
    if y.into_data() != zeros {
        return Err("k = 0 gives a nonzero result".into());
    }
    let nothing = Csr { rows: 0, cols: 3, indptr: vec![0], indices: vec![], weights: vec![] };
    let adjacency = Adjacency::new(&pattern(&nothing), &backend.device);
    let x = upload::<f32>(&normals(3 * 4, 1), [3, 4], &backend.device);
    let y = spmm_compressed(&adjacency, &sparse_topk(x, 2, Method::Exact));
    match y.dims() {
        [0, 4] => Ok(()),
        dims => Err(format!("no rows give {dims:?}")),
    }
}

fn panics(backend: &Backend) -> Result<(), String> {
    let csr = PatternKind::Wide.csr();
    let adjacency = Adjacency::new(&pattern(&csr), &backend.device);
    let rows = |n: usize| upload::<f32>(&normals(n * 4, 1), [n, 4], &backend.device);
    let message = expect_panic(|| drop(sparse_topk(rows(3), 5, Method::Exact)))?;
    if !message.contains('5') || !message.contains('4') {
        return Err(format!("the message does not say 5 and 4: {message}"));
    }
    let kept = sparse_topk(rows(399), 2, Method::Exact);
    let message = expect_panic(|| drop(spmm_compressed(&adjacency, &kept)))?;
    if !message.contains("399") || !message.contains("400") {
        return Err(format!("the message does not say 399 and 400: {message}"));
    }
    let kept = sparse_topk(rows(400), 2, Method::Exact);
    let scaling = Scaling::default().with_rows(vector::<f32>(&[1.0; 6], &backend.device));
    let message = expect_panic(|| drop(spmm_compressed_with(&adjacency, &kept, &scaling)))?;
    match message.contains("6 factors for 5 rows") {
        true => Ok(()),
        false => Err(format!("the message does not say 6 and 5: {message}")),
    }
}
