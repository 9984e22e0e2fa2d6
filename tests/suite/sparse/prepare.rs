//! Norms, tf-idf, logarithms, scaling and products of CSR matrices.

use burn::tensor::Tensor;
use half::{bf16, f16};
use sparsek::sparse::{Csr, CsrError, Norm, Tfidf};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::normals,
    element::Element,
    oracle::{prepare, spmm::Csr as Host},
    panics::expect_panic,
    runner::{Cases, Outcome, Verdict},
    sparse::{Sparse, Structure, Values, rounded, upload, vector},
};

use crate::sparse::csr::elements;

pub fn add(cases: &mut Cases, backend: &Backend) {
    add_dtype::<f32>(cases, backend);
    add_dtype::<f64>(cases, backend);
    add_dtype::<f16>(cases, backend);
    add_dtype::<bf16>(cases, backend);
    cases.check(backend, "tensor/csr/prepare/extremes", extremes);
    cases.check_shared(backend, "tensor/csr/prepare/gradients", gradients);
    cases.check(backend, "tensor/csr/prepare/errors", errors);
}

fn add_dtype<T: Element>(cases: &mut Cases, backend: &Backend) {
    for recipe in Sparse::ALL {
        let case = format!("tensor/csr/prepare/{}/{}", T::NAME, recipe.name);
        cases.add(backend, case, move |b| of_dtype::<T>(b, &recipe));
    }
}

/// The sums' dtype and that of the values.
fn epsilons<T: Element>() -> [f64; 2] {
    match T::NAME {
        "f64" => [f64::EPSILON; 2],
        "f16" => [f64::from(f32::EPSILON), f64::from(f16::EPSILON)],
        "bf16" => [f64::from(f32::EPSILON), f64::from(bf16::EPSILON)],
        _ => [f64::from(f32::EPSILON); 2],
    }
}

fn near(
    what: &str,
    found: &[f64],
    expected: &[f64],
    [relative, absolute]: [f64; 2],
) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{what}: {} elements instead of {}", found.len(), expected.len()));
    }
    for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let bound = relative * expected.abs() + absolute;
        if found != expected && (found - expected).abs() > bound {
            return Err(format!("{what}: element {i} is {found} instead of {expected}"));
        }
    }
    Ok(())
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Compares the values; the pattern and the dtype stay.
fn same<T: Element>(
    what: &str,
    csr: &Csr,
    found: &Csr,
    expected: &Host,
    bounds: [f64; 2],
) -> Result<(), String> {
    if found.pattern() != csr.pattern() || found.dtype() != T::dtype() {
        return Err(format!("{what}: {:?} of {:?}", found.pattern(), found.dtype()));
    }
    near(what, &numbers(found.values().clone()), &expected.weights, bounds)
}

