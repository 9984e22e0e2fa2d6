//! Integer inner products on tensor cores: same bits as other routines, other values refused.

use cubecl::prelude::*;
use sparsek::distance::{Measure, Metric, NearestNeighbors, Routine, pairwise_distances};
use sparsek_kernels::distance as kernel;
use sparsek_tests::{
    backend::Backend,
    element::Element,
    oracle::spmm::Csr,
    panics::expect_panic,
    runner::{Cases, Outcome, Verdict},
    sparse::{Sparse, Structure, Values, rounded, upload},
};

use crate::distance::common::{SINGLE, check, distances, neighbors};

const METRICS: [(Metric, bool); 5] = [
    (Metric::Dot, true),
    (Metric::Euclidean, true),
    (Metric::SqEuclidean, true),
    (Metric::Cosine, false),
    (Metric::Correlation, false),
];

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    for (metric, exact) in METRICS {
        let case =
            |what: &str| format!("tensor/distance/tensor_core/integers/{what}/{}", metric.name());
        cases.add(backend, case("f32"), move |b| integers::<f32>(b, metric, exact));
        cases.add(backend, case("f16"), move |b| integers::<half::f16>(b, metric, exact));
        cases.add(backend, case("batches"), move |b| batches(b, metric, exact));
    }
    let refused = "tensor/distance/tensor_core/integers/refused".to_string();
    cases.add(backend, refused, refusals);
    let greatest = "kernel/distance/greatest".to_string();
    cases.add(backend, greatest, greatest_magnitude::<f32>);
    let greatest = "kernel/distance/greatest/f16".to_string();
    cases.add(backend, greatest, greatest_magnitude::<half::f16>);
}

fn matrix([rows, cols]: [usize; 2], density: f64, structure: Structure, seed: u64) -> Csr {
    let mut csr = Sparse::new("", [rows, cols], density, structure, Values::Dyadic).matrix(seed);
    csr.weights.iter_mut().for_each(|w| *w = (*w * 4.0).round());
    csr
}

/// Matrix pairs with sizes that are multiples of tiles and steps, or not.
fn pairs() -> impl Iterator<Item = [Csr; 2]> {
    let sizes = [
        ([1, 1], 1),
        ([64, 32], 64),
        ([65, 33], 200),
        ([256, 100], 129),
        ([300, 40], 700),
        ([40, 3000], 30),
    ];
    let structure = [Structure::Uniform, Structure::EmptyRows, Structure::FullRows];
    sizes.into_iter().zip(0..).flat_map(move |((size, rows), seed)| {
        structure.into_iter().map(move |structure| {
            let of = |size, seed| matrix(size, 0.2, structure, seed);
            [of(size, seed), of([rows, size[1]], seed + 50)]
        })
    })
}

/// Distances equal the oracle's, and where nothing rounds those of merge, bit for bit.
fn integers<T: Element>(backend: &Backend, metric: Metric, exact: bool) -> Outcome {
    let by = |routine| Measure::from(metric).with_routine(Some(routine));
    for [x, y] in pairs() {
        let (x, y) = (rounded::<T>(&x), rounded::<T>(&y));
        let found = match distances::<T>(backend, [&x, &y], by(Routine::TensorCore))? {
            Ok(found) => found,
            Err(skipped) => return Ok(skipped),
        };
        let rows = [&x, &y].map(Csr::dense);
        let name = format!("{} x {} and {}", x.rows, x.cols, y.rows);
        check(&name, metric, &found, [&rows[0], &rows[1]], SINGLE)?;
        if exact {
            same(&name, &found, &by_merge::<T>(backend, [&x, &y], metric)?)?;
        }
        let device = &backend.device;
        let with_itself =
            pairwise_distances(&upload::<T>(&x, device), None, by(Routine::TensorCore));
        let with_itself = with_itself.map_err(|error| error.to_string())?.into_data();
        let with_itself: Vec<f64> = with_itself.iter::<f64>().collect();
        check(&name, metric, &with_itself, [&rows[0], &rows[0]], SINGLE)?;
        if exact {
            same(&name, &with_itself, &by_merge::<T>(backend, [&x, &x], metric)?)?;
        }
    }
    Ok(Verdict::Passed)
}

fn by_merge<T: Element>(
    backend: &Backend,
    pair: [&Csr; 2],
    metric: Metric,
) -> Result<Vec<f64>, String> {
    let measure = Measure::from(metric).with_routine(Some(Routine::Merge));
    match distances::<T>(backend, pair, measure)? {
        Ok(by_merge) => Ok(by_merge),
        Err(refused) => Err(format!("merge: {refused:?}")),
    }
}

