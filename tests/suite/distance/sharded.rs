//! Neighbors among shards and parts, beside the search of all rows.

use std::ops::Range;

use burn::tensor::{Int, Tensor, TensorData};
use sparsek::{
    distance::{
        DistanceError, Measure, Metric, NearestNeighbors, NeighborStream, Samples, ShardedNeighbors,
    },
    sparse::Csr,
};
use sparsek_tests::{
    backend::Backend,
    data::Random,
    runner::{Cases, Verdict},
};

/// Rows of the index; shards end at some, and one is empty.
const ROWS: usize = 61;
const COLS: usize = 9;
const CUTS: [&[usize]; 4] = [&[], &[30], &[0, 1, 1, 40], &[20, 40, 61]];

type Found = (Tensor<2>, Tensor<2, Int>);
type Checked = Result<(), String>;

pub fn add(cases: &mut Cases, backend: &Backend) {
    for metric in [Metric::Manhattan, Metric::Cosine, Metric::Dot, Metric::Jaccard] {
        let case = format!("tensor/neighbors/sharded/{}", metric.name());
        cases.check(backend, case, move |b| {
            let sparse = |seed, rows| Csr::from_dense(rows_of(b, seed, rows)).map_err(text);
            shards(b, &sparse(1, ROWS)?, &sparse(2, 7)?, metric)
        });
    }
    let searched = Metric::ALL.iter().filter(|&&metric| Measure::from(metric).searches_dense());
    for &metric in searched {
        let case = format!("tensor/neighbors/sharded/dense/{}", metric.name());
        cases.add(backend, case, move |b| match b.shared_memory_defect() {
            Some(reason) => Ok(Verdict::Skipped(reason)),
            None => {
                shards(b, &rows_of(b, 1, ROWS), &rows_of(b, 2, 7), metric).map(|()| Verdict::Passed)
            }
        });
    }
    cases.check(backend, "tensor/neighbors/sharded/errors", errors);
}

/// Whole numbers with many ties, a third of them zeros.
fn rows_of(backend: &Backend, seed: u64, rows: usize) -> Tensor<2> {
    let mut random = Random::new(seed);
    let elements: Vec<f32> =
        (0..rows * COLS).map(|_| (random.below(6) as f32 - 1.0).max(0.0)).collect();
    Tensor::from_data(TensorData::new(elements, [rows, COLS]), &backend.device)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn ranges(cuts: &[usize]) -> Vec<Range<usize>> {
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([ROWS]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

fn same(what: &str, found: Found, expected: &Found) -> Checked {
    let [found, expected] = [&found, expected].map(|(values, indices)| {
        let values: Vec<u32> = values.to_data().iter::<f32>().map(f32::to_bits).collect();
        let indices: Vec<i64> = indices.to_data().iter::<i64>().collect();
        (indices, values)
    });
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?} instead of {expected:?}")),
    }
}

fn same_graph(what: &str, found: Csr, expected: Csr) -> Checked {
    let [found, expected] = [found, expected].map(|graph| {
        let values: Vec<f32> = graph.values().to_data().iter::<f32>().collect();
        (graph.pattern().as_ref().clone(), values)
    });
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?} instead of {expected:?}")),
    }
}

