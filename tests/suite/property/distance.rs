//! Random distances and neighbors: any two sparse matrices equal the oracle.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::sample::select;
use sparsek::distance::{Measure, Metric, ROUTINES, Routine};
use sparsek_tests::backend::Backend;
use sparsek_tests::runner::{Outcome, Verdict};
use sparsek_tests::sparse::{Places, Sparse, Values, rounded};

use super::{Plan, hold};
use crate::distance::{
    common::{SINGLE, check, distances},
    neighbors,
};

/// Two matrices, a metric and a routine.
#[derive(Clone, Debug)]
struct Request {
    metric: Metric,
    routine: Option<Routine>,
    make: Sparse,
    /// Rows of the second matrix.
    others: usize,
    /// Neighbors, as a fraction of the rows.
    share: f64,
    seed: u64,
}

fn request(forced: bool) -> impl Strategy<Value = Request> {
    let rows = prop_oneof![1 => 0usize..3, 4 => 3usize..40];
    let others = prop_oneof![1 => 0usize..3, 4 => 3usize..60, 1 => 60usize..1100];
    let cols = prop_oneof![1 => 0usize..3, 4 => 3usize..60, 1 => 60usize..400];
    let density = prop_oneof![1 => Just(0.0), 4 => 0.0f64..0.6, 1 => Just(1.0)];
    let places = select(vec![
        Places::Uniform,
        Places::EmptyRows,
        Places::FullRows,
        Places::Skewed,
    ]);
    let values = select(vec![
        Values::Normal,
        Values::Positive,
        Values::Coarse,
        Values::Counts,
        Values::Zeros,
    ]);
    let p = select(vec![0.5, 1.0, 1.5, 2.0, 3.0, 4.0]);
    let metric = (select(Metric::ALL.to_vec()), p).prop_map(|(metric, p)| match metric {
        Metric::Minkowski(_) => Metric::Minkowski(p),
        other => other,
    });
    let mut routines = vec![None];
    routines.extend(ROUTINES.iter().copied().map(Some).filter(|_| forced));
    let how = (metric, select(routines), 0.0f64..1.0, any::<u64>());
    (rows, others, cols, density, (places, values), how).prop_map(
        |(rows, others, cols, density, (places, values), how)| {
            let (metric, routine, share, seed) = how;
            Request {
                metric,
                routine,
                make: Sparse::new("", [rows, cols], density, places, values),
                others,
                share,
                seed,
            }
        },
    )
}

/// Any request that is not refused equals the oracle.
pub fn property(backend: &Backend, plan: Plan) -> Outcome {
    let passed = Cell::new(0);
    hold(
        plan,
        request(backend.client.is_some()),
        |request| match of(backend, &request).map_err(TestCaseError::fail)? {
            Some(reason) => Err(TestCaseError::reject(reason)),
            None => {
                passed.set(passed.get() + 1);
                Ok(())
            }
        },
    )?;
    Ok(match passed.get() {
        0 => Verdict::Skipped("every request was refused".into()),
        _ => Verdict::Passed,
    })
}

/// Returns the reason of a refusal.
fn of(backend: &Backend, request: &Request) -> Result<Option<String>, String> {
    let Request { metric, seed, .. } = *request;
    let other = Sparse {
        rows: request.others,
        ..request.make
    };
    let x = rounded::<f32>(&request.make.matrix(seed));
    let y = rounded::<f32>(&other.matrix(seed.wrapping_add(1)));
    let measure = Measure::from(metric).with_routine(request.routine);
    let found = match distances::<f32>(backend, [&x, &y], measure)? {
        Ok(found) => found,
        Err(Verdict::Skipped(reason)) => return Ok(Some(reason)),
        Err(Verdict::Passed) => unreachable!("a refusal is no pass"),
    };
    let (dense_x, dense_y) = (x.dense(), y.dense());
    check("random", metric, &found, [&dense_x, &dense_y], SINGLE)?;
    let k = (request.share * y.rows as f64) as usize;
    // These metrics have undecided distances, so no order either.
    if k > 0 && !matches!(metric, Metric::Correlation | Metric::BrayCurtis) {
        neighbors::same(backend, measure, metric, [&x, &y], k)?;
    }
    Ok(None)
}
