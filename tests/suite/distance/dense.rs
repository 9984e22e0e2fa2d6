//! Nearest neighbors among dense rows.

use std::cmp::Ordering;

use burn::tensor::{DType, Tensor, TensorData};
use sparsek::{
    distance::{
        AnySamples, DistanceError, KNeighborsClassifier, KNeighborsRegressor, Metric,
        NearestNeighbors, NeighborStream, Prefilter, ShardedNeighbors, pairwise_distances,
    },
    sparse::Csr,
};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::Random,
    element::Element,
    oracle::distance,
    runner::{Cases, Outcome, Verdict},
};

use crate::distance::common::{Found, found, neighbors, same_bits};

/// Those of the fast path.
const METRICS: [Metric; 5] =
    [Metric::Euclidean, Metric::SqEuclidean, Metric::Cosine, Metric::Correlation, Metric::Dot];

pub type Rows = Vec<Vec<f64>>;
type Checked = Result<(), String>;

pub fn add(cases: &mut Cases, backend: &Backend) {
    for metric in [Metric::Manhattan, Metric::Euclidean, Metric::Cosine] {
        let case = format!("tensor/neighbors/mixed/{}", metric.name());
        cases.check(backend, case, move |b| mixed(b, metric));
    }
    let on_cpu = ["euclidean/f32", "errors"];
    let mut add = |name: String, body: fn(&Backend, Metric) -> Outcome, metric: Metric| {
        let tuned = backend.kind == Kind::Cpu && !on_cpu.contains(&name.as_str());
        let tuned = tuned
            .then(|| String::from("Burn tunes a product for a minute on CubeCL's CPU runtime"));
        let case = format!("tensor/neighbors/dense/{name}");
        // Burn's products and reductions use shared memory.
        cases.add(backend, case, move |b| match tuned.or(b.shared_memory_defect()) {
            Some(reason) => Ok(Verdict::Skipped(reason)),
            None => body(b, metric),
        });
    };
    for metric in METRICS {
        let case = |what: &str| format!("{}/{what}", metric.name());
        add(case("f32"), of_metric::<f32>, metric);
        add(case("f64"), of_metric::<f64>, metric);
        add(case("f16"), of_metric::<half::f16>, metric);
        add(case("bf16"), of_metric::<half::bf16>, metric);
        add(case("shapes"), |b, metric| passed(shapes(b, metric)), metric);
        add(case("special"), |b, metric| passed(special(b, metric)), metric);
        add(case("many"), |b, metric| passed(many(b, metric)), metric);
        add(case("batches"), |b, metric| passed(batches(b, metric)), metric);
        add(case("like-sparse"), |b, metric| passed(like_sparse(b, metric)), metric);
    }
    for metric in [Metric::Euclidean, Metric::SqEuclidean, Metric::Dot] {
        let case = format!("{}/ties", metric.name());
        add(case, |b, metric| passed(ties(b, metric)), metric);
    }
    let any = Metric::Euclidean;
    add("any-samples".into(), |b, metric| passed(any_samples(b, metric)), any);
    add("offset".into(), |b, _| passed(offset(b)), any);
    add("magnitudes".into(), |b, _| passed(magnitudes(b)), any);
    add("random".into(), |b, _| passed(random(b)), any);
    add("others".into(), |b, _| passed(others(b)), any);
    add("gradient".into(), |b, _| passed(gradient(b)), any);
    add("errors".into(), |b, _| passed(errors(b)), any);
}

fn passed(checked: Checked) -> Outcome {
    checked.map(|()| Verdict::Passed)
}

pub fn upload<T: Element>(rows: &Rows, cols: usize, backend: &Backend) -> Tensor<2> {
    let data: Vec<T> = rows.iter().flatten().map(|&x| T::of(x)).collect();
    let data = TensorData::new(data, [rows.len(), cols]);
    Tensor::from_data(data, (&backend.device, T::dtype()))
}

fn rounded<T: Element>(rows: Rows) -> Rows {
    let row = |row: Vec<f64>| row.into_iter().map(|x| T::of(x).wide_f64()).collect();
    rows.into_iter().map(row).collect()
}

