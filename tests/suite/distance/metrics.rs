//! Distances between rows of sparse matrices, for every metric and routine.

use cubecl::prelude::*;
use sparsek::{
    distance::{
        Algebra, DistanceError, Measure, Metric, ROUTINES, Routine, Semiring, infinity,
        pairwise_distances,
    },
    semiring,
};
use sparsek_tests::{
    backend::Backend,
    element::Element,
    oracle::{distance, spmm::Csr},
    runner::{Cases, Outcome, Verdict},
    sparse::{Sparse, Structure, Values, near_duplicates, rounded, upload},
};

use crate::distance::common::{SINGLE, check, distances};

const DOUBLE: [f64; 2] = [1e-11, 1e-12];

pub fn add(cases: &mut Cases, backend: &Backend) {
    let forced = backend.client.iter().flat_map(|_| ROUTINES.map(Some));
    for routine in [None].into_iter().chain(forced) {
        let name = routine.map_or("auto", Routine::name);
        for &metric in Metric::ALL {
            let case = format!("tensor/distance/{name}/f32/{}", metric.name());
            cases.add(backend, case, move |b| of_metric::<f32>(b, metric, routine));
        }
        for (ring, add) in [
            ("min-plus", semiring_case::<MinPlus> as Ring),
            ("max-times", semiring_case::<MaxTimes>),
            ("or-and", semiring_case::<OrAnd>),
        ] {
            let case = format!("tensor/distance/{name}/f32/{ring}");
            cases.add(backend, case, move |b| add(b, routine, ring));
        }
    }
    for &metric in Metric::ALL {
        let case = |dtype| format!("tensor/distance/auto/{dtype}/{}", metric.name());
        cases.add(backend, case("f64"), move |b| of_metric::<f64>(b, metric, None));
        cases.add(backend, case("f16"), move |b| of_metric::<half::f16>(b, metric, None));
    }
    let bf16 = "tensor/distance/auto/bf16/manhattan".to_string();
    cases.add(backend, bf16, |b| of_metric::<half::bf16>(b, Metric::Manhattan, None));
    cases.check(backend, "tensor/distance/errors", errors);
}