fn same(name: &str, found: &[f64], by_merge: &[f64]) -> Result<(), String> {
    let differs = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits();
    match found.iter().zip(by_merge).position(differs) {
        _ if found.len() != by_merge.len() => Err(format!("{name}: {} distances", found.len())),
        None => Ok(()),
        Some(at) => Err(format!("{name}, pair {at}: {} instead of {}", found[at], by_merge[at])),
    }
}

fn batches(backend: &Backend, metric: Metric, exact: bool) -> Outcome {
    let csr = upload::<f32>(&matrix([500, 90], 0.3, Structure::Uniform, 3), &backend.device);
    let by = |routine| {
        let measure = Measure::from(metric).with_routine(Some(routine));
        NearestNeighbors::fit(csr.clone(), measure)
    };
    let mut expected = None;
    if exact {
        expected = Some(neighbors(&by(Routine::Merge), None, 7)?);
    }
    let product = by(Routine::TensorCore);
    for index in [
        product.clone(),
        product.clone().with_query_batch(77),
        product.clone().with_index_batch(130),
        product.clone().with_index_batch(64).with_query_batch(3),
    ] {
        let mut found = Err("it did not return".to_string());
        if let Ok(message) = expect_panic(|| found = neighbors(&index, None, 7)) {
            return match message.contains("cannot run here:") {
                true => Ok(Verdict::Skipped(message)),
                false => Err(message),
            };
        }
        let found = found?;
        if *expected.get_or_insert_with(|| found.clone()) != found {
            return Err("other neighbors".into());
        }
    }
    Ok(Verdict::Passed)
}

/// Values that are not integers, or whose sums may round.
fn refusals(backend: &Backend) -> Outcome {
    let good = matrix([3, 20], 1.0, Structure::Uniform, 1);
    let with = |value: f64| {
        let mut csr = good.clone();
        csr.weights[7] = value;
        csr
    };
    let measure = Measure::from(Metric::Dot).with_routine(Some(Routine::TensorCore));
    if let Err(skipped) = distances::<f32>(backend, [&good, &good], measure)? {
        return Ok(skipped);
    }
    for value in [0.5, 2049.0, 1e30, f64::INFINITY, f64::NAN, 1e-30] {
        for pair in [[&good, &with(value)], [&with(value), &good]] {
            match distances::<f32>(backend, pair, measure)? {
                Err(Verdict::Skipped(message)) if message.contains("values are whole numbers") => {}
                other => return Err(format!("{value}: {other:?}")),
            }
        }
    }
    // 20 products of 2000 and 2000.
    let large = with(2000.0);
    match distances::<f32>(backend, [&large, &large], measure)? {
        Err(Verdict::Skipped(message)) if message.contains("sums of squares") => {}
        other => return Err(format!("large sums: {other:?}")),
    }
    // 64 rows of 2^22 f16 elements.
    let wide = Csr { cols: 1 << 22, ..good.clone() };
    match distances::<f32>(backend, [&wide, &wide], measure)? {
        Err(Verdict::Skipped(message)) if message.contains("laid out densely") => {}
        other => return Err(format!("wide rows: {other:?}")),
    }
    Ok(Verdict::Passed)
}

fn greatest_magnitude<T: Element>(backend: &Backend) -> Outcome {
    let Some(client) = &backend.client else {
        return Err("there is no client".into());
    };
    if let Some(reason) = backend.lacks(T::dtype()).or(backend.shared_memory_defect()) {
        return Ok(Verdict::Skipped(reason));
    }
    for len in [0, 1, 100, 70_000] {
        for (value, expected) in [
            (0.0, 3.0),
            (-17.0, 17.0),
            (2048.0, 2048.0),
            (0.5, f32::INFINITY),
            (f64::NAN, f32::INFINITY),
            (f64::NEG_INFINITY, f32::INFINITY),
        ] {
            let mut values = vec![T::of(-3.0); len];
            if let Some(last) = values.last_mut() {
                *last = T::of(value);
            }
            let expected = match len {
                0 => 0.0,
                1 if value == 0.0 => 0.0,
                _ => expected,
            };
            let values = client.create_from_slice(bytemuck::cast_slice(&values));
            let found = kernel::greatest(client, &values, T::elem_type(), len);
            let found = found.map_err(|error| error.to_string())?;
            let bytes = client.read_one(found).map_err(|error| error.to_string())?;
            let found = f32::from_bits(u32::from_bytes(&bytes)[0]);
            if found.to_bits() != f32::to_bits(expected) {
                return Err(format!("{value} among {len}: {found} instead of {expected}"));
            }
        }
    }
    Ok(Verdict::Passed)
}