pub fn normals<T: Element>([rows, cols]: [usize; 2], seed: u64) -> Rows {
    let mut random = Random::new(seed);
    rounded::<T>((0..rows).map(|_| (0..cols).map(|_| random.normal()).collect()).collect())
}

/// Tolerances: relative to the distance, and to the scale of the rows.
fn tolerance(metric: Metric, double: bool) -> [f64; 2] {
    let [relative, of_scale] = if double { [1e-11, 1e-12] } else { [1e-5, 2e-6] };
    match metric {
        // Differences do not cancel.
        Metric::Euclidean | Metric::SqEuclidean => [relative, 0.0],
        _ => [relative, of_scale],
    }
}

/// Compares neighbors with the oracle, up to distances within the tolerance.
fn check(
    metric: Metric,
    (distances, indices): &Found,
    [query, index]: [&Rows; 2],
    (k, exclude_self): (usize, bool),
    [relative, of_scale]: [f64; 2],
) -> Checked {
    if distances.len() != query.len() && k > 0 {
        return Err(format!("{metric}: {} rows", distances.len()));
    }
    let queries = if k > 0 { &query[..] } else { &[] };
    for (i, row) in queries.iter().enumerate() {
        let excluded = exclude_self.then_some(i);
        let (name, p) = (metric.name(), metric.p());
        let all = distance::distances(name, p, row, index);
        let mut expected = all.clone();
        expected.retain(|&(j, _)| Some(j) != excluded);
        // NaN is greatest: first where larger is nearer.
        let is_last = |distance: f64| distance.is_nan() != distance::is_similarity(name);
        expected.sort_by(|&(_, a), &(_, b)| match a.is_nan() || b.is_nan() {
            true => is_last(a).cmp(&is_last(b)),
            false => distance::order(name, a, b),
        });
        expected.truncate(k);
        let mut seen = indices[i].clone();
        seen.sort_unstable();
        seen.dedup();
        if seen.len() != k || seen.iter().any(|&j| j >= index.len() || Some(j) == excluded) {
            return Err(format!("{metric}, row {i}: neighbors {:?}", indices[i]));
        }
        for (slot, &(j, nearest)) in expected.iter().enumerate() {
            let at = indices[i][slot];
            let (found, real) = (distances[i][slot], all[at].1);
            let scale = of_scale * distance::scale(name, p, row, &index[at]);
            let near = |a: f64, b: f64| {
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= scale + relative * b.abs()
            };
            if !near(found, real) || !near(real, nearest) {
                return Err(format!(
                    "{metric}, row {i}, neighbor {slot}: row {at} at {found} (exact: {real}) \
                     instead of {j} at {nearest}"
                ));
            }
            // Ties are sorted by index, NaN too.
            let tied =
                slot > 0 && distance::order(name, distances[i][slot - 1], found) == Ordering::Equal;
            if tied && indices[i][slot - 1] > at {
                return Err(format!("{metric}, row {i}: ties out of order at {slot}"));
            }
        }
    }
    Ok(())
}

/// Finds and checks neighbors, with and without a query.
fn compare<T: Element>(
    backend: &Backend,
    metric: Metric,
    [query, index]: [&Rows; 2],
    (cols, k): (usize, usize),
    tolerance: [f64; 2],
) -> Checked {
    let fitted = NearestNeighbors::fit(upload::<T>(index, cols, backend), metric);
    let queried = upload::<T>(query, cols, backend);
    let found = neighbors(&fitted, Some(&queried), k)?;
    check(metric, &found, [query, index], (k, false), tolerance)?;
    if k < index.len() {
        let found = neighbors(&fitted, None, k)?;
        check(metric, &found, [index, index], (k, true), tolerance)?;
    }
    Ok(())
}

fn of_metric<T: Element>(backend: &Backend, metric: Metric) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    let tolerance = tolerance(metric, T::NAME == "f64");
    for (rows, cols, k) in [(300, 33, 5), (203, 64, 1), (97, 3, 20)] {
        let index = normals::<T>([rows, cols], 1);
        let query = normals::<T>([19, cols], 2);
        compare::<T>(backend, metric, [&query, &index], (cols, k), tolerance)?;
    }
    Ok(Verdict::Passed)
}

