//! Distances by every routine where numbers are of all sizes, and where few of them are finite.

use cubecl::prelude::*;
use sparsek::{
    distance::{Measure, Metric, Needs, ROUTINES, Routine, Semiring, quotient},
    semiring,
};
use sparsek_tests::{
    backend::Backend,
    data::Random,
    oracle::spmm::Csr,
    runner::{Cases, Outcome, Verdict},
    sparse::rounded,
};

use crate::distance::{SINGLE, check, distances};

pub fn add(cases: &mut Cases, backend: &Backend) {
    let forced = backend.client.iter().flat_map(|_| ROUTINES.map(Some));
    for routine in [None].into_iter().chain(forced) {
        let name = routine.map_or("auto", Routine::name);
        let case = |what: &str| format!("tensor/distance/{name}/f32/{what}");
        cases.add(backend, case("quotients"), move |b| quotients(b, routine));
        for metric in [Metric::KullbackLeibler, Metric::SymmetricKl] {
            let case = case(&format!("{}-of-supersets", metric.name()));
            cases.add(backend, case, move |b| supersets(b, metric, routine));
        }
    }
}

/// The lesser of two numbers divided by the greater.
struct Quotients;

semiring! {
    #[cube]
    impl Semiring for Quotients {
        const NEEDS: Needs = Needs { ..Needs::PRODUCTS };

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            quotient::<S>(min(a, b), max(a, b))
        }
    }
}

/// One column of numbers of all normal exponents.
fn quotients(backend: &Backend, routine: Option<Routine>) -> Outcome {
    let mut random = Random::new(13);
    let mut column = |rows: usize| Csr {
        rows,
        cols: 1,
        indptr: (0..=rows as u32).collect(),
        indices: vec![0; rows],
        weights: (0..rows)
            .map(|row| {
                let exponent = (row * 254 / rows) as u32 + 1;
                let bits = exponent << 23 | random.bits() as u32 >> 9;
                f64::from(f32::from_bits(bits))
            })
            .collect(),
    };
    let (x, y) = (column(300), column(2000));
    let measure = Measure::semiring::<Quotients>().with_routine(routine);
    let found = match distances::<f32>(backend, [&x, &y], measure)? {
        Ok(found) => found,
        Err(skipped) => return Ok(skipped),
    };
    let pairs = x
        .weights
        .iter()
        .flat_map(|a| y.weights.iter().map(move |b| (a, b)));
    for ((a, b), found) in pairs.zip(found) {
        let expected = a.min(*b) / a.max(*b);
        let bound = 3e-7 * expected + 2f64.powi(-60);
        if (found - expected).abs() > bound || found.is_nan() {
            return Err(format!("{a} and {b}: {found} instead of {expected}"));
        }
    }
    Ok(Verdict::Passed)
}

/// Rows that have all columns of another, or all but one, and some of them something else.
fn supersets(backend: &Backend, metric: Metric, routine: Option<Routine>) -> Outcome {
    const COLS: u32 = 1500;
    let mut random = Random::new(14);
    let base: Vec<u32> = (0..COLS).filter(|_| random.below(10) == 0).collect();
    let mut matrix = |rows: usize| {
        let (mut indptr, mut indices, mut weights) = (vec![0], Vec::new(), Vec::new());
        for row in 0..rows {
            let lacking = (row % 3 == 1).then(|| base[row * 7 % base.len()]);
            for column in 0..COLS {
                let more = row % 4 == 2 && random.below(5) == 0;
                if Some(column) == lacking || !(more || base.contains(&column)) {
                    continue;
                }
                let sign = match (row % 11, random.below(100)) {
                    (5, 0) => -1.0,
                    (7, 0) => 0.0,
                    _ => 1.0,
                };
                indices.push(column);
                weights.push(sign * f64::from(0.01 + random.uniform() as f32));
            }
            indptr.push(indices.len() as u32);
        }
        Csr {
            rows,
            cols: COLS as usize,
            indptr,
            indices,
            weights,
        }
    };
    let (x, y) = (rounded::<f32>(&matrix(40)), rounded::<f32>(&matrix(600)));
    let measure = Measure::from(metric).with_routine(routine);
    let found = match distances::<f32>(backend, [&x, &y], measure)? {
        Ok(found) => found,
        Err(skipped) => return Ok(skipped),
    };
    let finite = found.iter().filter(|d| d.is_finite()).count();
    if finite == 0 || finite == found.len() {
        return Err(format!("{finite} distances of {} are finite", found.len()));
    }
    check(
        "supersets",
        metric,
        &found,
        [&x.dense(), &y.dense()],
        SINGLE,
    )?;
    Ok(Verdict::Passed)
}