fn of_dtype<T: Element>(backend: &Backend, recipe: &Sparse) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    let device = &backend.device;
    let host = rounded::<T>(&recipe.matrix(13));
    let csr = upload::<T>(&host, device);
    let [sums, values] = epsilons::<T>();
    // Squares, sums, a root and quotients round. Devices may flush subnormal f16.
    let least = if T::NAME == "f16" { f64::from(f16::MIN_POSITIVE) } else { 0.0 };
    let [wide, bound] = [[16.0 * sums, 0.0], [16.0 * sums + values, least]];
    for (norm, name) in [Norm::L1, Norm::L2, Norm::Max].into_iter().zip(prepare::NORMS) {
        if name.parse() != Ok(norm) {
            return Err(format!("{name} is not {norm}"));
        }
        let norms = numbers(csr.row_norms(norm));
        near(name, &norms, &prepare::row_norms(&host, name), wide)?;
        let expected = prepare::normalized(&host, name);
        same::<T>(name, &csr, &csr.normalize(norm), &expected, bound)?;
    }
    let other = rounded::<T>(&recipe.with_rows(recipe.rows + 2).matrix(14));
    let train = upload::<T>(&other, device);
    let tfidf = Tfidf::fit(&train);
    near("idf", tfidf.idf(), &prepare::idf(&other), [f64::EPSILON, 0.0])?;
    let found = tfidf.transform(&csr).map_err(|e| e.to_string())?;
    same::<T>("tf-idf", &csr, &found, &prepare::tfidf(&other, &host), bound)?;
    same::<T>("own tf-idf", &csr, &csr.tfidf(), &prepare::tfidf(&host, &host), bound)?;
    let magnitudes = upload::<T>(&prepare::with(&host, |_, _, x| x.abs()), device);
    let expected = prepare::with(&host, |_, _, x| x.abs().ln_1p());
    if T::NAME == "f64" && matches!(backend.kind, Kind::Vulkan | Kind::Wgpu | Kind::WebGpu) {
        let message = expect_panic(|| drop(magnitudes.log1p()))?;
        if !message.contains("no logarithms of f64") {
            return Err(message);
        }
    } else {
        // Devices may compute ln(1 + x) as written.
        same::<T>("log1p", &csr, &magnitudes.log1p(), &expected, [bound[0], 4.0 * sums + least])?;
    }

    if host.rows > 1 {
        for ddof in [0, 1] {
            let what = format!("variances, ddof {ddof}");
            let expected = prepare::variances(&host, ddof);
            near(&what, &numbers(csr.col_variances(ddof)), &expected, [4.0 * wide[0], 0.0])?;
        }
        let expected = prepare::scaled(&host, sums);
        same::<T>("scaled", &csr, &csr.scale(), &expected, [4.0 * wide[0] + values, least])?;
    }
    let [rows, cols] = [host.rows, host.cols].map(|count| normals(count, 15));
    let expected = prepare::with(&host, |i, _, x| x * rows[i]);
    let found = csr.scale_rows(vector::<f32>(&rows, device));
    same::<T>("rows", &csr, &found, &expected, bound)?;
    let expected = prepare::with(&host, |_, j, x| x * cols[j]);
    let found = csr.scale_cols(vector::<f32>(&cols, device));
    same::<T>("columns", &csr, &found, &expected, bound)?;

    if host.cols > 0 && host.rows > 0 {
        let x: Vec<f64> = normals(host.cols * 3, 16).iter().map(|&x| T::of(x).wide_f64()).collect();
        let y = csr.matmul(vector::<T>(&x, device).reshape([host.cols, 3]));
        if y.dims() != [host.rows, 3] {
            return Err(format!("a product of shape {:?}", y.dims()));
        }
        let y: Vec<f64> = elements::<T, 2>(&y)?.into_iter().map(T::wide_f64).collect();
        host.spmm(&x, 3).check(&y, sums.max(values)).map_err(|e| format!("product: {e}"))?;
    }
    Ok(Verdict::Passed)
}

/// Squares that overflow or vanish, infinities and NaN.
fn extremes(backend: &Backend) -> Result<(), String> {
    let host = Host {
        rows: 5,
        cols: 2,
        indptr: vec![0, 2, 4, 6, 8, 10],
        indices: [0, 1].repeat(5),
        weights: vec![3e30, -4e30, 3e-30, 4e-30, f64::INFINITY, 1.0, f64::NAN, 1.0, 0.0, -0.0],
    };
    let csr = upload::<f32>(&host, &backend.device);
    let norms = numbers(csr.row_norms(Norm::L2));
    near("norms", &norms[..3], &[5e30, 5e-30, f64::INFINITY], [1e-6, 0.0])?;
    if !norms[3].is_nan() || norms[4] != 0.0 {
        return Err(format!("norms {norms:?}"));
    }
    let values = numbers(csr.normalize(Norm::L2).values().clone());
    near("values", &values[..4], &[0.6, -0.8, 0.6, 0.8], [1e-6, 0.0])?;
    match values[8] == 0.0 && values[9] == 0.0 && values[5] == 0.0 && values[6].is_nan() {
        true => Ok(()),
        false => Err(format!("values {values:?}")),
    }
}

