//! Distances of very large and small values: exact where representable, out of range otherwise.

use burn::tensor::{DType, Tensor};
use sparsek::{
    distance::{Measure, Metric, NearestNeighbors, ROUTINES, Routine, pairwise_distances},
    sparse::Csr as Matrix,
};
use sparsek_tests::{
    backend::Backend,
    element::Element,
    oracle::{distance, spmm::Csr},
    runner::{Cases, Outcome, Verdict},
    sparse::{Sparse, pattern, rounded, upload, vector},
};

use crate::distance::{
    common::{distances, neighbors},
    gradients::METRICS,
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    let forced = backend.client.iter().flat_map(|_| ROUTINES.map(Some));
    let metrics = || {
        let all = Metric::ALL.iter().copied();
        all.chain([0.5, 40.0].map(Metric::Minkowski))
    };
    for routine in [None].into_iter().chain(forced) {
        let name = routine.map_or("auto", Routine::name);
        for metric in metrics() {
            let case = format!("tensor/distance/{name}/f32/{metric}-of-magnitudes");
            cases.add(backend, case, move |b| single::<f32>(b, metric, routine, &SINGLES));
        }
    }
    for metric in metrics() {
        let case = |dtype| format!("tensor/distance/auto/{dtype}/{metric}-of-magnitudes");
        cases.add(backend, case("f64"), move |b| double(b, metric));
        cases.add(backend, case("bf16"), move |b| single::<half::bf16>(b, metric, None, &SINGLES));
        cases.add(backend, case("f16"), move |b| {
            single::<half::f16>(b, metric, None, &[[4e3, 4e3], [1e-3, 1e-3], [4e3, 1e-3]])
        });
        let case = format!("tensor/neighbors/magnitudes/{metric}");
        cases.add(backend, case, move |b| nearest(b, metric));
    }
    cases.check(backend, "tensor/distance/gradient/magnitudes", gradients);
}

/// Factors of the rows.
const SINGLES: [[f64; 2]; 9] = [
    [1.0, 1.0],
    [1e20, 1e20],
    [1e-25, 1e-25],
    [1e20, 1e-25],
    [1.0, 1e-25],
    [1e20, 1.0],
    [3e37, 3e37],
    [1e-30, 1e-30],
    [1e3, 1e-3],
];

/// Rows of all kinds: disjoint, equal, nearly equal, parallel, lopsided, zero.
fn rows() -> Csr {
    let dense: [[f64; 6]; 10] = [
        [1.0, 0.0, 2.0, 0.0, 0.0, 0.5],
        [0.0, 3.0, 0.0, 1.5, 0.0, 0.0],
        [1.0, 0.0, 2.0, 0.0, 0.0, 0.5],
        [1.0, 0.0, 2.001, 0.0, 0.0, 0.5],
        [2.0, 0.0, 4.0, 0.0, 0.0, 1.0],
        [0.25, 0.75, 0.5, 1.0, 1.25, 1.5],
        [0.5, 0.75, 0.5, 1.0, 1.0, 1.5],
        [0.0; 6],
        [0.99, 0.01, 0.0, 0.0, 0.0, 0.0],
        [1.0, 1e-7, 0.0, 0.0, 0.0, 0.0],
    ];
    let mut csr = Csr {
        rows: dense.len(),
        cols: 6,
        indptr: vec![0],
        indices: Vec::new(),
        weights: Vec::new(),
    };
    for row in dense {
        for (column, value) in row.into_iter().enumerate().filter(|(_, a)| *a != 0.0) {
            csr.indices.push(column as u32);
            csr.weights.push(value);
        }
        csr.indptr.push(csr.indices.len() as u32);
    }
    csr
}

/// Multiplies pairs of rows by the two factors in turn.
fn multiplied(csr: &Csr, by: [f64; 2]) -> Csr {
    let mut product = csr.clone();
    for row in 0..csr.rows {
        let entries = csr.indptr[row] as usize..csr.indptr[row + 1] as usize;
        product.weights[entries].iter_mut().for_each(|a| *a *= by[row / 2 % 2]);
    }
    product
}

/// Range of a dtype: the greatest value, and the absolute error near zero.
struct Limits {
    greatest: f64,
    lost: f64,
    tolerance: [f64; 2],
}

