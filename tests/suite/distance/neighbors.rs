//! Nearest neighbors among the rows of sparse matrices.

use sparsek::{
    distance::{DistanceError, Measure, Metric, NearestNeighbors},
    sparse,
};
use sparsek_tests::{
    backend::Backend,
    oracle::{distance, spmm::Csr},
    runner::Cases,
    sparse::{Sparse, counts, near_duplicates, rounded, upload},
};

use crate::distance::common::{Found, neighbors, same_bits, spread};

pub fn add(cases: &mut Cases, backend: &Backend) {
    for &metric in Metric::ALL {
        let case = format!("tensor/neighbors/{}", metric.name());
        cases.check(backend, case, move |b| of_metric(b, metric));
    }
    cases.check(backend, "tensor/neighbors/many", many);
    cases.check(backend, "tensor/neighbors/batches", batches);
    let case = "tensor/neighbors/batches-of-long-rows";
    cases.check(backend, case, batches_of_long_rows);
    cases.check(backend, "tensor/neighbors/copies", copies);
    cases.check(backend, "tensor/neighbors/near-duplicates", duplicates);
    for cols in [30_000_000, sparse::MAX_ENTRIES] {
        let case = format!("tensor/neighbors/{cols}-columns");
        cases.check(backend, case, move |b| columns(b, cols));
    }
    cases.check(backend, "tensor/neighbors/errors", errors);
}

/// Compares neighbors with the oracle, up to distances that rounding cannot order.
fn check(
    metric: Metric,
    (distances, indices): &Found,
    [query, index]: [&[Vec<f64>]; 2],
    k: usize,
    exclude_self: bool,
) -> Result<(), String> {
    for (i, row) in query.iter().enumerate() {
        let excluded = exclude_self.then_some(i);
        let (name, p) = (metric.name(), metric.p());
        let all = distance::distances(name, p, row, index);
        let expected = distance::nearest(name, p, row, index, k, excluded);
        let mut seen = indices[i].clone();
        seen.sort_unstable();
        seen.dedup();
        if seen.len() != k || seen.iter().any(|&j| j >= index.len() || Some(j) == excluded) {
            return Err(format!("{metric}, row {i}: neighbors {:?}", indices[i]));
        }
        for (slot, &(j, nearest)) in expected.iter().enumerate() {
            let at = indices[i][slot];
            let (found, real) = (distances[i][slot], all[at].1);
            let of_scale = 4e-6 * distance::scale(name, p, row, &index[at]);
            let near = |a: f64, b: f64| {
                a == b
                    || (a.is_nan() && b.is_nan())
                    || (a - b).abs() <= of_scale + 2e-5 * (1.0 + b.abs())
            };
            if !near(found, real) || !near(real, nearest) {
                return Err(format!(
                    "{metric}, row {i}, neighbor {slot}: row {at} at {found} (exact: {real}) \
                     instead of {j} at {nearest}"
                ));
            }
            // Exact ties are sorted by index.
            let tied = slot > 0 && distances[i][slot - 1] == found;
            if tied && indices[i][slot - 1] > at {
                return Err(format!("{metric}, row {i}: ties out of order at {slot}"));
            }
        }
    }
    Ok(())
}

/// Compares the neighbors of `query`'s rows among `index`'s with the oracle.
pub fn same(
    backend: &Backend,
    measure: Measure,
    metric: Metric,
    [query, index]: [&Csr; 2],
    k: usize,
) -> Result<(), String> {
    let fitted = NearestNeighbors::fit(upload::<f32>(index, &backend.device), measure);
    let queried = upload::<f32>(query, &backend.device);
    let found = neighbors(&fitted, Some(&queried), k)?;
    check(metric, &found, [&query.dense(), &index.dense()], k, false)
}

fn of_metric(backend: &Backend, metric: Metric) -> Result<(), String> {
    let positive = &Sparse::ALL[2];
    let counts = &Sparse::ALL[3];
    for recipe in [positive, counts] {
        let index = rounded::<f32>(&recipe.matrix(3));
        let other = Sparse { rows: 7, ..*recipe };
        let query = rounded::<f32>(&other.matrix(4));
        let uploaded = upload::<f32>(&index, &backend.device);
        let queried = upload::<f32>(&query, &backend.device);
        let fitted = NearestNeighbors::fit(uploaded, metric);
        let (index, query) = (index.dense(), query.dense());
        for k in [1, 5, index.len() - 1] {
            let found = neighbors(&fitted, None, k)?;
            check(metric, &found, [&index, &index], k, true)?;
            let found = neighbors(&fitted, Some(&queried), k)?;
            check(metric, &found, [&query, &index], k, false)?;
        }
    }
    Ok(())
}

fn many(backend: &Backend) -> Result<(), String> {
    let recipe = Sparse::ALL[3].with_rows(150);
    let index = rounded::<f32>(&recipe.matrix(6));
    let fitted = NearestNeighbors::fit(upload::<f32>(&index, &backend.device), Metric::Manhattan);
    let index = index.dense();
    for k in [64, 65, 149] {
        let found = neighbors(&fitted, None, k)?;
        check(Metric::Manhattan, &found, [&index, &index], k, true)?;
    }
    Ok(())
}

