//! Neighbor graphs as sparse matrices: nearest and within a radius.

use std::cmp::Ordering;

use burn::tensor::DType;
use sparsek::{
    distance::{DistanceError, GraphMode, Metric, NearestNeighbors},
    sparse,
};
use sparsek_tests::{
    backend::Backend,
    oracle::distance,
    runner::{Cases, Outcome, Verdict},
    sparse::{Sparse, rounded, upload},
};

use crate::distance::common::neighbors;

/// A similarity, exact ones, one with NaN, one with infinities, one over the union of columns.
const METRICS: [Metric; 7] = [
    Metric::Dot,
    Metric::Manhattan,
    Metric::Euclidean,
    Metric::Cosine,
    Metric::JensenShannon,
    Metric::Jaccard,
    Metric::Chebyshev,
];

pub fn add(cases: &mut Cases, backend: &Backend) {
    for metric in METRICS {
        let case = |what| format!("tensor/neighbors/{what}/{}", metric.name());
        cases.check(backend, case("radius"), move |b| radius(b, metric));
        cases.check(backend, case("graph"), move |b| graph(b, metric));
        cases.check(backend, case("lists"), move |b| lists(b, metric));
    }
    for (name, body) in [
        ("radius/empty", empty as fn(&Backend) -> Checked),
        ("radius/errors", errors),
        ("radius/long", long),
        ("parts", parts),
    ] {
        cases.check(backend, format!("tensor/neighbors/{name}"), body);
    }
    cases.add(backend, "tensor/neighbors/radius/f64".to_string(), wide);
}

type Checked = Result<(), String>;

type Rows = Vec<Vec<(usize, f64)>>;

fn rows(matrix: &sparse::Csr) -> Rows {
    let values: Vec<f64> = matrix.values().to_data().iter::<f64>().collect();
    let pattern = matrix.pattern();
    let row = |i: usize| {
        let start = pattern.indptr()[i] as usize;
        let columns = pattern.row(i).iter().map(|&j| j as usize);
        columns.zip(values[start..].iter().copied()).collect()
    };
    (0..matrix.rows()).map(row).collect()
}

fn text(error: DistanceError) -> String {
    error.to_string()
}

fn check(metric: Metric, found: &[(usize, f64)], all: &[(usize, f64)], radius: f64) -> Checked {
    let exact = matches!(metric, Metric::Dot | Metric::Manhattan | Metric::Chebyshev);
    let near = |a: f64, b: f64| a == b || (a - b).abs() <= 2e-5 * (1.0 + b.abs().min(a.abs()));
    if !found.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(format!("{metric}: columns of {found:?} do not ascend"));
    }
    let known = |&(j, _): &(usize, f64)| all.iter().any(|&(column, _)| column == j);
    if let Some((j, _)) = found.iter().find(|entry| !known(entry)) {
        return Err(format!("{metric}: row {j} is not a neighbor"));
    }
    for &(j, real) in all {
        let here = found.iter().find(|&&(column, _)| column == j);
        let within =
            !real.is_nan() && distance::order(metric.name(), real, radius) != Ordering::Greater;
        let within = within && !radius.is_nan();
        let excused = !exact && radius.is_finite() && near(real, radius);
        let right = match here {
            Some(&(_, distance)) => (within || excused) && near(distance, real),
            None => !within || excused,
        };
        if !right {
            return Err(format!("{metric}, radius {radius}: row {j} is at {real}, found {here:?}"));
        }
    }
    Ok(())
}