const OF_SINGLE: Limits =
    Limits { greatest: f32::MAX as f64, lost: 1e-37, tolerance: [1e-5, 2e-6] };
const OF_DOUBLE: Limits = Limits { greatest: f64::MAX, lost: 1e-306, tolerance: [1e-11, 1e-12] };

/// Fails if a distance is neither right nor out of range.
fn compare(
    metric: Metric,
    [found, expected, scale]: [f64; 3],
    limits: &Limits,
) -> Result<(), String> {
    // Overflowing terms may cancel.
    let overflows = metric == Metric::Dot && scale > limits.greatest;
    let right = if expected.is_nan() {
        found.is_nan()
    } else if expected.abs() > limits.greatest {
        found == f64::INFINITY || (overflows && !found.is_finite())
    } else {
        // Compare squares: near 0 the oracle's root loses half of the digits.
        let square = |a: f64| {
            if metric == Metric::Hellinger { a * a } else { a }
        };
        let [found, expected] = [square(found), square(expected)];
        let [relative, of_scale] = limits.tolerance;
        let bound = relative * expected.abs() + of_scale * scale + limits.lost;
        (found - expected).abs() <= bound || (overflows && !found.is_finite())
    };
    match right {
        true => Ok(()),
        false => Err(format!("{found:e} instead of {expected:e}")),
    }
}

/// Whether the oracle's own sums stay in the range of f64.
fn known(metric: Metric, by: [f64; 2]) -> bool {
    match metric {
        Metric::Minkowski(p) => p < 10.0 || by.iter().all(|by| (1e-4..1e4).contains(by)),
        _ => true,
    }
}

fn single<T: Element>(
    backend: &Backend,
    metric: Metric,
    routine: Option<Routine>,
    magnitudes: &[[f64; 2]],
) -> Outcome {
    if !backend.device.supports_dtype(T::dtype()) {
        return Ok(Verdict::Skipped(format!("the device has no {}", T::NAME)));
    }
    let measure = Measure::from(metric).with_routine(routine);
    let known = |by: &&[f64; 2]| known(metric, **by);
    for by in magnitudes.iter().filter(known) {
        let x = rounded::<T>(&multiplied(&rows(), *by));
        let y = rounded::<T>(&multiplied(&rows(), [by[1], by[0]]));
        let found = match distances::<T>(backend, [&x, &y], measure)? {
            Ok(found) => found,
            Err(skipped) => return Ok(skipped),
        };
        let with_itself = upload::<T>(&x, &backend.device);
        let with_itself = pairwise_distances(&with_itself, None, measure).expect("one matrix");
        let with_itself: Vec<f64> = with_itself.into_data().iter::<f64>().collect();
        let (x, y) = (x.dense(), y.dense());
        for (other, found) in [(&y, found), (&x, with_itself)] {
            for (i, a) in x.iter().enumerate() {
                for (j, b) in other.iter().enumerate() {
                    let (name, p) = (metric.name(), metric.p());
                    let expected = distance::distance(name, p, a, b);
                    let scale = distance::scale(name, p, a, b);
                    let found = found[i * other.len() + j];
                    compare(metric, [found, expected, scale], &OF_SINGLE)
                        .map_err(|e| format!("rows {i} and {j} times {by:?}: {e}"))?;
                }
            }
        }
    }
    Ok(Verdict::Passed)
}

/// Exponent of a common factor of both rows in the distance.
fn degree(metric: Metric) -> i32 {
    match metric {
        Metric::Dot | Metric::SqEuclidean => 2,
        Metric::Euclidean
        | Metric::Manhattan
        | Metric::Chebyshev
        | Metric::Minkowski(_)
        | Metric::KullbackLeibler
        | Metric::SymmetricKl => 1,
        _ => 0,
    }
}