/// Batch sizes do not change bits, even if the last batch is smaller than k.
fn batches(backend: &Backend) -> Result<(), String> {
    in_batches(backend, &Sparse::ALL[3].matrix(5), &[1, 6, 39])
}

/// The same with long rows, which are summed in parts.
fn batches_of_long_rows(backend: &Backend) -> Result<(), String> {
    let one_of = |row: usize| {
        if row.is_multiple_of(8) { 1 + row / 3 } else { 100 }
    };
    let rows = counts(3000, &(0..40).map(one_of).collect::<Vec<_>>(), 21);
    in_batches(backend, &rows, &[39])
}

fn in_batches(backend: &Backend, rows: &Csr, counts: &[usize]) -> Result<(), String> {
    let index = upload::<f32>(rows, &backend.device);
    for metric in [Metric::Manhattan, Metric::Dot, Metric::Cosine, Metric::BrayCurtis] {
        let whole = NearestNeighbors::fit(index.clone(), metric);
        for &k in counts {
            let expected = neighbors(&whole, None, k)?;
            for (query, part) in [(1, 40), (7, 13), (40, 7), (3, 1)] {
                let cut = whole.clone().with_query_batch(query).with_index_batch(part);
                let found = neighbors(&cut, None, k)?;
                if !same_bits(&found, &expected) {
                    return Err(format!(
                        "{metric}, k {k}, batches of {query} and {part}: other neighbors"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// A copy of the index as queries, which halves the work on hosts, gives the bits of batches.
fn copies(backend: &Backend) -> Result<(), String> {
    for recipe in [&Sparse::ALL[2], &Sparse::ALL[3]] {
        let rows = recipe.matrix(9);
        let copy = upload::<f32>(&rows, &backend.device);
        for &metric in Metric::ALL {
            let fitted = NearestNeighbors::fit(upload::<f32>(&rows, &backend.device), metric);
            let found = neighbors(&fitted, Some(&copy), 5)?;
            let expected = neighbors(&fitted.with_query_batch(7), Some(&copy), 5)?;
            if !same_bits(&found, &expected) {
                return Err(format!("{metric}: other neighbors of a copy"));
            }
        }
    }
    Ok(())
}

/// More columns than a dense index could hold; neighbors equal those with only the used columns.
fn columns(backend: &Backend, cols: usize) -> Result<(), String> {
    let narrow = rounded::<f32>(&Sparse::ALL[0].with_rows(1500).matrix(6));
    let wide = spread(&narrow, cols);
    for metric in [Metric::Manhattan, Metric::Dot] {
        let fit = |csr: &Csr| NearestNeighbors::fit(upload::<f32>(csr, &backend.device), metric);
        let (narrow, wide) = (fit(&narrow), fit(&wide));
        let query = narrow.index().slice_rows(0..3);
        let columns = wide.index().slice_rows(0..3);
        for k in [4, 1100] {
            if neighbors(&narrow, Some(&query), k)? != neighbors(&wide, Some(&columns), k)? {
                return Err(format!("{metric}, k {k}: other neighbors"));
            }
        }
        if neighbors(&narrow, None, 3)? != neighbors(&wide, None, 3)? {
            return Err(format!("{metric}: other neighbors among others"));
        }
    }
    Ok(())
}

fn duplicates(backend: &Backend) -> Result<(), String> {
    let close = near_duplicates(30, 60, 11);
    let index = upload::<f32>(&close, &backend.device);
    let dense = close.dense();
    for metric in [Metric::Euclidean, Metric::Manhattan, Metric::Cosine] {
        let found = neighbors(&NearestNeighbors::fit(index.clone(), metric), None, 5)?;
        for (i, row) in dense.iter().enumerate() {
            let all = distance::distances(metric.name(), metric.p(), row, &dense);
            let expected = distance::nearest(metric.name(), metric.p(), row, &dense, 5, Some(i));
            for (slot, &(_, nearest)) in expected.iter().enumerate() {
                let real = all[found.1[i][slot]].1;
                if (real - nearest).abs() > 1e-3 * nearest.abs() {
                    return Err(format!(
                        "{metric}, row {i}, neighbor {slot}: at {real} instead of {nearest}"
                    ));
                }
            }
        }
    }
    Ok(())
}

fn errors(backend: &Backend) -> Result<(), String> {
    let recipe = &Sparse::ALL[3];
    let index = upload::<f32>(&recipe.matrix(1), &backend.device);
    let fitted = NearestNeighbors::fit(index.clone(), Metric::Manhattan);
    let rows = recipe.rows;
    match fitted.kneighbors(None, rows) {
        Err(DistanceError::Neighbors { exclude_self: true, .. }) => {}
        other => return Err(format!("k = n of itself: {:?}", other.map(|_| ()))),
    }
    match fitted.kneighbors(Some(&index), rows + 1) {
        Err(DistanceError::Neighbors { exclude_self: false, .. }) => Ok(()),
        other => Err(format!("k > n: {:?}", other.map(|_| ()))),
    }
}
