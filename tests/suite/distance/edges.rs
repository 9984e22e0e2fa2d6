//! Edge cases of every routine: all exponents, infinite distances, ties, sums that round to one
//! side.

use cubecl::prelude::*;
use sparsek::{
    distance::{
        Algebra, Measure, Metric, ROUTINES, Routine, Semiring, pairwise_distances, quotient,
    },
    semiring,
};
use sparsek_tests::{
    backend::Backend,
    data::Random,
    element::Element,
    oracle::{distance::distance, spmm::Csr},
    runner::{Cases, Outcome, Verdict},
    sparse::{self, Sparse, Structure, Values, rounded, upload},
};

use crate::distance::common::{SINGLE, check, distances};

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
        cases.add(backend, case("no-columns"), move |b| no_columns(b, routine));
        let case = case("chebyshev-of-ties");
        cases.add(backend, case, move |b| ties::<f32>(b, routine));
        for metric in COUNTED {
            let case = format!("tensor/distance/{name}/f32/{}-of-counts", metric.name());
            cases.add(backend, case, move |b| counts(b, metric, routine, LONG));
            let case = format!("tensor/distance/{name}/f32/{}-of-few-counts", metric.name());
            cases.add(backend, case, move |b| counts(b, metric, routine, SHORT));
        }
    }
    let case = |dtype: &str| format!("tensor/distance/auto/{dtype}/chebyshev-of-ties");
    cases.add(backend, case("f64"), |b| ties::<f64>(b, None));
    cases.add(backend, case("f16"), |b| ties::<half::f16>(b, None));
}

/// Rows without columns: no distance reads an entry.
fn no_columns(backend: &Backend, routine: Option<Routine>) -> Outcome {
    let rows = |rows: usize| Csr {
        rows,
        cols: 0,
        indptr: vec![0; rows + 1],
        indices: Vec::new(),
        weights: Vec::new(),
    };
    for metric in [Metric::Manhattan, Metric::Euclidean, Metric::Dot] {
        let measure = Measure::from(metric).with_routine(routine);
        let found = match distances::<f32>(backend, [&rows(3), &rows(70)], measure)? {
            Ok(found) => found,
            Err(skipped) => return Ok(skipped),
        };
        if found != vec![0.0; 210] {
            return Err(format!("{}: {found:?}", metric.name()));
        }
    }
    Ok(Verdict::Passed)
}

/// Sum of min(a, b) / max(a, b).
struct Quotients;

semiring! {
    #[cube]
    impl Semiring for Quotients {
        const ALGEBRA: Algebra = Algebra::PRODUCTS;

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            quotient::<S>(min(a, b), max(a, b))
        }
    }
}

/// One column with values of all normal exponents.
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
    let pairs = x.weights.iter().flat_map(|a| y.weights.iter().map(move |b| (a, b)));
    for ((a, b), found) in pairs.zip(found) {
        let expected = a.min(*b) / a.max(*b);
        let bound = 3e-7 * expected + 2f64.powi(-60);
        if (found - expected).abs() > bound || found.is_nan() {
            return Err(format!("{a} and {b}: {found} instead of {expected}"));
        }
    }
    Ok(Verdict::Passed)
}

/// Metrics with sums over all columns, one for each way to sum.
const COUNTED: [Metric; 6] = [
    Metric::Dot,
    Metric::Manhattan,
    Metric::Canberra,
    Metric::BrayCurtis,
    Metric::JensenShannon,
    Metric::Minkowski(3.0),
];

/// Columns for long rows, and for short rows that still need more than one plane each.
const LONG: u32 = 26_000;
const SHORT: u32 = 400;

/// Rows of log-counts, whose terms round to one side. Some are full, some sparse, some short.
fn counts(backend: &Backend, metric: Metric, routine: Option<Routine>, cols: u32) -> Outcome {
    let [x, y] = [(&[1, 3, 500][..], 15), (&[1, 1, 4, 100, 7], 16)]
        .map(|(one_of, seed)| rounded::<f32>(&sparse::counts(cols, one_of, seed)));
    let measure = Measure::from(metric).with_routine(routine);
    let found = match distances::<f32>(backend, [&x, &y], measure)? {
        Ok(found) => found,
        Err(skipped) => return Ok(skipped),
    };
    let rows = [&x, &y].map(Csr::dense);
    check(metric.name(), metric, &found, [&rows[0], &rows[1]], SINGLE)?;
    Ok(Verdict::Passed)
}

/// Rows with all columns of another, or all but one, and sometimes more.
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
        Csr { rows, cols: COLS as usize, indptr, indices, weights }
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
    check("supersets", metric, &found, [&x.dense(), &y.dense()], SINGLE)?;
    Ok(Verdict::Passed)
}

/// Few columns and values, so that rows share their greatest elements fully, partly or not.
fn ties<T: Element>(backend: &Backend, routine: Option<Routine>) -> Outcome {
    if !backend.device.supports_dtype(T::dtype()) {
        return Ok(Verdict::Skipped(format!("the device has no {}", T::NAME)));
    }
    let recipe = Sparse::new("", [70, 7], 0.5, Structure::Uniform, Values::FewValues);
    let (x, y) = (recipe.matrix(15), recipe.with_rows(300).matrix(16));
    let measure = Measure::from(Metric::Chebyshev).with_routine(routine);
    let found = match distances::<T>(backend, [&x, &y], measure)? {
        Ok(found) => found,
        Err(skipped) => return Ok(skipped),
    };
    let with_itself = upload::<T>(&y, &backend.device);
    let with_itself = pairwise_distances(&with_itself, None, measure).expect("one matrix");
    let with_itself: Vec<f64> = with_itself.into_data().iter::<f64>().collect();
    let (x, y) = (x.dense(), y.dense());
    let mut kinds = [0; 5];
    for (x, found) in [(&x, found), (&y, with_itself)] {
        let pairs = x.iter().flat_map(|x| y.iter().map(move |y| (x, y)));
        for ((x, y), found) in pairs.zip(found) {
            let expected = distance("chebyshev", 0.0, x, y);
            if found != expected {
                return Err(format!("{x:?} and {y:?}: {found} instead of {expected}"));
            }
            kinds[kind(x, y, expected)] += 1;
        }
    }
    match kinds.contains(&0) {
        true => Err(format!("pairs of a kind are lacking: {kinds:?}")),
        false => Ok(Verdict::Passed),
    }
}

/// Compares a distance with the greatest magnitude: zero rows, equal rows, less, equal, more.
fn kind(x: &[f64], y: &[f64], distance: f64) -> usize {
    let most = x.iter().chain(y).fold(0.0, |most: f64, a| most.max(a.abs()));
    match distance.total_cmp(&most) {
        _ if most == 0.0 => 0,
        _ if x == y => 1,
        order => (order as i8 + 3) as usize,
    }
}
