//! Neighbors by given distances are the neighbors that a search finds.

use burn::tensor::{DType, Int, Tensor, TensorData};
use sparsek::{
    distance::{
        DistanceError, GraphMode, Metric, NearestNeighbors, Precomputed, kneighbors_from_graph,
        pairwise_distances,
    },
    sparse::Csr,
};
use sparsek_tests::{
    backend::Backend,
    runner::{Cases, Outcome, Verdict},
    sparse::{Sparse, upload, vector},
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    for metric in [Metric::Manhattan, Metric::Cosine, Metric::JensenShannon] {
        let case = format!("tensor/neighbors/precomputed/{}", metric.name());
        cases.check(backend, case, move |b| same(b, metric));
    }
    cases.check(backend, "tensor/neighbors/precomputed/graph", of_graph);
    cases.check(backend, "tensor/neighbors/precomputed/errors", errors);
    cases.add(backend, "tensor/neighbors/precomputed/f64", wide);
}

/// Bits, with one NaN.
fn bits<const D: usize>(tensor: Tensor<D>) -> Vec<u64> {
    let values = tensor.into_data();
    let values = values.iter::<f64>().map(|x| if x.is_nan() { f64::NAN } else { x });
    values.map(f64::to_bits).collect()
}

fn places(indices: Tensor<2, Int>) -> Vec<i64> {
    indices.into_data().iter::<i64>().collect()
}

fn same_graph(what: &str, found: &Csr, expected: &Csr) -> Result<(), String> {
    let equal = found.pattern() == expected.pattern()
        && bits(found.values().clone()) == bits(expected.values().clone());
    equal.then_some(()).ok_or(format!("{what}: {found:?} instead of {expected:?}"))
}

/// Includes NaN (empty rows by cosine), infinities and ties.
fn same(backend: &Backend, metric: Metric) -> Result<(), String> {
    let text = |e: DistanceError| e.to_string();
    let recipe = &Sparse::ALL[5];
    let index = upload::<f32>(&recipe.matrix(41), &backend.device);
    let query = upload::<f32>(&recipe.with_rows(7).matrix(42), &backend.device);
    let among = pairwise_distances(&index, Some(&index), metric).map_err(text)?;
    let from = pairwise_distances(&query, Some(&index), metric).map_err(text)?;
    let given = Precomputed::fit(among).map_err(text)?;
    let fitted = NearestNeighbors::fit(index, metric);
    for (query, distances) in [(None, None), (Some(&query), Some(from))] {
        for k in [0, 1, 5, recipe.rows - 1] {
            let expected = fitted.kneighbors(query, k).map_err(text)?;
            let found = given.kneighbors(distances.clone(), k).map_err(text)?;
            if places(found.1) != places(expected.1) || bits(found.0) != bits(expected.0) {
                return Err(format!("{metric}, k {k}: other neighbors"));
            }
            for mode in [GraphMode::Distance, GraphMode::Connectivity] {
                let expected = fitted.kneighbors_graph_with(query, k, mode).map_err(text)?;
                let found = given.kneighbors_graph(distances.clone(), k, mode).map_err(text)?;
                same_graph("k", &found, &expected)?;
            }
        }
        for radius in [0.0, 0.8, 20.0, f64::INFINITY] {
            for mode in [GraphMode::Distance, GraphMode::Connectivity] {
                let expected = fitted.radius_neighbors_graph(query, radius, mode);
                let found = given.radius_neighbors_graph(distances.clone(), radius, mode);
                same_graph("radius", &found.map_err(text)?, &expected.map_err(text)?)?;
            }
        }
    }
    Ok(())
}