/// Compares with the oracle: the index as its own query, and explicit queries.
fn radius(backend: &Backend, metric: Metric) -> Checked {
    for recipe in [&Sparse::ALL[3], &Sparse::ALL[5]] {
        let index = rounded::<f32>(&recipe.matrix(6));
        let query = rounded::<f32>(&recipe.with_rows(5).matrix(7));
        let uploaded = upload::<f32>(&index, &backend.device);
        let queried = upload::<f32>(&query, &backend.device);
        let fitted = NearestNeighbors::fit(uploaded.clone(), metric);
        let (index, query) = (index.dense(), query.dense());
        let all = |row: &[f64]| distance::distances(metric.name(), metric.p(), row, &index);
        let mut finite: Vec<f64> = all(&query[1]).into_iter().map(|(_, d)| d).collect();
        finite.retain(|d| d.is_finite());
        finite.sort_by(f64::total_cmp);
        let middle = finite.get(finite.len() / 3).copied().unwrap_or(1.0);
        for radius in [0.0, middle, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            for (exclude_self, given, queries) in [
                (true, None, &index),
                (false, Some(&uploaded), &index),
                (false, Some(&queried), &query),
            ] {
                let found = fitted.radius_neighbors(given, radius).map_err(text)?;
                if (found.rows(), found.cols()) != (queries.len(), index.len()) {
                    return Err(format!("{} rows, {} columns", found.rows(), found.cols()));
                }
                for (i, (row, found)) in queries.iter().zip(rows(&found)).enumerate() {
                    let mut all = all(row);
                    all.retain(|&(j, _)| !exclude_self || i != j);
                    check(metric, &found, &all, radius).map_err(|e| format!("query {i}: {e}"))?;
                }
            }
        }
    }
    Ok(())
}

fn graph(backend: &Backend, metric: Metric) -> Checked {
    let recipe = &Sparse::ALL[3];
    let index = upload::<f32>(&recipe.matrix(8), &backend.device);
    let query = upload::<f32>(&recipe.with_rows(7).matrix(9), &backend.device);
    let fitted = NearestNeighbors::fit(index, metric);
    for given in [None, Some(&query)] {
        for k in [0, 1, 5, recipe.rows - 1] {
            let graph = fitted.kneighbors_graph(given, k).map_err(text)?;
            let queries = given.map_or(recipe.rows, sparse::Csr::rows);
            if (graph.rows(), graph.cols(), graph.nnz()) != (queries, recipe.rows, queries * k) {
                return Err(format!("k {k}: {:?}", graph.pattern()));
            }
            if k == 0 {
                continue;
            }
            let (distances, indices) = neighbors(&fitted, given, k)?;
            for (i, found) in rows(&graph).into_iter().enumerate() {
                let pairs = indices[i].iter().copied().zip(distances[i].iter().copied());
                let mut expected: Vec<(usize, f64)> = pairs.collect();
                expected.sort_by_key(|&(j, _)| j);
                if !same(&found, &expected) {
                    return Err(format!("{metric}, k {k}, row {i}: {found:?}, {expected:?}"));
                }
            }
        }
    }
    let everything = match metric {
        Metric::Dot => f64::NEG_INFINITY,
        _ => f64::INFINITY,
    };
    let all = fitted.radius_neighbors(None, everything).map_err(text)?;
    let nearest = fitted.kneighbors_graph(None, recipe.rows - 1).map_err(text)?;
    for (i, (found, mut expected)) in rows(&all).into_iter().zip(rows(&nearest)).enumerate() {
        expected.retain(|(_, distance)| !distance.is_nan());
        if !same(&found, &expected) {
            return Err(format!("{metric}, row {i}: {found:?}, {expected:?}"));
        }
    }
    Ok(())
}

