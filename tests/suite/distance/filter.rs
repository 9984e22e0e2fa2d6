//! Neighbors among allowed rows only.

use sparsek::distance::{DistanceError, Metric, NearestNeighbors, Prefilter};
use sparsek_tests::{
    backend::Backend,
    data::Random,
    oracle::distance,
    runner::Cases,
    sparse::{Sparse, rounded, upload},
};

/// A similarity, exact ones, one with NaN, one with infinities.
const METRICS: [Metric; 5] =
    [Metric::Dot, Metric::Manhattan, Metric::Euclidean, Metric::Cosine, Metric::JensenShannon];

pub fn add(cases: &mut Cases, backend: &Backend) {
    for metric in METRICS {
        for (name, shared) in [("shared", true), ("per-query", false)] {
            let case = format!("tensor/neighbors/filter/{name}/{}", metric.name());
            cases.check(backend, case, move |b| filtered(b, metric, shared));
        }
    }
    cases.check(backend, "tensor/neighbors/filter/errors", errors);
}

/// Filters of few, many and all rows, as functions of query and row.
fn masks([queries, rows]: [usize; 2], shared: bool) -> Vec<Vec<Vec<bool>>> {
    let mut random = Random::new(31);
    let mut mask = |of: usize| -> Vec<Vec<bool>> {
        let mut row = || (0..rows).map(|_| random.below(of) > 0).collect::<Vec<_>>();
        match shared {
            true => vec![row(); queries],
            false => (0..queries).map(|_| row()).collect(),
        }
    };
    vec![mask(2), mask(9), vec![vec![true; rows]; queries]]
}

/// The neighbors are those of the oracle among allowed rows; batches change no bit.
fn filtered(backend: &Backend, metric: Metric, shared: bool) -> Result<(), String> {
    for recipe in [&Sparse::ALL[3], &Sparse::ALL[5]] {
        let index = rounded::<f32>(&recipe.matrix(32));
        let query = rounded::<f32>(&recipe.with_rows(6).matrix(33));
        let uploaded = upload::<f32>(&index, &backend.device);
        let queried = upload::<f32>(&query, &backend.device);
        let fitted = NearestNeighbors::fit(uploaded, metric);
        let (index, query) = (index.dense(), query.dense());
        for (given, rows) in [(None, &index), (Some(&queried), &query)] {
            for mask in masks([rows.len(), index.len()], shared) {
                let filter = match shared {
                    true => Prefilter::shared(&mask[0]),
                    false => Prefilter::per_query([rows.len(), index.len()], |query, row| {
                        mask[query][row]
                    }),
                };
                let allowed = |query: usize, row: usize| {
                    mask[query][row] && (given.is_some() || query != row)
                };
                let fewest = (0..rows.len())
                    .map(|query| (0..index.len()).filter(|&row| allowed(query, row)).count())
                    .min()
                    .unwrap_or(0);
                for k in [1, 5, fewest].into_iter().filter(|&k| k <= fewest) {
                    let mut all = Vec::new();
                    for batch in [None, Some(3)] {
                        let fitted = match batch {
                            Some(rows) => fitted.clone().with_query_batch(rows),
                            None => fitted.clone(),
                        };
                        let found = fitted.kneighbors_filtered(given, k, &filter);
                        let (distances, indices) = found.map_err(|e| e.to_string())?;
                        if [distances.dims(), indices.dims()] != [[rows.len(), k]; 2] {
                            return Err(format!("k {k}: {:?}", distances.dims()));
                        }
                        let distances: Vec<f64> = distances.into_data().iter::<f64>().collect();
                        let indices: Vec<usize> =
                            indices.into_data().iter::<i64>().map(|j| j as usize).collect();
                        check(metric, [rows, &index], &allowed, k, &distances, &indices)
                            .map_err(|e| format!("{metric}, k {k}: {e}"))?;
                        let bits: Vec<u64> = distances.iter().map(|d| d.to_bits()).collect();
                        all.push((bits, indices));
                    }
                    if all[0] != all[1] {
                        return Err(format!("{metric}, k {k}: other neighbors in batches"));
                    }
                }
            }
        }
    }
    Ok(())
}

fn check(
    metric: Metric,
    [rows, index]: [&[Vec<f64>]; 2],
    allowed: &dyn Fn(usize, usize) -> bool,
    k: usize,
    distances: &[f64],
    indices: &[usize],
) -> Result<(), String> {
    let near = |a: f64, b: f64| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 2e-5 * (1.0 + b.abs())
    };
    for (query, row) in rows.iter().enumerate() {
        let all = distance::distances(metric.name(), metric.p(), row, index);
        let mut expected = all.clone();
        expected.retain(|&(row, _)| allowed(query, row));
        expected.sort_by(|a, b| distance::order(metric.name(), a.1, b.1));
        // NaN is first if larger is nearer.
        if distance::is_similarity(metric.name()) {
            expected.sort_by_key(|(_, d)| !d.is_nan());
        }
        let found = query * k..(query + 1) * k;
        let (distances, indices) = (&distances[found.clone()], &indices[found]);
        for (slot, (&distance, &at)) in distances.iter().zip(indices).enumerate() {
            if !allowed(query, at) || indices[..slot].contains(&at) {
                return Err(format!("query {query}: row {at} may not be a neighbor"));
            }
            if !near(distance, all[at].1) || !near(distance, expected[slot].1) {
                let expected = expected[slot];
                return Err(format!("query {query}: {at} at {distance}, not {expected:?}"));
            }
            let tied = slot > 0 && distances[slot - 1] == distance;
            if tied && indices[slot - 1] > at {
                return Err(format!("query {query}: ties out of order at {slot}"));
            }
        }
    }
    Ok(())
}

fn errors(backend: &Backend) -> Result<(), String> {
    let index = upload::<f32>(&Sparse::ALL[3].matrix(1), &backend.device);
    let query = index.slice_rows(0..2);
    let fitted = NearestNeighbors::fit(index, Metric::Manhattan);
    let search = |query, k, filter: &Prefilter| {
        fitted.kneighbors_filtered(query, k, filter).map(|(distances, _)| distances.dims())
    };
    let three: Vec<bool> = (0..40).map(|row| [4, 20, 30].contains(&row)).collect();
    let three = Prefilter::shared(&three);
    let own = Prefilter::per_query([2, 40], |query, row| query == 0 || row == 7);
    let none = Prefilter::shared(&[false; 40]);
    let wrong = |what, found, expected| Err(DistanceError::Filter { what, found, expected });
    let fewer = |k, query, allowed| Err(DistanceError::Allowed { k, query, allowed });
    for (found, expected) in [
        (search(Some(&query), 3, &three), Ok([2, 3])),
        (search(Some(&query), 4, &three), fewer(4, 0, 3)),
        (search(None, 2, &three), Ok([40, 2])),
        (search(None, 3, &three), fewer(3, 4, 2)),
        (search(Some(&query), 1, &own), Ok([2, 1])),
        (search(Some(&query), 2, &own), fewer(2, 1, 1)),
        (search(None, 1, &own), wrong("queries", 2, 40)),
        (search(None, 0, &none), Ok([40, 0])),
        (search(Some(&query), 1, &none), fewer(1, 0, 0)),
        (search(Some(&query.slice_rows(0..0)), 1, &three), Ok([0, 1])),
        (search(Some(&query), 1, &Prefilter::shared(&[true])), wrong("index rows", 1, 40)),
    ] {
        if found != expected {
            return Err(format!("{found:?} instead of {expected:?}"));
        }
    }
    Ok(())
}
