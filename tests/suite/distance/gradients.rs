//! Gradients of distances against finite differences of the oracle.

use burn::tensor::{Tensor, TensorData};
use sparsek::{
    distance::{Metric, pairwise_distances},
    sparse::Csr,
};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::Random,
    element::Element,
    oracle::{distance, spmm::Csr as Host},
    panics::expect_panic,
    runner::{Cases, Outcome, Verdict},
    sparse::{Sparse, Structure, Values, pattern, rounded, vector},
};

/// Those with a gradient.
pub const METRICS: [Metric; 14] = [
    Metric::Dot,
    Metric::Euclidean,
    Metric::SqEuclidean,
    Metric::Cosine,
    Metric::Manhattan,
    Metric::Correlation,
    Metric::Canberra,
    Metric::BrayCurtis,
    Metric::Minkowski(3.0),
    Metric::Minkowski(1.5),
    Metric::Hellinger,
    Metric::JensenShannon,
    Metric::KullbackLeibler,
    Metric::SymmetricKl,
];
const STEP: f64 = 1e-6;

pub fn add(cases: &mut Cases, backend: &Backend) {
    for metric in METRICS {
        let case = |dtype| format!("tensor/distance/gradient/{dtype}/{metric}");
        cases.add(backend, case("f32"), move |b| of_metric::<f32>(b, metric));
        cases.add(backend, case("f64"), move |b| of_metric::<f64>(b, metric));
        cases.check(backend, case("kinks"), move |b| kinks(b, metric));
    }
    cases.check(backend, "tensor/distance/gradient/refused", refused);
}

/// Metrics of rows without negative values.
fn takes_shares(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::Hellinger | Metric::JensenShannon | Metric::KullbackLeibler | Metric::SymmetricKl
    )
}

/// f64 logarithms and powers are missing on some devices.
fn lacks_functions(backend: &Backend, metric: Metric) -> bool {
    let measured = matches!(
        metric,
        Metric::Minkowski(_)
            | Metric::JensenShannon
            | Metric::KullbackLeibler
            | Metric::SymmetricKl
    );
    measured && matches!(backend.kind, Kind::Vulkan | Kind::Wgpu | Kind::WebGpu)
}

/// Which rows are compared.
#[derive(Clone, Copy, PartialEq)]
enum Pairs {
    /// Of `x` with those of `y`.
    Apart,
    /// Of `x` with each other.
    Same,
    /// Of `y` with those of `x`.
    Turned,
}

/// Σ weights · distances over all pairs with row `i` of `x` (and of `y`, if they are one matrix).
/// Pairs with an infinite or NaN distance have no gradient.
fn loss(metric: Metric, [x, y]: [&[Vec<f64>]; 2], weights: &[f64], i: usize, pairs: Pairs) -> f64 {
    let same_matrix = pairs == Pairs::Same;
    let of = |a: &[f64], b: &[f64]| {
        let [a, b] = if pairs == Pairs::Turned { [b, a] } else { [a, b] };
        let distance = distance::distance(metric.name(), metric.p(), a, b);
        if distance.is_finite() { distance } else { 0.0 }
    };
    // Of a row and itself, these are the roots of rounded zeros.
    let rooted = matches!(metric, Metric::Hellinger | Metric::JensenShannon);
    let across = (0..y.len()).filter(|&j| !(same_matrix && rooted && j == i));
    let across = across.map(|j| weights[i * y.len() + j] * of(&x[i], &y[j]));
    let down = (0..x.len()).filter(|&j| same_matrix && j != i);
    let down = down.map(|j| weights[j * y.len() + i] * of(&x[j], &y[i]));
    across.sum::<f64>() + down.sum::<f64>()
}

fn slopes(metric: Metric, [x, y]: [&Host; 2], weights: &[f64], pairs: Pairs) -> Vec<f64> {
    let (dense_x, dense_y) = (x.dense(), y.dense());
    let entries = x.entries().map(|(i, column, _)| {
        let at = |step: f64| {
            let mut moved = dense_x.clone();
            moved[i][column] += step;
            let y = if pairs == Pairs::Same { &moved } else { &dense_y };
            loss(metric, [&moved, y], weights, i, pairs)
        };
        (at(STEP) - at(-STEP)) / (2.0 * STEP)
    });
    entries.collect()
}

fn near(what: &str, found: &[f64], expected: &[f64], tolerance: f64) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{what}: {} numbers", found.len()));
    }
    for (entry, (found, expected)) in found.iter().zip(expected).enumerate() {
        let off = (found - expected).abs();
        if off.is_nan() || off > tolerance * (1.0 + expected.abs()) {
            return Err(format!("{what}, entry {entry}: {found} instead of {expected}"));
        }
    }
    Ok(())
}