fn shards<S: Samples>(backend: &Backend, index: &S, query: &S, metric: Metric) -> Checked {
    let whole = NearestNeighbors::fit(index.clone(), metric);
    // Several devices take shards in turn.
    let devices = backend.devices();
    for cuts in CUTS {
        let parts: Vec<S> = ranges(cuts).into_iter().map(|range| index.slice_rows(range)).collect();
        let placed = parts.iter().zip(devices.iter().cycle());
        let placed = placed.map(|(part, device)| part.copy_to(device));
        let placed = placed.collect::<Result<Vec<S>, _>>().map_err(text)?;
        let sharded = ShardedNeighbors::fit(placed, metric).map_err(text)?;
        let batched = sharded.clone().with_query_batch(3);
        for k in [0, 1, 5, ROWS] {
            let what = format!("{metric}, cuts {cuts:?}, k = {k}");
            let expected = whole.kneighbors(Some(query), k).map_err(text)?;
            same(&what, sharded.kneighbors(query, k).map_err(text)?, &expected)?;
            same(&what, batched.kneighbors(query, k).map_err(text)?, &expected)?;
            let mut stream = NeighborStream::new(query.clone(), metric, k).map_err(text)?;
            for part in &parts {
                stream.push(part.clone()).map_err(text)?;
            }
            same(&format!("{what}, stream"), stream.finish().map_err(text)?, &expected)?;
        }
        for (rows, k) in [(0..ROWS, 4), (18..43, ROWS - 1), (5..6, 1), (7..7, 2), (3..9, 0)] {
            let what = format!("{metric}, cuts {cuts:?}, rows {rows:?}, k = {k}");
            let expected = whole.kneighbors_of(rows.clone(), k).map_err(text)?;
            same(&what, sharded.kneighbors_of(rows, k).map_err(text)?, &expected)?;
        }
        let radius = if metric == Metric::Manhattan { 9.0 } else { 0.4 };
        let what = format!("{metric}, cuts {cuts:?}, radius {radius}");
        let expected = whole.radius_neighbors(Some(query), radius).map_err(text)?;
        same_graph(&what, sharded.radius_neighbors(query, radius).map_err(text)?, expected)?;
        for rows in [0..ROWS, 18..43, 7..7] {
            let what = format!("{what}, rows {rows:?}");
            let expected = whole.radius_neighbors_of(rows.clone(), radius).map_err(text)?;
            let found = sharded.radius_neighbors_of(rows, radius).map_err(text)?;
            same_graph(&what, found, expected)?;
        }
    }
    Ok(())
}

fn errors(backend: &Backend) -> Checked {
    let csr = |rows| Csr::from_dense(rows_of(backend, 3, rows)).map_err(text);
    let refused = |result: Result<Found, DistanceError>, expected: DistanceError| match result {
        Err(error) if error == expected => Ok(()),
        other => {
            Err(format!("{:?} instead of {expected:?}", other.map(|(values, _)| values.dims())))
        }
    };
    let none = ShardedNeighbors::<Csr>::fit(Vec::new(), Metric::Dot).map(|shards| shards.rows());
    if none != Err(DistanceError::Shards) {
        return Err(format!("{none:?}"));
    }
    let narrow = {
        let keep: Vec<bool> = (0..COLS).map(|column| column < 2).collect();
        csr(4)?.filter_cols(&keep)
    };
    let columns = ShardedNeighbors::fit(vec![csr(4)?, narrow.clone()], Metric::Dot);
    let columns = columns.map(|shards| shards.rows());
    if columns != Err(DistanceError::Columns { x: COLS, y: 2 }) {
        return Err(format!("{columns:?}"));
    }
    let sharded = ShardedNeighbors::fit(vec![csr(4)?, csr(3)?], Metric::Dot).map_err(text)?;
    let most = |exclude_self| DistanceError::Neighbors { k: 8, rows: 7, exclude_self };
    refused(sharded.kneighbors(&csr(2)?, 8), most(false))?;
    refused(sharded.kneighbors_of(0..2, 8), most(true))?;
    refused(sharded.kneighbors(&narrow, 1), DistanceError::Columns { x: 2, y: COLS })?;
    let mut stream = NeighborStream::new(csr(2)?, Metric::Dot, 4).map_err(text)?;
    stream.push(csr(3)?).map_err(text)?;
    let pushed = stream.push(narrow);
    if pushed != Err(DistanceError::Columns { x: COLS, y: 2 }) || stream.rows() != 3 {
        return Err(format!("{pushed:?}"));
    }
    refused(stream.finish(), DistanceError::Neighbors { k: 4, rows: 3, exclude_self: false })
}