/// Lists have the entries of the graph, in order of the distances if sorted; ones replace them.
fn lists(backend: &Backend, metric: Metric) -> Checked {
    let recipe = &Sparse::ALL[3];
    let index = upload::<f32>(&recipe.matrix(8), &backend.device);
    let query = upload::<f32>(&recipe.with_rows(7).matrix(9), &backend.device);
    let fitted = NearestNeighbors::fit(index, metric);
    for (given, radius) in [(None, 3.0), (Some(&query), 3.0), (Some(&query), f64::INFINITY)] {
        let graph = fitted.radius_neighbors(given, radius).map_err(text)?;
        let expected = rows(&graph);
        for sorted in [false, true] {
            let lists = fitted.radius_neighbors_lists(given, radius, sorted).map_err(text)?;
            if lists.queries() != expected.len() {
                return Err(format!("{} lists", lists.queries()));
            }
            for (query, row) in expected.iter().enumerate() {
                let mut row = row.clone();
                if sorted {
                    row.sort_by(|(_, a), (_, b)| distance::order(metric.name(), *a, *b));
                }
                let indices = lists.indices(query).iter().map(|&j| j as usize);
                let found: Vec<_> = indices.zip(lists.distances(query).iter().copied()).collect();
                if !same(&found, &row) {
                    return Err(format!("{metric}, query {query}: {found:?}, {row:?}"));
                }
            }
        }
        let nearest = fitted.kneighbors_graph(given, 4).map_err(text)?;
        for (distances, [kept, ones]) in [
            (
                nearest,
                [GraphMode::Distance, GraphMode::Connectivity]
                    .map(|mode| fitted.kneighbors_graph_with(given, 4, mode)),
            ),
            (
                graph,
                [GraphMode::Distance, GraphMode::Connectivity]
                    .map(|mode| fitted.radius_neighbors_graph(given, radius, mode)),
            ),
        ] {
            let (kept, ones) = (kept.map_err(text)?, ones.map_err(text)?);
            if [kept.pattern(), ones.pattern()] != [distances.pattern(); 2] {
                return Err(format!("{metric}: another pattern"));
            }
            let expected: Vec<f64> = distances.values().to_data().iter::<f64>().collect();
            let kept: Vec<f64> = kept.values().to_data().iter::<f64>().collect();
            let mut ones = ones.values().to_data().iter::<f64>().collect::<Vec<_>>().into_iter();
            let equal = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
            if !kept.iter().zip(&expected).all(equal) || ones.any(|one| one != 1.0) {
                return Err(format!("{metric}: other values"));
            }
        }
    }
    Ok(())
}

fn same(a: &[(usize, f64)], b: &[(usize, f64)]) -> bool {
    let pairs = a.iter().zip(b);
    let mut equal = pairs.map(|(a, b)| a.0 == b.0 && a.1.to_bits() == b.1.to_bits());
    a.len() == b.len() && equal.all(|equal| equal)
}

/// Partial and batched indices give the bits of the whole.
fn parts(backend: &Backend) -> Checked {
    let index = upload::<f32>(&Sparse::ALL[3].matrix(5), &backend.device);
    for metric in [Metric::Manhattan, Metric::Dot, Metric::Cosine] {
        let whole = NearestNeighbors::fit(index.clone(), metric);
        let near = rows(&whole.radius_neighbors(None, 3.0).map_err(text)?);
        for (batch, part) in [(None, 3..20), (Some(7), 0..40), (Some(1), 38..40)] {
            let cut = match batch {
                Some(rows) => whole.clone().with_query_batch(rows).with_index_batch(13),
                None => whole.clone(),
            };
            let found = cut.radius_neighbors_of(part.clone(), 3.0).map_err(text)?;
            let found = rows(&found);
            let mut pairs = found.iter().zip(&near[part.clone()]);
            if found.len() != part.len() || !pairs.all(|(a, b)| same(a, b)) {
                return Err(format!("{metric}: other rows within a radius in {part:?}"));
            }
            for k in [1, 6, 39] {
                let all = whole.kneighbors(None, k).map_err(text)?;
                let found = cut.kneighbors_of(part.clone(), k).map_err(text)?;
                let expected = all.1.slice([part.clone(), 0..k]).into_data();
                (found.1.into_data() == expected)
                    .then_some(())
                    .ok_or(format!("{metric}, k {k}: other neighbors in {part:?}"))?;
                let expected = all.0.slice([part.clone(), 0..k]).into_data();
                (found.0.into_data().as_bytes() == expected.as_bytes())
                    .then_some(())
                    .ok_or(format!("{metric}, k {k}: other distances in {part:?}"))?;
            }
        }
        let cut = whole.clone().with_index_batch(13);
        for (part, k) in [(4..4, 2), (40..40, 39), (0..3, 0), (2..2, 0)] {
            for index in [&whole, &cut] {
                let found = index.kneighbors_of(part.clone(), k).map_err(text)?;
                if [found.0.dims(), found.1.dims()] != [[part.len(), k]; 2] {
                    return Err(format!("{k} of {part:?}: {:?}", found.0.dims()));
                }
            }
        }
    }
    Ok(())
}

