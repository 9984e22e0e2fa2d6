//! Predictions from neighbors, against the oracle and scikit-learn's numbers.

use burn::tensor::{Tensor, TensorData};
use sparsek::{
    distance::{
        DistanceError, KNeighborsClassifier, KNeighborsRegressor, Metric, NearestNeighbors, Weights,
    },
    sparse::Csr,
};
use sparsek_tests::{
    backend::Backend,
    data::normals,
    oracle::{distance, predict},
    runner::Cases,
    sparse::{Sparse, rounded, upload, vector},
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    cases.check(backend, "tensor/neighbors/predict/sklearn", sklearn);
    for metric in [Metric::Manhattan, Metric::Chebyshev] {
        let case = format!("tensor/neighbors/predict/{}", metric.name());
        cases.check(backend, case, move |b| of_metric(b, metric));
    }
    cases.check(backend, "tensor/neighbors/predict/edges", edges);
    cases.check(backend, "tensor/neighbors/predict/errors", errors);
}

const WEIGHTS: [Weights; 2] = [Weights::Uniform, Weights::Distance];

fn near(what: &str, found: Tensor<2>, expected: &[f64]) -> Result<(), String> {
    let found: Vec<f64> = found.into_data().iter::<f64>().collect();
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * (1.0 + b.abs());
    match found.len() == expected.len() && found.iter().zip(expected).all(close) {
        true => Ok(()),
        false => Err(format!("{what}: {found:?} instead of {expected:?}")),
    }
}

fn text(error: DistanceError) -> String {
    error.to_string()
}

/// A row of `sklearn`: k, weights, classes, those of the index itself, shares, means.
type Expected = (usize, Weights, [i64; 4], [i64; 8], [f64; 12], [f64; 8]);