fn shapes(backend: &Backend, metric: Metric) -> Checked {
    for [queries, rows, cols, k] in [
        [3, 200, 2, 0],
        [3, 200, 2, 200],
        [1, 1, 1, 1],
        [2, 5, 7, 3],
        [0, 9, 4, 2],
        [2, 0, 4, 0],
        [3, 4, 0, 2],
        [7, 300, 1, 4],
    ] {
        // A column that is always 1, so that no row is flat.
        let wide = |rows, seed| -> Rows {
            let mut rows = normals::<f32>([rows, cols], seed);
            rows.iter_mut().filter(|row| row.len() > 1).for_each(|row| row[0] = 1.0);
            rows
        };
        let (index, query) = (wide(rows, 3), wide(queries, 4));
        let flat = metric == Metric::Correlation && cols < 3;
        if flat && cols > 0 {
            continue;
        }
        let sizes = (cols, k);
        compare::<f32>(backend, metric, [&query, &index], sizes, tolerance(metric, false))
            .map_err(|reason| format!("{queries}, {rows}, {cols}, {k}: {reason}"))?;
    }
    Ok(())
}

/// Small whole numbers have exact distances and many ties; neighbors equal the oracle's.
fn ties(backend: &Backend, metric: Metric) -> Checked {
    // Four values in two columns: 150 copies of each row, so that searches widen.
    for (rows, cols, values) in [(600, 3, 5), (600, 2, 2), (300, 1, 3)] {
        let mut random = Random::new(8);
        let mut draw = |rows: usize| -> Rows {
            let mut row = || (0..cols).map(|_| random.below(values) as f64).collect();
            (0..rows).map(|_| row()).collect()
        };
        let (index, query) = (draw(rows), draw(11));
        let fitted = NearestNeighbors::fit(upload::<f32>(&index, cols, backend), metric);
        let queried = upload::<f32>(&query, cols, backend);
        for k in [1, 7, 40] {
            for (given, rows) in [(Some(&queried), &query), (None, &index)] {
                let (_, indices) = neighbors(&fitted, given, k)?;
                for (i, row) in rows.iter().enumerate() {
                    let excluded = given.is_none().then_some(i);
                    let (name, p) = (metric.name(), metric.p());
                    let expected = distance::nearest(name, p, row, &index, k, excluded);
                    let expected: Vec<usize> = expected.into_iter().map(|(j, _)| j).collect();
                    if indices[i] != expected {
                        return Err(format!(
                            "{metric}, {cols} columns, k {k}, row {i}: {:?}, not {expected:?}",
                            indices[i]
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Zero rows, NaN, infinities, huge and constant rows among others.
fn special(backend: &Backend, metric: Metric) -> Checked {
    let cols = 6;
    let mut index = normals::<f32>([250, cols], 5);
    for (row, value) in [
        (0, f64::NAN),
        (7, f64::INFINITY),
        (8, f64::NEG_INFINITY),
        (100, f64::NAN),
        (249, f64::INFINITY),
    ] {
        index[row][row % cols] = value;
    }
    let usual = index[40].clone();
    let mut query = vec![usual, index[0].clone(), index[7].clone()];
    if metric != Metric::Correlation {
        for row in [3, 90, 91] {
            index[row] = vec![0.0; cols];
        }
        query.push(vec![0.0; cols]);
    }
    for k in [1, 6, 240] {
        compare::<f32>(backend, metric, [&query, &index], (cols, k), tolerance(metric, false))?;
    }
    // More unusable rows than candidates.
    index[10..60].iter_mut().for_each(|row| row[2] = f64::NAN);
    compare::<f32>(backend, metric, [&query, &index], (cols, 2), tolerance(metric, false))
}

/// An index of as many rows as the library multiplies itself, some without bounds.
fn many(backend: &Backend, metric: Metric) -> Checked {
    for cols in [20, 33] {
        let mut index = normals::<f32>([9000, cols], 21);
        for (row, value) in [(5, f64::NAN), (4000, f64::INFINITY), (8999, f64::NEG_INFINITY)] {
            index[row][row % cols] = value;
        }
        index[8000] = index[17].clone();
        let query = vec![index[17].clone(), index[5].clone(), index[8001].clone()];
        let query = [query, normals::<f32>([9, cols], 22)].concat();
        let fitted = NearestNeighbors::fit(upload::<f32>(&index, cols, backend), metric);
        let queried = upload::<f32>(&query, cols, backend);
        for fitted in [fitted.clone(), fitted.with_query_batch(5)] {
            let found = neighbors(&fitted, Some(&queried), 7)?;
            check(metric, &found, [&query, &index], (7, false), tolerance(metric, false))?;
        }
    }
    Ok(())
}

/// A constant offset: the products cancel, direct evaluation does not.
fn offset(backend: &Backend) -> Checked {
    for scale in [1.0, 1e-2] {
        let shifted = |rows, seed| -> Rows {
            let mut rows = normals::<f32>([rows, 24], seed);
            rows.iter_mut().flatten().for_each(|x| *x = 1e4 + scale * *x);
            rounded::<f32>(rows)
        };
        let (index, query) = (shifted(400, 6), shifted(9, 7));
        for metric in [Metric::Euclidean, Metric::SqEuclidean] {
            let tolerance = tolerance(metric, false);
            compare::<f32>(backend, metric, [&query, &index], (24, 6), tolerance)?;
        }
    }
    Ok(())
}

/// Rows from 1e-18 to 1e30, whose squares underflow or overflow.
fn magnitudes(backend: &Backend) -> Checked {
    for (scale, cols) in [(1e-18, 5), (1e-12, 5), (1e15, 5), (1e30, 3)] {
        let scaled = |rows, seed| -> Rows {
            let mut rows = normals::<f32>([rows, cols], seed);
            rows.iter_mut().flatten().for_each(|x| *x *= scale);
            rounded::<f32>(rows)
        };
        let (index, query) = (scaled(150, 12), scaled(5, 13));
        for metric in [Metric::Euclidean, Metric::Cosine, Metric::Correlation] {
            let tolerance = tolerance(metric, false);
            compare::<f32>(backend, metric, [&query, &index], (cols, 3), tolerance)
                .map_err(|reason| format!("{scale:e}: {reason}"))?;
        }
        // Among rows of other magnitudes.
        let mut mixed = normals::<f32>([150, cols], 14);
        mixed.splice(20..60, index[20..60].iter().cloned());
        for metric in [Metric::Euclidean, Metric::Cosine] {
            let tolerance = tolerance(metric, false);
            compare::<f32>(backend, metric, [&query, &mixed], (cols, 3), tolerance)
                .map_err(|reason| format!("{scale:e} among others: {reason}"))?;
        }
    }
    Ok(())
}

/// Batches, ranges of rows and repetition change no bit.
fn batches(backend: &Backend, metric: Metric) -> Checked {
    let mut rows = normals::<f32>([160, 21], 15);
    for row in 50..70 {
        rows[row] = rows[row % 3].clone();
    }
    let whole = NearestNeighbors::fit(upload::<f32>(&rows, 21, backend), metric);
    for k in [1, 5, 30] {
        let expected = neighbors(&whole, None, k)?;
        for (query, part) in [(7, 47), (160, 31), (33, 160)] {
            let cut = whole.clone().with_query_batch(query).with_index_batch(part);
            let found = neighbors(&cut, None, k)?;
            if !same_bits(&found, &expected) {
                return Err(format!("{metric}, k {k}, batches of {query} and {part}: others"));
            }
        }
        let some = found(whole.kneighbors_of(45..60, k), k)?;
        let part = (expected.0[45..60].to_vec(), expected.1[45..60].to_vec());
        if !same_bits(&some, &part) {
            return Err(format!("{metric}, k {k}: other neighbors of a range"));
        }
    }
    Ok(())
}

/// Distances are those of the sparse path within twice its tolerance; so are neighbors, except for
/// distances that it cannot order.
fn like_sparse(backend: &Backend, metric: Metric) -> Checked {
    let (index, query) = (normals::<f32>([400, 40], 16), normals::<f32>([30, 40], 17));
    let [x, q] = [&index, &query].map(|rows| upload::<f32>(rows, 40, backend));
    let sparse = |rows: &Tensor<2>| Csr::from_dense(rows.clone()).map_err(|e| e.to_string());
    let dense = neighbors(&NearestNeighbors::fit(x.clone(), metric), Some(&q), 8)?;
    let other = neighbors(&NearestNeighbors::fit(sparse(&x)?, metric), Some(&sparse(&q)?), 8)?;
    let mut different = 0;
    for (i, row) in query.iter().enumerate() {
        for slot in 0..8 {
            let scale = distance::scale(metric.name(), 0.0, row, &index[dense.1[i][slot]]);
            let (a, b) = (dense.0[i][slot], other.0[i][slot]);
            if (a - b).abs() > 2e-5 * b.abs() + 4e-6 * scale {
                return Err(format!("{metric}, row {i}: {a} instead of {b}"));
            }
            different += usize::from(dense.1[i][slot] != other.1[i][slot]);
        }
    }
    match different {
        0..=4 => Ok(()),
        _ => Err(format!("{metric}: {different} other neighbors")),
    }
}

fn random(backend: &Backend) -> Checked {
    let mut random = Random::new(18);
    let most = if backend.client.is_none() { 60 } else { 12 };
    for round in 0..most {
        let metric = METRICS[random.below(METRICS.len())];
        let least = if metric == Metric::Correlation { 4 } else { 1 };
        let (rows, cols) = (1 + random.below(260), least + random.below(20));
        let queries = 1 + random.below(12);
        let k = random.below(rows.min(12) + 1);
        let copies = random.below(3) == 0;
        let (mut index, query) =
            (normals::<f32>([rows, cols], round), normals::<f32>([queries, cols], 1000 + round));
        if copies {
            for row in 0..rows {
                index[row] = index[row - row % 37].clone();
            }
        }
        compare::<f32>(backend, metric, [&query, &index], (cols, k), tolerance(metric, false))
            .map_err(|e| format!("{rows} x {cols}, {queries} queries, k {k}: {e}"))?;
    }
    Ok(())
}

/// Metrics without a fast path, and all other searches, equal those of a matrix.
fn others(backend: &Backend) -> Checked {
    let text = |error: DistanceError| error.to_string();
    let (index, query) = (normals::<f32>([150, 5], 19), normals::<f32>([7, 5], 20));
    let [x, q] = [&index, &query].map(|rows| upload::<f32>(rows, 5, backend));
    let sparse = |rows: &Tensor<2>| Csr::from_dense(rows.clone()).map_err(|e| e.to_string());
    let [sparse_x, sparse_q] = [sparse(&x)?, sparse(&q)?];
    let same = |what: &str, [a, b]: [&Csr; 2]| {
        let [left, right] = [a, b].map(|csr| csr.values().to_data());
        match a.pattern() == b.pattern() && left == right {
            true => Ok(()),
            false => Err(format!("{what}: another matrix")),
        }
    };
    let dense = NearestNeighbors::fit(x.clone(), Metric::Manhattan);
    let other = NearestNeighbors::fit(sparse_x.clone(), Metric::Manhattan);
    if neighbors(&dense, Some(&q), 4)? != neighbors(&other, Some(&sparse_q), 4)? {
        return Err("manhattan: other neighbors".into());
    }
    for metric in [Metric::Manhattan, Metric::Euclidean] {
        let dense = NearestNeighbors::fit(x.clone(), metric);
        let other = NearestNeighbors::fit(sparse_x.clone(), metric);
        let radius = dense.radius_neighbors(Some(&q), 2.0).map_err(text)?;
        let expected = other.radius_neighbors(Some(&sparse_q), 2.0).map_err(text)?;
        same("radius", [&radius, &expected])?;
        let own = dense.radius_neighbors_of(3..9, 2.0).map_err(text)?;
        same("radius of rows", [&own, &other.radius_neighbors_of(3..9, 2.0).map_err(text)?])?;
        let lists = dense.radius_neighbors_lists(None, 1.5, true).map_err(text)?;
        if lists != other.radius_neighbors_lists(None, 1.5, true).map_err(text)? {
            return Err("radius: other lists".into());
        }
        let all = pairwise_distances(&x, Some(&q), metric).map_err(text)?.into_data();
        let expected = pairwise_distances(&sparse_x, Some(&sparse_q), metric).map_err(text)?;
        if all != expected.into_data() {
            return Err("pairwise: other distances".into());
        }
        let graph = dense.kneighbors_graph(Some(&q), 3).map_err(text)?;
        let expected = other.kneighbors_graph(Some(&sparse_q), 3).map_err(text)?;
        if graph.pattern() != expected.pattern() {
            return Err("graph: other neighbors".into());
        }
        let allowed: Vec<bool> = (0..150).map(|row| row % 3 > 0).collect();
        let each = Prefilter::per_query([7, 150], |query, row| !(query + row).is_multiple_of(4));
        for filter in [Prefilter::shared(&allowed), each] {
            let among = found(dense.kneighbors_filtered(Some(&q), 3, &filter), 3)?;
            let expected = found(other.kneighbors_filtered(Some(&sparse_q), 3, &filter), 3)?;
            if among.1 != expected.1 {
                return Err("filter: other neighbors".into());
            }
        }
        let labels: Vec<i64> = (0..150).map(|row| row % 4).collect();
        let classes = KNeighborsClassifier::fit(dense.clone(), &labels).map_err(text)?;
        let expected = KNeighborsClassifier::fit(other.clone(), &labels).map_err(text)?;
        if classes.predict(Some(&q)).map_err(text)?
            != expected.predict(Some(&sparse_q)).map_err(text)?
        {
            return Err("other classes".into());
        }
        let means = KNeighborsRegressor::fit(dense, q.clone().repeat_dim(0, 30).narrow(0, 0, 150));
        let means = means.map_err(text)?.predict(Some(&q)).map_err(text)?;
        if means.dims() != [7, 5] {
            return Err(format!("means of {:?}", means.dims()));
        }
    }
    Ok(())
}

/// Where kinds of rows meet, results are those of sparse rows, bit for bit.
fn mixed(backend: &Backend, metric: Metric) -> Checked {
    let text = |error: DistanceError| error.to_string();
    let (index, query) = (normals::<f32>([60, 5], 23), normals::<f32>([7, 5], 24));
    let [x, q] = [&index, &query].map(|rows| upload::<f32>(rows, 5, backend));
    let sparse = |rows: &Tensor<2>| Csr::from_dense(rows.clone()).map_err(|e| e.to_string());
    let [sparse_x, sparse_q] = [sparse(&x)?, sparse(&q)?];
    let expected = NearestNeighbors::fit(sparse_x.clone(), metric);
    let near = expected.radius_neighbors(Some(&sparse_q), 1.8).map_err(text)?;
    let among = pairwise_distances(&sparse_x, Some(&sparse_q), metric).map_err(text)?;
    let among = among.into_data();
    let filter = Prefilter::shared(&(0..60).map(|row| row % 3 > 0).collect::<Vec<_>>());
    let allowed = found(expected.kneighbors_filtered(Some(&sparse_q), 3, &filter), 3)?;
    let expected = neighbors(&expected, Some(&sparse_q), 4)?;
    for (what, x, q) in [
        ("a dense query", AnySamples::from(sparse_x), AnySamples::from(q.clone())),
        ("a dense index", x.clone().into(), sparse_q.into()),
    ] {
        let fitted = NearestNeighbors::fit(x.clone(), metric);
        let graph = fitted.radius_neighbors(Some(&q), 1.8).map_err(text)?;
        let shards = [0..20, 20..60].map(|rows| x.slice_rows(rows));
        let sharded = ShardedNeighbors::fit(shards.to_vec(), metric).map_err(text)?;
        let mut stream = NeighborStream::new(q.clone(), metric, 4).map_err(text)?;
        stream.push(x.clone()).map_err(text)?;
        let all = pairwise_distances(&x, Some(&q), metric).map_err(text)?;
        for (search, is_same) in [
            ("neighbors", neighbors(&fitted, Some(&q), 4)? == expected),
            ("shards", found(sharded.kneighbors(&q, 4), 4)?.1 == expected.1),
            ("stream", found(stream.finish(), 4)? == expected),
            ("filter", found(fitted.kneighbors_filtered(Some(&q), 3, &filter), 3)? == allowed),
            ("radius", graph.pattern() == near.pattern()),
            ("radius", graph.values().to_data() == near.values().to_data()),
            ("pairwise", all.into_data() == among),
        ] {
            if !is_same {
                return Err(format!("{metric}, {search} of {what}: not as of sparse rows"));
            }
        }
    }
    Ok(())
}

/// Dense rows of either type are searched as such.
fn any_samples(backend: &Backend, metric: Metric) -> Checked {
    let (index, query) = (normals::<f32>([90, 9], 25), normals::<f32>([7, 9], 26));
    let [x, q] = [&index, &query].map(|rows| upload::<f32>(rows, 9, backend));
    let expected = neighbors(&NearestNeighbors::fit(x.clone(), metric), Some(&q), 4)?;
    let fitted = NearestNeighbors::fit(AnySamples::from(x), metric);
    match neighbors(&fitted, Some(&q.into()), 4)? == expected {
        true => Ok(()),
        false => Err("other neighbors".into()),
    }
}

/// The gradient of all distances also reaches zeros: that of Σ |x − y|² is 2 Σ (x − y).
fn gradient(backend: &Backend) -> Checked {
    let device = backend.device.clone().autodiff();
    let x = [[1.0, 0.0, -2.0], [0.0, 0.0, 4.0]];
    let y = [[0.0, 3.0, 1.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.5]];
    let tracked = Tensor::<2>::from_data(x, &device).require_grad();
    let other = Tensor::<2>::from_data(y, &device);
    let all = pairwise_distances(&tracked, Some(&other), Metric::SqEuclidean);
    let gradients = all.map_err(|e| e.to_string())?.backward();
    let found = tracked.grad(&gradients).ok_or("no gradient")?.into_data();
    let slope = |i: usize, j: usize| y.iter().map(|y| 2.0 * (x[i][j] - y[j])).sum::<f64>();
    for (at, found) in found.iter::<f64>().enumerate() {
        let expected = slope(at / 3, at % 3);
        if (found - expected).abs() > 1e-4 {
            return Err(format!("element {at}: {found} instead of {expected}"));
        }
    }
    // Neighbors have none.
    let neighbors = NearestNeighbors::fit(tracked, Metric::Euclidean).kneighbors(None, 1);
    let (distances, _) = neighbors.map_err(|e| e.to_string())?;
    let distances: Vec<f64> = distances.into_data().iter::<f64>().collect();
    match distances.iter().all(|distance| (distance - 37.0_f64.sqrt()).abs() < 1e-4) {
        true => Ok(()),
        false => Err(format!("{distances:?}")),
    }
}

fn errors(backend: &Backend) -> Checked {
    let rows = |rows, cols| upload::<f32>(&normals::<f32>([rows, cols], 21), cols, backend);
    let fitted = NearestNeighbors::fit(rows(9, 4), Metric::Cosine);
    let refused = |what: &str, is_right: bool| match is_right {
        true => Ok(()),
        false => Err(format!("{what} is not refused")),
    };
    let found = fitted.kneighbors(None, 9);
    let itself = matches!(found, Err(DistanceError::Neighbors { exclude_self: true, .. }));
    refused("k = n of itself", itself)?;
    let found = fitted.kneighbors(Some(&rows(2, 4)), 10);
    let most = matches!(found, Err(DistanceError::Neighbors { exclude_self: false, .. }));
    refused("k > n", most)?;
    let found = fitted.kneighbors(Some(&rows(2, 5)), 1);
    refused("a width", matches!(found, Err(DistanceError::Columns { x: 5, y: 4 })))?;
    if backend.lacks(DType::F16).is_none() {
        let short = upload::<half::f16>(&normals::<half::f16>([2, 4], 22), 4, backend);
        let found = fitted.kneighbors(Some(&short), 1);
        refused("a dtype", matches!(found, Err(DistanceError::Dtypes { .. })))?;
    }
    let found = NearestNeighbors::fit(rows(9, 4), Metric::Minkowski(-1.0)).kneighbors(None, 1);
    refused("a parameter", matches!(found, Err(DistanceError::Parameter { .. })))
}
