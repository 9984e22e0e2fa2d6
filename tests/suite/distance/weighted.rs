//! Weights of columns by scaling, against weighted sums.

use sparsek::distance::{DistanceError, Metric, pairwise_distances, weighted};
use sparsek_tests::{
    backend::Backend,
    oracle::distance,
    runner::Cases,
    sparse::{Sparse, rounded, upload},
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    let half = Metric::Minkowski(1.5);
    for metric in Metric::ALL.iter().copied().chain([half]) {
        let case = format!("tensor/distance/weighted/{metric}");
        cases.check(backend, case, move |b| of_metric(b, metric));
    }
    cases.check(backend, "tensor/distance/weighted/standardized", standardized);
    cases.check(backend, "tensor/distance/weighted/errors", errors);
}

/// Powers of four and others, and a weight of 0.
fn weights(cols: usize) -> Vec<f64> {
    (0..cols).map(|j| [1.0, 0.25, 3.0, 0.0, 2.5, 16.0][j % 6]).collect()
}

fn compare(what: &str, found: &[f64], expected: impl Iterator<Item = f64>) -> Result<(), String> {
    for (pair, (&found, expected)) in found.iter().zip(expected).enumerate() {
        let near = (found - expected).abs() <= 2e-5 * (1.0 + expected.abs());
        if !near && found != expected && !(found.is_nan() && expected.is_nan()) {
            return Err(format!("{what}: pair {pair} at {found} instead of {expected}"));
        }
    }
    Ok(())
}

fn of_metric(backend: &Backend, metric: Metric) -> Result<(), String> {
    for recipe in [&Sparse::ALL[2], &Sparse::ALL[3], &Sparse::ALL[5]] {
        let x = rounded::<f32>(&recipe.with_rows(6).matrix(51));
        let y = rounded::<f32>(&recipe.matrix(52));
        let w = weights(recipe.cols);
        let [on_x, on_y] = [&x, &y].map(|host| upload::<f32>(host, &backend.device));
        let scaled = [weighted(&on_x, metric, &w), weighted(&on_y, metric, &w)];
        let known = distance::weighted(metric.name(), metric.p(), &[], &[], &[]).is_some();
        let [x_scaled, y_scaled] = match (scaled, known) {
            ([Ok(x), Ok(y)], true) => [x, y],
            ([Err(DistanceError::Weights { metric: named }), _], false) if named == metric => {
                return Ok(());
            }
            (other, _) => return Err(format!("{metric}: {other:?}")),
        };
        let dense = weighted(&on_x.to_dense(), metric, &w).map_err(|e| e.to_string())?;
        let [dense, sparse] = [dense, x_scaled.to_dense()].map(|rows| rows.into_data());
        if dense != sparse {
            return Err(format!("{metric}: dense rows are scaled otherwise"));
        }
        let found = pairwise_distances(&x_scaled, Some(&y_scaled), metric);
        let found = found.map_err(|e| e.to_string())?.into_data();
        let found: Vec<f64> = found.iter::<f64>().collect();
        let (x, y) = (x.dense(), y.dense());
        let pairs = x.iter().flat_map(|x| y.iter().map(move |y| (x, y)));
        let expected = pairs.map(|(x, y)| {
            distance::weighted(metric.name(), metric.p(), &w, x, y).expect("a known metric")
        });
        compare(&metric.to_string(), &found, expected)?;
    }
    Ok(())
}

/// `cdist(x, x, "seuclidean", V=numpy.var(x, axis=0, ddof=1))`: Σ (a − b)² / V, its root.
fn standardized(backend: &Backend) -> Result<(), String> {
    let host = rounded::<f32>(&Sparse::ALL[1].matrix(53));
    let x = upload::<f32>(&host, &backend.device);
    let variances: Vec<f64> = x.col_variances(1).into_data().iter::<f64>().collect();
    let w: Vec<f64> = variances.iter().map(|v| 1.0 / v).collect();
    let scaled = weighted(&x, Metric::Euclidean, &w).map_err(|e| e.to_string())?;
    let found = pairwise_distances(&scaled, None, Metric::Euclidean);
    let found = found.map_err(|e| e.to_string())?.into_data();
    let found: Vec<f64> = found.iter::<f64>().collect();
    let dense = host.dense();
    let variance = |j: usize| {
        let n = dense.len() as f64;
        let mean = dense.iter().map(|row| row[j]).sum::<f64>() / n;
        dense.iter().map(|row| (row[j] - mean).powi(2)).sum::<f64>() / (n - 1.0)
    };
    let variances: Vec<f64> = (0..host.cols).map(variance).collect();
    let pairs = dense.iter().flat_map(|x| dense.iter().map(move |y| (x, y)));
    let expected = pairs.map(|(x, y)| {
        let terms = x.iter().zip(y).zip(&variances).map(|((a, b), v)| (a - b).powi(2) / v);
        terms.sum::<f64>().sqrt()
    });
    compare("seuclidean", &found, expected)
}

fn errors(backend: &Backend) -> Result<(), String> {
    let x = upload::<f32>(&Sparse::ALL[3].matrix(1), &backend.device);
    let with = |column: usize, weight: f64| {
        let mut w = vec![1.0; 12];
        w[column] = weight;
        weighted(&x, Metric::Manhattan, &w).map(drop)
    };
    let of = |metric| weighted(&x, metric, &[1.0; 12]).map(drop);
    for (found, expected) in [
        (with(3, -1.0), DistanceError::Negative { column: 3, weight: -1.0 }),
        (of(Metric::Canberra), DistanceError::Weights { metric: Metric::Canberra }),
        (of(Metric::Minkowski(0.0)), DistanceError::Parameter { p: 0.0 }),
        (
            weighted(&x, Metric::Manhattan, &[1.0; 11]).map(drop),
            DistanceError::Count { what: "weights", found: 11, expected: 12 },
        ),
    ] {
        if found != Err(expected.clone()) {
            return Err(format!("{found:?} instead of {expected:?}"));
        }
    }
    match with(11, f64::NAN) {
        Err(DistanceError::Negative { column: 11, .. }) => Ok(()),
        other => Err(format!("NaN: {other:?}")),
    }
}