/// scikit-learn 1.9, `algorithm="brute", metric="manhattan"`; no two distances of a query are
/// equal. `c.predict(Q)`, `c.predict(None)`, `c.predict_proba(Q)`, `r.predict(Q)`.
fn sklearn(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    let x = [
        [-1.125, 1.875, -1.75],
        [1.625, -2.0, 0.0],
        [-1.0, 1.875, 0.0],
        [-1.625, 0.0, 1.875],
        [0.25, -1.75, 0.0],
        [0.0, -0.625, 0.375],
        [0.0, 0.75, -1.5],
        [1.375, -0.25, 0.0],
    ];
    let q = [[-1.0, 1.875, 0.0], [0.0, 1.75, 0.375], [1.625, 0.75, 1.25], [0.0, -0.5, -1.375]];
    let labels = [4, -1, 4, 9, -1, 4, 9, -1];
    let targets = [
        [1.0, 2.0],
        [3.0, 5.0],
        [-4.0, 0.0],
        [8.0, 1.0],
        [0.5, 0.25],
        [6.0, 6.0],
        [2.0, -7.0],
        [0.0, 1.0],
    ];
    let expected: [Expected; 4] = [
        (
            1,
            Weights::Uniform,
            [4, 4, -1, 9],
            [4, -1, 4, 4, -1, -1, 4, -1],
            [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
            [-4.0, 0.0, -4.0, 0.0, 0.0, 1.0, 2.0, -7.0],
        ),
        (
            4,
            Weights::Uniform,
            [4, 4, -1, -1],
            [4, -1, 4, -1, -1, -1, 4, -1],
            [0.0, 0.75, 0.25, 0.0, 0.75, 0.25, 0.5, 0.25, 0.25, 0.5, 0.25, 0.25],
            [1.25, 0.25, 1.25, 0.25, 2.75, 1.25, 2.125, 0.0625],
        ),
        (
            3,
            Weights::Distance,
            [4, 4, -1, 9],
            [4, -1, 4, 4, -1, -1, 4, -1],
            [
                0.0,
                1.0,
                0.0,
                0.0,
                0.7577045696068012,
                0.24229543039319876,
                0.7158081705150977,
                0.2841918294849023,
                0.0,
                0.2162516382699869,
                0.3315858453473133,
                0.4521625163826999,
            ],
            [
                -4.0,
                0.0,
                0.3868225292242296,
                0.06376195536663104,
                2.5310834813499112,
                3.5222024866785078,
                3.001965923984272,
                -1.1215596330275228,
            ],
        ),
        (
            5,
            Weights::Distance,
            [4, 4, -1, 4],
            [4, -1, 4, 4, -1, -1, 4, -1],
            [
                0.0,
                1.0,
                0.0,
                0.1334328510118573,
                0.6925242998422418,
                0.17404284914590085,
                0.48046639446513323,
                0.19075588862139284,
                0.32877771691347396,
                0.3096418456021854,
                0.35975409487671894,
                0.3306040595210955,
            ],
            [
                -4.0,
                0.0,
                0.42611660531627965,
                0.4757510474801105,
                3.3154100745255275,
                1.341316786426135,
                2.3122345913237683,
                -0.4338927121047607,
            ],
        ),
    ];
    let dense = |data: Vec<f64>, cols: usize| {
        let rows = data.len() / cols;
        Csr::from_dense(vector::<f32>(&data, device).reshape([rows, cols]))
    };
    let index = dense(x.concat(), 3).map_err(|e| e.to_string())?;
    let query = dense(q.concat(), 3).map_err(|e| e.to_string())?;
    let index = NearestNeighbors::fit(index, Metric::Manhattan);
    let targets = vector::<f32>(&targets.concat(), device).reshape([8, 2]);
    for (k, weights, classes, own, shares, means) in expected {
        let classifier = KNeighborsClassifier::fit(index.clone(), &labels).map_err(text)?;
        let classifier = classifier.with_k(k).with_weights(weights);
        let found = classifier.predict(Some(&query)).map_err(text)?;
        let found_own = classifier.predict(None).map_err(text)?;
        if found != classes || found_own != own || classifier.classes() != [-1, 4, 9] {
            return Err(format!("k {k}, {weights:?}: {found:?}, {found_own:?}"));
        }
        let found = classifier.predict_proba(Some(&query)).map_err(text)?;
        near(&format!("k {k}, {weights:?}: shares"), found, &shares)?;
        let regressor = KNeighborsRegressor::fit(index.clone(), targets.clone()).map_err(text)?;
        let regressor = regressor.with_k(k).with_weights(weights);
        let found = regressor.predict(Some(&query)).map_err(text)?;
        near(&format!("k {k}, {weights:?}: means"), found, &means)?;
    }
    Ok(())
}

/// Many ties: of equally near rows, the lowest vote.
fn of_metric(backend: &Backend, metric: Metric) -> Result<(), String> {
    let recipe = &Sparse::ALL[3];
    let index = rounded::<f32>(&recipe.matrix(61));
    let query = rounded::<f32>(&recipe.with_rows(9).matrix(62));
    let labels: Vec<i64> =
        (0..recipe.rows as i64).map(|row| [10, -3, 7][row as usize % 3]).collect();
    let targets: Vec<Vec<f64>> =
        normals(2 * recipe.rows, 63).chunks(2).map(<[_]>::to_vec).collect();
    let fitted = NearestNeighbors::fit(upload::<f32>(&index, &backend.device), metric);
    let queried = upload::<f32>(&query, &backend.device);
    let targets_on_device = vector::<f32>(&targets.concat(), &backend.device);
    let targets_on_device = targets_on_device.reshape([recipe.rows, 2]);
    let (index, query) = (index.dense(), query.dense());
    for (given, rows) in [(None, &index), (Some(&queried), &query)] {
        for (k, weights) in [1, 2, 7, 39].into_iter().flat_map(|k| WEIGHTS.map(|w| (k, w))) {
            let by_distance = weights == Weights::Distance;
            let neighbors: Vec<_> = (rows.iter().enumerate())
                .map(|(i, row)| {
                    let excluded = given.is_none().then_some(i);
                    distance::nearest(metric.name(), metric.p(), row, &index, k, excluded)
                })
                .collect();
            let shares: Vec<Vec<f64>> =
                neighbors.iter().map(|n| predict::shares(n, &labels, by_distance)).collect();
            let classifier = KNeighborsClassifier::fit(fitted.clone(), &labels).map_err(text)?;
            let classifier = classifier.with_k(k).with_weights(weights);
            let what = format!("{metric}, k {k}, {weights:?}");
            near(&what, classifier.predict_proba(given).map_err(text)?, &shares.concat())?;
            for (row, class) in classifier.predict(given).map_err(text)?.into_iter().enumerate() {
                let at = [-3, 7, 10].iter().position(|&known| known == class);
                let share = at.map(|at| shares[row][at]).ok_or(format!("class {class}"))?;
                let most = shares[row].iter().copied().fold(0.0, f64::max);
                let first = shares[row].iter().position(|&share| share == most);
                // Rounding may decide between sums of 1 / distance.
                if (share - most).abs() > 1e-9 || (!by_distance && at != first) {
                    return Err(format!("{what}, row {row}: class {class} of {:?}", shares[row]));
                }
            }
            let means: Vec<f64> =
                (neighbors.iter()).flat_map(|n| predict::means(n, &targets, by_distance)).collect();
            let regressor = KNeighborsRegressor::fit(fitted.clone(), targets_on_device.clone());
            let regressor = regressor.map_err(text)?.with_k(k).with_weights(weights);
            near(&what, regressor.predict(given).map_err(text)?, &means)?;
        }
    }
    Ok(())
}

/// Infinite and NaN distances count nothing; without any count there is no mean.
fn edges(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    // Jensen-Shannon is infinite for empty rows, cosine NaN.
    let x = vector::<f32>(&[1.0, 2.0, 0.0, 0.0, 2.0, 1.0], device).reshape([3, 2]);
    let index = Csr::from_dense(x).map_err(|e| e.to_string())?;
    let empty = index.slice_rows(1..2);
    let targets = || vector::<f32>(&[1.0, 5.0, 2.0], device).reshape([3, 1]);
    for metric in [Metric::JensenShannon, Metric::Cosine] {
        let fitted = NearestNeighbors::fit(index.clone(), metric);
        let classifier = KNeighborsClassifier::fit(fitted.clone(), &[8, 1, 8]).map_err(text)?;
        let classifier = classifier.with_k(3).with_weights(Weights::Distance);
        let shares = classifier.predict_proba(Some(&index)).map_err(text)?;
        near(&format!("{metric}: shares"), shares, &[0.0, 1.0, 0.0, 0.0, 0.0, 1.0])?;
        let found = classifier.predict(Some(&empty)).map_err(text)?;
        if found != [1] {
            return Err(format!("{metric}: the least class is not {found:?}"));
        }
        let regressor = KNeighborsRegressor::fit(fitted, targets()).map_err(text)?;
        let regressor = regressor.with_k(3).with_weights(Weights::Distance);
        let means = regressor.predict(Some(&empty)).map_err(text)?.into_data();
        if !means.iter::<f64>().all(f64::is_nan) {
            return Err(format!("{metric}: mean {means:?}"));
        }
    }
    Ok(())
}

fn errors(backend: &Backend) -> Result<(), String> {
    let index = upload::<f32>(&Sparse::ALL[3].matrix(1), &backend.device);
    let fitted = NearestNeighbors::fit(index.clone(), Metric::Dot);
    let labels = [1; 40];
    let classifier = || KNeighborsClassifier::fit(fitted.clone(), &labels).map_err(text);
    let targets = TensorData::new(vec![0f32; 39], [39, 1]);
    let targets = Tensor::<2>::from_data(targets, &backend.device);
    let by_distance = classifier()?.with_weights(Weights::Distance);
    let count = |what, found| DistanceError::Count { what, found, expected: 40 };
    for (found, expected) in [
        (KNeighborsClassifier::fit(fitted.clone(), &[1; 41]).map(drop), count("labels", 41)),
        (KNeighborsRegressor::fit(fitted.clone(), targets).map(drop), count("rows of targets", 39)),
        (by_distance.predict(None).map(drop), DistanceError::Similarity),
        (classifier()?.with_k(0).predict(None).map(drop), DistanceError::NoNeighbors),
        (
            classifier()?.with_k(40).predict(None).map(drop),
            DistanceError::Neighbors { k: 40, rows: 40, exclude_self: true },
        ),
    ] {
        if found != Err(expected.clone()) {
            return Err(format!("{found:?} instead of {expected:?}"));
        }
    }
    match classifier()?.predict(Some(&index)).map_err(text)? == [1; 40] {
        true => Ok(()),
        false => Err("another class than the only one".into()),
    }
}