/// Compares gradients with differences of the oracle in f64.
fn gradients(backend: &Backend) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    let recipe = Sparse::new("", [11, 7], 0.4, Structure::EmptyRows, Values::Normal);
    let host = rounded::<f32>(&recipe.matrix(17));
    let upstream = normals(host.weights.len(), 18);
    type Case = (&'static str, fn(&Csr) -> Csr, fn(&Host) -> Host);
    let cases: [Case; 6] = [
        ("l1", |csr| csr.normalize(Norm::L1), |host| prepare::normalized(host, "l1")),
        ("l2", |csr| csr.normalize(Norm::L2), |host| prepare::normalized(host, "l2")),
        ("max", |csr| csr.normalize(Norm::Max), |host| prepare::normalized(host, "max")),
        ("tf-idf", Csr::tfidf, |host| prepare::tfidf(host, host)),
        ("scale", Csr::scale, |host| prepare::scaled(host, f64::EPSILON)),
        (
            "select",
            |csr| csr.select_rows(&(0..11).collect::<Vec<_>>()).filter_cols(&[true; 7]),
            Host::clone,
        ),
    ];
    for (name, change, expected) in cases {
        let values = vector::<f32>(&host.weights, &device).require_grad();
        let csr = upload::<f32>(&host, &device).with_values(values.clone());
        let changed = change(&csr.map_err(|e| e.to_string())?);
        let loss = changed.values().clone() * vector::<f32>(&upstream, &device);
        let gradient = values.grad(&loss.sum().backward()).ok_or(format!("{name}: none"))?;
        let loss = |host: &Host| -> f64 {
            let products = expected(host).weights.into_iter().zip(&upstream);
            products.map(|(x, w)| x * w).sum()
        };
        for (entry, found) in numbers(gradient).into_iter().enumerate() {
            let step = 1e-6;
            let [above, below] = [step, -step].map(|step| {
                let mut host = host.clone();
                host.weights[entry] += step;
                loss(&host)
            });
            let expected = (above - below) / (2.0 * step);
            if (found - expected).abs() > 1e-4 * (1.0 + expected.abs()) {
                return Err(format!("{name}: slope {found} of entry {entry}, not {expected}"));
            }
        }
    }
    // A repeated row adds its slopes.
    let values = vector::<f32>(&[1.0, 2.0, 3.0], &device).require_grad();
    let csr = Csr::from_coo([2, 2], &[0, 1, 1], &[0, 0, 1], values.clone());
    let chosen = csr.map_err(|e| e.to_string())?.select_rows(&[1, 0, 1]);
    let gradient = values.grad(&chosen.values().clone().sum().backward()).ok_or("no gradient")?;
    near("repeated rows", &numbers(gradient), &[1.0, 2.0, 2.0], [0.0; 2])?;
    // Rows and columns of zeros have slope 0, not NaN.
    let zeros = vector::<f32>(&[0.0, 0.0], &device).require_grad();
    let csr = Csr::from_coo([2, 2], &[0, 1], &[0, 0], zeros.clone()).map_err(|e| e.to_string())?;
    let norms = csr.row_norms(Norm::L2).sum() + csr.col_variances(0).sum();
    let loss = norms + csr.normalize(Norm::L2).scale().values().clone().sum();
    let gradient = zeros.grad(&loss.backward()).ok_or("no gradient of zeros")?;
    match numbers(gradient).iter().all(|slope| slope.is_finite()) {
        true => Ok(()),
        false => Err("slopes of zeros are not finite".into()),
    }
}

fn errors(backend: &Backend) -> Result<(), String> {
    let csr = upload::<f32>(&Sparse::ALL[0].matrix(1), &backend.device);
    let narrow = upload::<f32>(&Sparse::ALL[3].matrix(1), &backend.device);
    match Tfidf::fit(&csr).transform(&narrow) {
        Err(CsrError::Size { what: "columns", found: 12, expected: 50 }) => {}
        other => return Err(format!("other columns: {other:?}")),
    }
    match "l3".parse::<Norm>() {
        Err(error) if error.to_string().contains("l1, l2 and max") => {}
        other => return Err(format!("l3: {other:?}")),
    }
    let factors = || vector::<f32>(&[1.0; 3], &backend.device);
    let x = || factors().reshape([3, 1]);
    for (message, word) in [
        (expect_panic(|| drop(csr.scale_rows(factors())))?, "3 factors for 37 rows"),
        (expect_panic(|| drop(csr.scale_cols(factors())))?, "3 factors for 50 columns"),
        (expect_panic(|| drop(csr.matmul(x())))?, "matmul: x has 3 rows"),
    ] {
        if !message.contains(word) {
            return Err(format!("{word}: {message}"));
        }
    }
    Ok(())
}