fn empty(backend: &Backend) -> Checked {
    let recipe = &Sparse::ALL[12];
    let none = upload::<f32>(&recipe.matrix(1), &backend.device);
    let some = upload::<f32>(&recipe.with_rows(3).matrix(1), &backend.device);
    let no_columns = upload::<f32>(&Sparse::ALL[13].matrix(1), &backend.device);
    let entries = |index: &sparse::Csr, query| {
        let fitted = NearestNeighbors::fit(index.clone(), Metric::Manhattan);
        let found = fitted.radius_neighbors(query, f64::INFINITY);
        found.map(|found| [found.rows(), found.cols(), found.nnz()])
    };
    for (found, expected) in [
        (entries(&none, None), [0, 0, 0]),
        (entries(&none, Some(&some)), [3, 0, 0]),
        (entries(&some, Some(&none)), [0, 3, 0]),
        (entries(&some, None), [3, 3, 6]),
        (entries(&no_columns, None), [9, 9, 72]),
    ] {
        if found.as_ref() != Ok(&expected) {
            return Err(format!("{found:?} instead of {expected:?}"));
        }
    }
    Ok(())
}

/// More distances than one counting pass handles.
fn long(backend: &Backend) -> Checked {
    let recipe = Sparse::ALL[3].with_rows(9000);
    let index = rounded::<f32>(&recipe.matrix(10));
    let query = rounded::<f32>(&recipe.with_rows(3).matrix(11));
    let fitted = NearestNeighbors::fit(upload::<f32>(&index, &backend.device), Metric::Manhattan);
    let queried = upload::<f32>(&query, &backend.device);
    for radius in [0.0, 5.0, 100.0] {
        let found = fitted.radius_neighbors(Some(&queried), radius);
        let found = rows(&found.map_err(text)?);
        for (row, found) in query.dense().iter().zip(found) {
            let all = distance::distances("manhattan", 0.0, row, &index.dense());
            check(Metric::Manhattan, &found, &all, radius)?;
        }
    }
    Ok(())
}

fn wide(backend: &Backend) -> Outcome {
    if !backend.device.supports_dtype(DType::F64) {
        return Ok(Verdict::Skipped("the device has no f64".into()));
    }
    let index = upload::<f64>(&Sparse::ALL[0].matrix(2), &backend.device);
    let fitted = NearestNeighbors::fit(index, Metric::Manhattan);
    let all = fitted.radius_neighbors(None, 1e300).map_err(text)?;
    let most = rows(&all).concat().into_iter().map(|(_, d)| d);
    let most = most.fold(0.0, f64::max);
    let fewer = fitted.radius_neighbors(None, most.next_down());
    let fewer = fewer.map_err(text)?.nnz();
    match all.dtype() == DType::F64 && all.nnz() == 37 * 36 && fewer < all.nnz() {
        true => Ok(Verdict::Passed),
        false => Err(format!("{} of {:?}, {fewer}", all.nnz(), all.dtype())),
    }
}

fn errors(backend: &Backend) -> Checked {
    let recipe = &Sparse::ALL[3];
    let index = upload::<f32>(&recipe.matrix(1), &backend.device);
    let fitted = NearestNeighbors::fit(index, Metric::Manhattan);
    let rows = recipe.rows;
    for found in [
        fitted.kneighbors_graph(None, rows).map(drop),
        fitted.kneighbors_of(0..2, rows).map(drop),
        fitted.kneighbors_of(0..0, rows).map(drop),
    ] {
        if !matches!(found, Err(DistanceError::Neighbors { exclude_self: true, .. })) {
            return Err(format!("k = n of itself: {found:?}"));
        }
    }
    match fitted.kneighbors_graph(None, usize::MAX) {
        Err(DistanceError::Csr(_)) => {}
        other => return Err(format!("too many entries: {other:?}")),
    }
    let other = upload::<f32>(&Sparse::ALL[0].matrix(1), &backend.device);
    match fitted.radius_neighbors(Some(&other), 1.0) {
        Err(DistanceError::Columns { .. }) => Ok(()),
        other => Err(format!("other columns: {other:?}")),
    }
}
