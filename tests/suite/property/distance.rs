//! Random distances and neighbors: any two sparse matrices equal the oracle.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::sample::select;
use sparsek::distance::{Measure, Metric, ROUTINES, Routine};
use sparsek_tests::{
    backend::Backend,
    runner::{Outcome, Verdict},
    sparse::{Sparse, Structure, Values, rounded},
};

use super::common::{Plan, check_requests};
use crate::distance::{
    common::{SINGLE, check, distances},
    neighbors,
};

#[derive(Clone, Debug)]
struct Request {
    metric: Metric,
    routine: Option<Routine>,
    recipe: Sparse,
    other_rows: usize,
    /// Neighbors, as a fraction of the rows.
    fraction: f64,
    seed: u64,
}

fn request(forced: bool) -> impl Strategy<Value = Request> {
    let rows = prop_oneof![1 => 0usize..3, 4 => 3usize..40];
    let other_rows = prop_oneof![1 => 0usize..3, 4 => 3usize..60, 1 => 60usize..1100];
    let cols = prop_oneof![1 => 0usize..3, 4 => 3usize..60, 1 => 60usize..400];
    let density = prop_oneof![1 => Just(0.0), 4 => 0.0f64..0.6, 1 => Just(1.0)];
    let structure = select(vec![
        Structure::Uniform,
        Structure::EmptyRows,
        Structure::FullRows,
        Structure::Skewed,
    ]);
    let values = select(vec![
        Values::Normal,
        Values::Positive,
        Values::Dyadic,
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
    (rows, other_rows, cols, density, (structure, values), how).prop_map(
        |(rows, other_rows, cols, density, (structure, values), how)| {
            let (metric, routine, fraction, seed) = how;
            Request {
                metric,
                routine,
                recipe: Sparse::new("", [rows, cols], density, structure, values),
                other_rows,
                fraction,
                seed,
            }
        },
    )
}

pub fn property(backend: &Backend, plan: Plan) -> Outcome {
    let passed = Cell::new(0);
    check_requests(plan, request(backend.client.is_some()), |request| {
        match check_request(backend, &request).map_err(TestCaseError::fail)? {
            Some(reason) => Err(TestCaseError::reject(reason)),
            None => {
                passed.set(passed.get() + 1);
                Ok(())
            }
        }
    })?;
    Ok(match passed.get() {
        0 => Verdict::Skipped("every request was refused".into()),
        _ => Verdict::Passed,
    })
}

/// Returns the reason of a refusal.
fn check_request(backend: &Backend, request: &Request) -> Result<Option<String>, String> {
    let Request { metric, seed, .. } = *request;
    let other = Sparse { rows: request.other_rows, ..request.recipe };
    let x = rounded::<f32>(&request.recipe.matrix(seed));
    let y = rounded::<f32>(&other.matrix(seed.wrapping_add(1)));
    let measure = Measure::from(metric).with_routine(request.routine);
    let found = match distances::<f32>(backend, [&x, &y], measure)? {
        Ok(found) => found,
        Err(Verdict::Skipped(reason)) => return Ok(Some(reason)),
        Err(Verdict::Passed) => unreachable!("a refusal is no pass"),
    };
    let (dense_x, dense_y) = (x.dense(), y.dense());
    check("random", metric, &found, [&dense_x, &dense_y], SINGLE)?;
    let k = (request.fraction * y.rows as f64) as usize;
    // These metrics have undecided distances, so no order either.
    if k > 0 && !matches!(metric, Metric::Correlation | Metric::BrayCurtis) {
        neighbors::same(backend, measure, metric, [&x, &y], k)?;
    }
    Ok(None)
}
