//! Whether neighbours are those of the oracle.

use anyhow::ensure;
use burn::tensor::{Int, Tensor};
use rayon::prelude::*;
use sparsek::{distance::Metric, sparse::Csr};
use sparsek_tests::oracle::distance;

/// Rows that are looked at, evenly spaced.
const ROWS: usize = 8;
/// Elements of a matrix beyond which these rows are compared with some of the others only, evenly spaced, and with the
/// neighbours found.
const MANY: usize = 1 << 27;
const OTHERS: usize = 1024;
/// What distances in f32 may be off, of themselves, at least, and of what they are made of.
const RELATIVE: f64 = 2e-5;
const LEAST: f64 = 2e-5;
const OF_SCALE: f64 = 4e-6;

/// Compares the neighbours of some rows with those by f64, up to distances that rounding cannot tell apart; says how many
/// rows these were.
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
    let looked: Vec<usize> = (0..rows).step_by(step).collect();
    for &row in &looked {
        let own = dense(row);
        let spacing = match rows.saturating_mul(index.cols()) > MANY {
            true => rows.div_ceil(OTHERS),
            false => 1,
        };
        let found = indices[row * k..(row + 1) * k]
            .iter()
            .map(|&at| at as usize);
        let mut order: Vec<usize> = (0..rows).step_by(spacing).chain(found).collect();
        order.sort_unstable();
        order.dedup();
        order.retain(|&other| other != row && other < rows);
        let compared: Vec<f64> = (order.par_iter())
            .map(|&other| distance::distance(metric.name(), metric.p(), &own, &dense(other)))
            .collect();
        let mut all = vec![f64::NAN; rows];
        for (&other, distance) in order.iter().zip(compared) {
            all[other] = distance;
        }
        order.sort_by(|&a, &b| distance::order(metric.name(), all[a], all[b]));
        for (slot, &nearest) in order[..k].iter().enumerate() {
            let at = indices[row * k + slot] as usize;
            let found = distances[row * k + slot];
            ensure!(at < rows && at != row, "row {row}: neighbour {at}");
            let scale = distance::scale(metric.name(), metric.p(), &own, &dense(at));
            let near = |a: f64, b: f64| {
                let bound = LEAST + RELATIVE * b.abs() + OF_SCALE * scale;
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= bound
            };
            ensure!(
                near(found, all[at]) && near(all[at], all[nearest]),
                "row {row}, neighbour {slot}: row {at} at {found} (it is at {}) instead of {nearest} at {}",
                all[at],
                all[nearest]
            );
        }
    }
    Ok(looked.len())
}