/// Powers of two change no digit, so the oracle works on unscaled rows.
fn double(backend: &Backend, metric: Metric) -> Outcome {
    if !backend.device.supports_dtype(DType::F64) {
        return Ok(Verdict::Skipped("the device has no f64".into()));
    }
    let measure = Measure::from(metric);
    let base = rows();
    let dense = base.dense();
    for exponent in [0, 66, -83, 600, -600, 1015, -950] {
        let by = 2f64.powi(exponent);
        let x = multiplied(&base, [by; 2]);
        let found = match distances::<f64>(backend, [&x, &x], measure)? {
            Ok(found) => found,
            Err(skipped) => return Ok(skipped),
        };
        for (i, a) in dense.iter().enumerate() {
            for (j, b) in dense.iter().enumerate() {
                let (name, p) = (metric.name(), metric.p());
                let grown = |distance: f64| (0..degree(metric)).fold(distance, |d, _| d * by);
                let expected = grown(distance::distance(name, p, a, b));
                let scale = grown(distance::scale(name, p, a, b));
                let found = found[i * dense.len() + j];
                compare(metric, [found, expected, scale], &OF_DOUBLE)
                    .map_err(|e| format!("rows {i} and {j} times 2^{exponent}: {e}"))?;
            }
        }
    }
    Ok(Verdict::Passed)
}

fn nearest(backend: &Backend, metric: Metric) -> Outcome {
    for by in SINGLES {
        let rows = rounded::<f32>(&multiplied(&rows(), by));
        let matrix = upload::<f32>(&rows, &backend.device);
        let all = pairwise_distances(&matrix, Some(&matrix), metric).map_err(|e| e.to_string())?;
        let all: Vec<f64> = all.into_data().iter::<f64>().collect();
        let index = NearestNeighbors::fit(matrix.clone(), metric);
        let k = rows.rows - 1;
        let (far, indices) = neighbors(&index, None, k)?;
        let similar = distance::is_similarity(metric.name());
        for (i, row) in all.chunks(rows.rows).enumerate() {
            let mut expected: Vec<usize> = (0..rows.rows).filter(|&j| j != i).collect();
            let order = |a: f64, b: f64| {
                let order = a.partial_cmp(&b);
                order.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            };
            expected.sort_by(|&a, &b| match similar {
                true => order(row[b], row[a]),
                false => order(row[a], row[b]),
            });
            let same = |(&j, &d): (&usize, &f64)| {
                row[j].to_bits() == d.to_bits() || (row[j].is_nan() && d.is_nan())
            };
            if indices[i] != expected || !indices[i].iter().zip(&far[i]).all(same) {
                return Err(format!(
                    "times {by:?}, row {i}: {:?} at {:?} instead of {expected:?} of {row:?}",
                    indices[i], far[i]
                ));
            }
            let Some(radius) = far[i].iter().copied().find(|d| d.is_finite() && *d != 0.0) else {
                continue;
            };
            let near = index.radius_neighbors(None, radius).map_err(|e| e.to_string())?;
            let within = (0..rows.rows).filter(|&j| match similar {
                true => j != i && row[j] >= radius,
                false => j != i && row[j] <= radius,
            });
            let within: Vec<u32> = within.map(|j| j as u32).collect();
            if near.pattern().row(i) != within {
                return Err(format!(
                    "times {by:?}, row {i}, within {radius:e}: {:?} instead of {within:?}",
                    near.pattern().row(i)
                ));
            }
        }
    }
    Ok(Verdict::Passed)
}

fn gradients(backend: &Backend) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    let base = rounded::<f32>(&Sparse::ALL[2].matrix(4));
    for metric in METRICS {
        let of = |by: f64| -> Result<Vec<f64>, String> {
            let csr = multiplied(&base, [by; 2]);
            let values: Tensor<1> = vector::<f32>(&csr.weights, &device).require_grad();
            let x = Matrix::new(pattern(&csr), values.clone()).map_err(|e| e.to_string())?;
            let other = x.slice_rows(0..5);
            let found = pairwise_distances(&x, Some(&other), metric).map_err(|e| e.to_string())?;
            let gradient = values.grad(&found.backward()).expect("it is tracked");
            Ok(gradient.into_data().iter::<f64>().collect())
        };
        let plain = of(1.0)?;
        for exponent in [66, -83] {
            let by = 2f64.powi(exponent);
            let grown = by.powi(degree(metric) - 1);
            for (entry, (found, plain)) in of(by)?.into_iter().zip(&plain).enumerate() {
                let off = (found / grown - plain).abs();
                if off.is_nan() || off > 1e-4 * (1.0 + plain.abs()) {
                    return Err(format!(
                        "{metric} times 2^{exponent}, entry {entry}: {found:e} instead of {:e}",
                        plain * grown
                    ));
                }
            }
        }
    }
    Ok(())
}