/// A graph of all rows gives the neighbors of a search; one of some gives those among them.
fn of_graph(backend: &Backend) -> Result<(), String> {
    let text = |e: DistanceError| e.to_string();
    let recipe = &Sparse::ALL[3];
    let index = upload::<f32>(&recipe.matrix(43), &backend.device);
    let fitted = NearestNeighbors::fit(index.clone(), Metric::Manhattan);
    let all = fitted.radius_neighbors(Some(&index), f64::INFINITY).map_err(text)?;
    for k in [0, 1, 5, recipe.rows - 1] {
        for exclude_self in [false, true] {
            let query = (!exclude_self).then_some(&index);
            let expected = fitted.kneighbors(query, k).map_err(text)?;
            let found = kneighbors_from_graph(&all, k, exclude_self).map_err(text)?;
            if places(found.1) != places(expected.1) || bits(found.0) != bits(expected.0) {
                return Err(format!("k {k}: other neighbors"));
            }
        }
    }
    let some = fitted.kneighbors_graph(None, 6).map_err(text)?;
    let (expected, _) = fitted.kneighbors(None, 4).map_err(text)?;
    let (found, _) = kneighbors_from_graph(&some, 4, true).map_err(text)?;
    if bits(found) != bits(expected) {
        return Err("other neighbors among some".into());
    }
    let values = vector::<f32>(&[f32::NAN.into(), 0.0, 2.0, 0.0, 7.0], &backend.device);
    let few = Csr::from_coo([2, 4], &[0, 0, 0, 0, 1], &[0, 1, 2, 3, 2], values);
    let few = few.map_err(|e| e.to_string())?;
    let (_, found) = kneighbors_from_graph(&few.slice_rows(0..1), 4, false).map_err(text)?;
    if places(found.clone()) != [1, 3, 2, 0] {
        return Err(format!("zeros first and NaN last: {found}"));
    }
    match kneighbors_from_graph(&few, 2, false) {
        Err(DistanceError::Allowed { k: 2, query: 1, allowed: 1 }) => Ok(()),
        other => Err(format!("fewer entries: {:?}", other.map(drop))),
    }
}

fn wide(backend: &Backend) -> Outcome {
    if let Some(reason) = backend.lacks(DType::F64) {
        return Ok(Verdict::Skipped(reason));
    }
    let between = vector::<f64>(&[0.0, 1.0 + 1e-12, 1.0, 0.0], &backend.device).reshape([2, 2]);
    let given = Precomputed::fit(between).map_err(|e| e.to_string())?;
    let near = given.radius_neighbors_graph(None, 1.0, GraphMode::Distance);
    let near = near.map_err(|e| e.to_string())?;
    match near.dtype() == DType::F64 && near.pattern().indptr() == [0, 0, 1] {
        true => Ok(Verdict::Passed),
        false => Err(format!("{near:?}")),
    }
}

fn errors(backend: &Backend) -> Result<(), String> {
    let zeros = |shape: [usize; 2]| {
        let data = TensorData::new(vec![0f32; shape[0] * shape[1]], shape);
        Tensor::<2>::from_data(data, (&backend.device, DType::F32))
    };
    let given = Precomputed::fit(zeros([3, 3])).map_err(|e| e.to_string())?;
    let refused = [
        (Precomputed::fit(zeros([2, 3])).map(drop), DistanceError::NotSquare { rows: 2, cols: 3 }),
        (
            given.kneighbors(None, 3).map(drop),
            DistanceError::Neighbors { k: 3, rows: 3, exclude_self: true },
        ),
        (
            given.kneighbors(Some(zeros([2, 3])), 4).map(drop),
            DistanceError::Neighbors { k: 4, rows: 3, exclude_self: false },
        ),
        (given.kneighbors(Some(zeros([3, 2])), 1).map(drop), DistanceError::Columns { x: 2, y: 3 }),
        (
            given.radius_neighbors_graph(Some(zeros([3, 2])), 1.0, GraphMode::Distance).map(drop),
            DistanceError::Columns { x: 2, y: 3 },
        ),
    ];
    for (found, expected) in refused {
        if found != Err(expected.clone()) {
            return Err(format!("{found:?} instead of {expected:?}"));
        }
    }
    Ok(())
}