fn of_metric<T: Element>(backend: &Backend, metric: Metric) -> Outcome {
    let device = backend.device.clone().autodiff();
    if !device.supports_dtype(T::dtype()) {
        return Ok(Verdict::Skipped(format!("the device has no {}", T::NAME)));
    }
    if T::NAME == "f64" && lacks_functions(backend, metric) {
        return Ok(Verdict::Skipped("the device has no f64 logarithms and powers".into()));
    }
    let tolerance = if T::NAME == "f64" { 1e-6 } else { 2e-4 };
    let recipe = |rows, seed| {
        let structure = match metric {
            // Undefined for empty rows.
            Metric::Cosine | Metric::Hellinger => Structure::Uniform,
            // Infinite unless a row has the other's columns.
            Metric::KullbackLeibler | Metric::SymmetricKl => Structure::FullRows,
            _ => Structure::EmptyRows,
        };
        let values = if takes_shares(metric) { Values::Positive } else { Values::Normal };
        let recipe = Sparse::new("", [rows, 14], 0.5, structure, values);
        rounded::<T>(&recipe.matrix(seed))
    };
    let (x, y) = (recipe(11, 1), recipe(9, 2));
    for same_matrix in [false, true] {
        let y = if same_matrix { &x } else { &y };
        let mut random = Random::new(5);
        let weights: Vec<f64> = (0..x.rows * y.rows).map(|_| random.uniform() - 0.5).collect();
        let track = |csr: &Host| {
            let values = vector::<T>(&csr.weights, &device).require_grad();
            (Csr::new(pattern(csr), values.clone()).expect("in order"), values)
        };
        let (of_x, x_values) = track(&x);
        let (of_y, y_values) = track(y);
        let other = (!same_matrix).then_some(&of_y);
        let distances = pairwise_distances(&of_x, other, metric).map_err(|e| e.to_string())?;
        let upstream: Vec<T> = weights.iter().map(|&w| T::of(w)).collect();
        let upstream = TensorData::new(upstream, [x.rows, y.rows]);
        let upstream = Tensor::<2>::from_data(upstream, (&device, T::dtype()));
        // `backward` sums by itself: old software drivers crash on sums.
        let gradients = (distances * upstream).backward();
        let gradient = |values: &Tensor<1>| -> Vec<f64> {
            let gradient = values.grad(&gradients).expect("it is tracked");
            gradient.into_data().iter::<f64>().collect()
        };
        let pairs = if same_matrix { Pairs::Same } else { Pairs::Apart };
        let expected = slopes(metric, [&x, y], &weights, pairs);
        near("x", &gradient(&x_values), &expected, tolerance)?;
        if !same_matrix {
            let transposed: Vec<f64> = (0..y.rows)
                .flat_map(|j| (0..x.rows).map(move |i| (i, j)))
                .map(|(i, j)| weights[i * y.rows + j])
                .collect();
            let expected = slopes(metric, [y, &x], &transposed, Pairs::Turned);
            near("y", &gradient(&y_values), &expected, tolerance)?;
        }
    }
    Ok(Verdict::Passed)
}

/// Dense rows with zeros and equal values: central differences are the mean of both sides.
fn kinks(backend: &Backend, metric: Metric) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    let mut rows = [
        [1.0, 0.0, 2.5, 0.0, 0.5, 1.5],
        [1.0, 3.0, 0.0, 0.0, 0.25, 2.0],
        [0.5, 0.0, 2.5, 4.0, 1.0, 1.5],
        [2.0, 1.5, 0.75, 1.25, 0.5, 3.0],
    ];
    if !takes_shares(metric) {
        rows[0][4] = -0.5;
        rows[2][5] = -1.5;
        rows[3][0] = -1.0;
    }
    let host = rows.map(Vec::from);
    let (x, y) = (&host[..3], &host[..]);
    let tracked = Tensor::<2>::from_data([rows[0], rows[1], rows[2]], &device).require_grad();
    let other = Tensor::<2>::from_data(rows, &device).require_grad();
    let found = pairwise_distances(&tracked, Some(&other), metric).map_err(|e| e.to_string())?;
    // `backward` sums by itself.
    let gradients = found.backward();
    let check = |name: &str, tracked: &Tensor<2>, [x, y]: [&[Vec<f64>]; 2], turned: bool| {
        let gradient = tracked.grad(&gradients).expect("it is tracked").into_data();
        let gradient: Vec<f64> = gradient.iter::<f64>().collect();
        let cols = x[0].len();
        for (at, found) in gradient.into_iter().enumerate() {
            let (i, column) = (at / cols, at % cols);
            let loss = |step: f64| {
                let mut row = x[i].clone();
                row[column] += step;
                // Differences of the roots of rounded sums are none.
                let rooted = matches!(metric, Metric::Hellinger | Metric::JensenShannon);
                let pairs = y.iter().filter(|y| !rooted || **y != x[i]);
                let of = pairs.map(|y| {
                    let [a, b] = if turned { [y, &row] } else { [&row, y] };
                    distance::distance(metric.name(), metric.p(), a, b)
                });
                of.filter(|distance| distance.is_finite()).sum::<f64>()
            };
            let expected = match takes_shares(metric) && x[i][column] == 0.0 {
                true => 0.0,
                false => (loss(STEP) - loss(-STEP)) / (2.0 * STEP),
            };
            let off = (found - expected).abs();
            if off.is_nan() || off > 2e-4 * (1.0 + expected.abs()) {
                return Err(format!("{name}, {i}, {column}: {found} instead of {expected}"));
            }
        }
        Ok(())
    };
    check("x", &tracked, [x, y], false)?;
    check("y", &other, [y, x], true)
}

fn refused(backend: &Backend) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    let matrix = rounded::<f32>(&Sparse::ALL[0].matrix(1));
    let values = vector::<f32>(&matrix.weights, &device);
    let constant = Csr::new(pattern(&matrix), values.clone()).map_err(|e| e.to_string())?;
    let found = pairwise_distances(&constant, None, Metric::Jaccard);
    found.map_err(|e| e.to_string())?.into_data();
    let tracked = constant.with_values(values.require_grad());
    let tracked = tracked.map_err(|e| e.to_string())?;
    let message = expect_panic(|| {
        let _ = pairwise_distances(&tracked, None, Metric::Jaccard);
    })?;
    match message.contains("this distance has no gradient") {
        true => Ok(()),
        false => Err(message),
    }
}
