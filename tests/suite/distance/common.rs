//! Helpers of the distance cases.

use burn::tensor::{Int, Tensor};
use sparsek::distance::{
    DistanceError, Measure, Metric, NearestNeighbors, Samples, pairwise_distances,
};
use sparsek_tests::{
    backend::Backend,
    element::Element,
    oracle::{distance, spmm::Csr},
    panics::expect_panic,
    runner::Verdict,
    sparse::upload,
};

/// Tolerances of f32: relative, and relative to the scale of the rows.
pub const SINGLE: [f64; 2] = [1e-5, 2e-6];

/// All distances as f64, or the reason to skip a forced routine.
pub fn distances<T: Element>(
    backend: &Backend,
    [x, y]: [&Csr; 2],
    measure: Measure,
) -> Result<Result<Vec<f64>, Verdict>, String> {
    let device = &backend.device;
    let (x, y) = (upload::<T>(x, device), upload::<T>(y, device));
    let mut found = None;
    let refusal = expect_panic(|| {
        let result = pairwise_distances(&x, Some(&y), measure);
        let result = result.expect("matrices of one kind").into_data();
        found = Some(result.iter::<f64>().collect::<Vec<_>>());
    });
    match (found, refusal) {
        (Some(found), _) => Ok(Ok(found)),
        (None, Ok(message))
            if message.contains("cannot run here:")
                || message.contains("has no logarithms and powers of f64") =>
        {
            Ok(Err(Verdict::Skipped(message)))
        }
        (None, message) => Err(format!("{message:?}")),
    }
}

/// Whether two searches agree bit for bit.
pub fn same_bits(one: &Found, other: &Found) -> bool {
    let bits = |found: &Found| -> Vec<u64> {
        found.0.iter().flatten().map(|distance| distance.to_bits()).collect()
    };
    one.1 == other.1 && bits(one) == bits(other)
}

/// Whether rounding decides the distance.
fn undecided(metric: Metric, x: &[f64], y: &[f64]) -> bool {
    let flat = |row: &[f64]| {
        let n = row.len() as f64;
        let (sum, squares) = row.iter().fold((0.0, 0.0), |(s, q), a| (s + a, q + a * a));
        n * squares - sum * sum <= 1e-3 * n * squares
    };
    match metric {
        Metric::Correlation => flat(x) || flat(y),
        // A quotient of sums that cancel.
        Metric::BrayCurtis => {
            let sum: f64 = x.iter().zip(y).map(|(a, b)| (a + b).abs()).sum();
            let size: f64 = x.iter().chain(y).map(|a| a.abs()).sum();
            sum > 0.0 && sum < 1e-2 * size
        }
        _ => false,
    }
}

pub fn check(
    what: &str,
    metric: Metric,
    found: &[f64],
    [x, y]: [&[Vec<f64>]; 2],
    [relative, of_scale]: [f64; 2],
) -> Result<(), String> {
    if found.len() != x.len() * y.len() {
        return Err(format!("{what}: {} distances", found.len()));
    }
    let rows = y.len();
    for (i, x) in x.iter().enumerate() {
        for (j, y) in y.iter().enumerate() {
            let expected = distance::distance(metric.name(), metric.p(), x, y);
            let found = found[i * rows + j];
            if undecided(metric, x, y) {
                continue;
            }
            let scale = distance::scale(metric.name(), metric.p(), x, y);
            let bound = relative * expected.abs() + of_scale * scale;
            let same = found == expected || (found.is_nan() && expected.is_nan());
            let near = (found - expected).abs() <= bound;
            if !same && !near {
                return Err(format!(
                    "{what}: rows {i} and {j}: {found} instead of {expected}, off by more than \
                     {bound:e}"
                ));
            }
        }
    }
    Ok(())
}

/// Spreads the columns over `cols` columns, from the first to the last.
pub fn spread(csr: &Csr, cols: usize) -> Csr {
    let last = csr.cols.max(2) - 1;
    let place = |&column: &u32| (column as usize * (cols - 1) / last) as u32;
    Csr { cols, indices: csr.indices.iter().map(place).collect(), ..csr.clone() }
}

/// Distances and indices of each query's neighbors.
pub type Found = (Vec<Vec<f64>>, Vec<Vec<usize>>);

pub fn neighbors<S: Samples>(
    index: &NearestNeighbors<S>,
    query: Option<&S>,
    k: usize,
) -> Result<Found, String> {
    found(index.kneighbors(query, k), k)
}

/// Neighbors on the host.
pub fn found(
    neighbors: Result<(Tensor<2>, Tensor<2, Int>), DistanceError>,
    k: usize,
) -> Result<Found, String> {
    let (distances, indices) = neighbors.map_err(|e| e.to_string())?;
    let (distances, indices) = (distances.into_data(), indices.into_data());
    let distances: Vec<f64> = distances.iter::<f64>().collect();
    let indices: Vec<usize> = indices.iter::<i64>().map(|i| i as usize).collect();
    Ok((
        distances.chunks(k.max(1)).map(<[f64]>::to_vec).collect(),
        indices.chunks(k.max(1)).map(<[usize]>::to_vec).collect(),
    ))
}