type Ring = fn(&Backend, Option<Routine>, &'static str) -> Outcome;

/// Minimum sum; +∞ without common columns.
struct MinPlus;

semiring! {
    #[cube]
    impl Semiring for MinPlus {
        const ALGEBRA: Algebra = Algebra::PRODUCTS;

        fn identity<S: Float>() -> S {
            infinity::<S>()
        }

        fn reduce<S: Float>(a: S, b: S) -> S {
            min(a, b)
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            a + b
        }
    }
}

/// Maximum product; −∞ without common columns.
struct MaxTimes;

semiring! {
    #[cube]
    impl Semiring for MaxTimes {
        const ALGEBRA: Algebra = Algebra { largest: true, ..Algebra::PRODUCTS };

        fn identity<S: Float>() -> S {
            -infinity::<S>()
        }

        fn reduce<S: Float>(a: S, b: S) -> S {
            max(a, b)
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            a * b
        }
    }
}

struct OrAnd;

semiring! {
    #[cube]
    impl Semiring for OrAnd {
        const ALGEBRA: Algebra = Algebra::PRODUCTS;

        fn reduce<S: Float>(a: S, b: S) -> S {
            max(a, b)
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let lone = a == S::new(0.0) || b == S::new(0.0);
            select(lone, S::new(0.0), S::new(1.0))
        }
    }
}

fn rows(csr: &Csr) -> Vec<Vec<f64>> {
    csr.dense()
}

fn of_metric<T: Element>(backend: &Backend, metric: Metric, routine: Option<Routine>) -> Outcome {
    if !backend.device.supports_dtype(T::dtype()) {
        return Ok(Verdict::Skipped(format!("the device has no {}", T::NAME)));
    }
    let tolerance = if T::NAME == "f64" { DOUBLE } else { SINGLE };
    let measure = Measure::from(metric).with_routine(routine);
    let recipes = Sparse::ALL.iter().enumerate();
    let mut pairs: Vec<(String, Csr, Csr)> = recipes
        .map(|(seed, recipe)| {
            let seed = seed as u64;
            let other = Sparse { rows: recipe.rows / 2 + 1, ..*recipe };
            (recipe.name.into(), recipe.matrix(seed), other.matrix(seed + 100))
        })
        .collect();
    // More rows than a tile.
    for rows in [257, 1025, 2500] {
        let recipe = Sparse::new("", [5, 30], 0.3, Structure::Uniform, Values::Dyadic);
        let other = Sparse { rows, ..recipe };
        pairs.push((format!("{rows} rows"), recipe.matrix(8), other.matrix(9)));
    }
    // All elements, more rows and columns than a tile of registers holds.
    for (shape, rows, values) in [([150, 70], 67, Values::Normal), ([3, 33], 129, Values::Positive)]
    {
        let recipe = Sparse::new("", shape, 1.0, Structure::Uniform, values);
        let other = recipe.with_rows(rows);
        pairs.push((format!("{rows} dense rows"), recipe.matrix(13), other.matrix(14)));
    }
    // More columns than shared memory holds; the rows need few or many parts of a hash table.
    let recipe = Sparse::new("", [5, 13_000], 0.02, Structure::FullRows, Values::Normal);
    let other = recipe.with_rows(3);
    pairs.push(("full rows".into(), recipe.matrix(10), other.matrix(11)));
    let close = near_duplicates(12, 40, 7);
    pairs.push(("near-duplicates".into(), close.clone(), close));
    let too_long = |skipped: &Verdict| {
        let Verdict::Skipped(reason) = skipped else {
            return false;
        };
        routine == Some(Routine::ExpandSort) && reason.contains("bytes of shared memory")
    };
    let mut verdict = None;
    for (name, x, y) in pairs {
        let (x, y) = (rounded::<T>(&x), rounded::<T>(&y));
        let found = match distances::<T>(backend, [&x, &y], measure)? {
            Ok(found) => found,
            Err(skipped) if too_long(&skipped) => {
                verdict.get_or_insert(skipped);
                continue;
            }
            Err(skipped) => return Ok(skipped),
        };
        check(&name, metric, &found, [&rows(&x), &rows(&y)], tolerance)?;
        verdict = Some(Verdict::Passed);
    }
    Ok(verdict.expect("there are pairs"))
}

fn semiring_case<M: Semiring + sparsek::distance::HostSemiring>(
    backend: &Backend,
    routine: Option<Routine>,
    name: &str,
) -> Outcome {
    let oracle = match name {
        "min-plus" => distance::min_plus,
        "max-times" => distance::max_times,
        _ => distance::or_and,
    };
    let measure = Measure::semiring::<M>().with_routine(routine);
    for (seed, recipe) in Sparse::ALL.iter().enumerate() {
        let (x, y) = (recipe.matrix(seed as u64), recipe.matrix(seed as u64 + 50));
        let (x, y) = (rounded::<f32>(&x), rounded::<f32>(&y));
        let found = match distances::<f32>(backend, [&x, &y], measure)? {
            Ok(found) => found,
            Err(skipped) => return Ok(skipped),
        };
        let entries = |csr: &Csr| -> Vec<Vec<(usize, f64)>> {
            let mut rows = vec![Vec::new(); csr.rows];
            csr.entries().for_each(|(i, j, w)| rows[i].push((j, w)));
            rows
        };
        let (x, y) = (entries(&x), entries(&y));
        let pairs = x.iter().flat_map(|x| y.iter().map(move |y| (x, y)));
        for (at, ((x, y), found)) in pairs.zip(found).enumerate() {
            let expected = f64::from(oracle(x, y) as f32);
            if (found - expected).abs() > 1e-6 * expected.abs() {
                let name = recipe.name;
                return Err(format!("{name}, pair {at}: {found} instead of {expected}"));
            }
        }
    }
    Ok(Verdict::Passed)
}

fn errors(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    let of = |cols| {
        let recipe = Sparse { cols, ..Sparse::ALL[0] };
        upload::<f32>(&recipe.matrix(1), device)
    };
    for p in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        match pairwise_distances(&of(50), None, Metric::Minkowski(p)) {
            Err(DistanceError::Parameter { .. }) => {}
            other => return Err(format!("p = {p}: {:?}", other.map(|_| ()))),
        }
    }
    match pairwise_distances(&of(50), Some(&of(51)), Metric::Dot) {
        Err(DistanceError::Columns { x: 50, y: 51 }) => Ok(()),
        other => Err(format!("other widths: {:?}", other.map(|_| ()))),
    }
}
