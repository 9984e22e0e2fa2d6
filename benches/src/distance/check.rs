//! Compares nearest neighbors with the oracle's.

use anyhow::ensure;
use burn::tensor::{Int, Tensor};
use rayon::prelude::*;
use sparsek::{distance::Metric, sparse::Csr};
use sparsek_tests::oracle::distance;

const ROWS: usize = 8;
/// For matrices of more elements (rows times columns), the oracle ranks the neighbors found among
/// [`SAMPLE`] evenly spaced rows only, fewer of many columns.
const FULL_CHECK: usize = 1 << 27;
const SAMPLE: std::ops::RangeInclusive<usize> = 64..=1024;
/// Tolerance of an f32 distance: relative to itself, absolute, and relative to its scale.
const RELATIVE: f64 = 2e-5;
const ABSOLUTE: f64 = 2e-5;
const OF_SCALE: f64 = 4e-6;

/// Compares the neighbors of some rows with those computed in f64, within the tolerance. Returns
/// the number of rows compared.
pub fn check(
    index: &Csr,
    metric: Metric,
    (distances, indices): (Tensor<2>, Tensor<2, Int>),
) -> anyhow::Result<usize> {
    let [rows, k] = distances.dims();
    let values: Vec<f64> = index.values().clone().into_data().iter::<f64>().collect();
    let distances: Vec<f64> = distances.into_data().iter::<f64>().collect();
    let indices: Vec<i64> = indices.into_data().iter::<i64>().collect();
    let dense = |row: usize| {
        let offsets = index.pattern().indptr();
        let entries = offsets[row] as usize..offsets[row + 1] as usize;
        let mut dense = vec![0.0; index.cols()];
        for entry in entries {
            dense[index.pattern().indices()[entry] as usize] = values[entry];
        }
        dense
    };
    let step = rows.div_ceil(ROWS).max(1);
    let checked: Vec<usize> = (0..rows).step_by(step).collect();
    for &row in &checked {
        let query = dense(row);
        let spacing = match rows.saturating_mul(index.cols()) > FULL_CHECK {
            true => {
                let sample = FULL_CHECK / (ROWS * index.cols());
                rows.div_ceil(sample.clamp(*SAMPLE.start(), *SAMPLE.end()))
            }
            false => 1,
        };
        let found = indices[row * k..(row + 1) * k].iter().map(|&at| at as usize);
        let mut order: Vec<usize> = (0..rows).step_by(spacing).chain(found).collect();
        order.sort_unstable();
        order.dedup();
        order.retain(|&other| other != row && other < rows);
        let compared: Vec<f64> = (order.par_iter())
            .map(|&other| distance::distance(metric.name(), metric.p(), &query, &dense(other)))
            .collect();
        let mut all = vec![f64::NAN; rows];
        for (&other, distance) in order.iter().zip(compared) {
            all[other] = distance;
        }
        order.sort_by(|&a, &b| distance::order(metric.name(), all[a], all[b]));
        for (slot, &nearest) in order[..k].iter().enumerate() {
            let at = indices[row * k + slot] as usize;
            let found = distances[row * k + slot];
            ensure!(at < rows && at != row, "row {row}: neighbor {at}");
            let scale = distance::scale(metric.name(), metric.p(), &query, &dense(at));
            let near = |a: f64, b: f64| {
                let bound = ABSOLUTE + RELATIVE * b.abs() + OF_SCALE * scale;
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= bound
            };
            ensure!(
                near(found, all[at]) && near(all[at], all[nearest]),
                "row {row}, neighbor {slot}: row {at} at {found} (exactly {}) instead of \
                 {nearest} at {}",
                all[at],
                all[nearest]
            );
        }
    }
    Ok(checked.len())
}
