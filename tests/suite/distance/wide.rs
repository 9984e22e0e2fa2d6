//! Distances of matrices with too many columns for direct-address tables.

use burn::tensor::Tensor;
use sparsek::{
    distance::{Measure, Metric, ROUTINES, Routine, pairwise_distances},
    sparse::{Csr as Matrix, MAX_ENTRIES},
};
use sparsek_tests::{
    backend::Backend,
    oracle::{distance, spmm::Csr},
    runner::{Cases, Outcome, Verdict},
    sparse::{Sparse, counts, pattern, rounded, vector},
};

use crate::distance::common::{SINGLE, distances, spread};

/// More columns than direct-address tables allow, and the maximum.
const COLUMNS: [usize; 2] = [100_000_000, MAX_ENTRIES];

pub fn add(cases: &mut Cases, backend: &Backend) {
    let forced = backend.client.iter().flat_map(|_| ROUTINES.map(Some));
    for cols in COLUMNS {
        for routine in [None].into_iter().chain(forced.clone()) {
            let name = routine.map_or("auto", Routine::name);
            for &metric in Metric::ALL {
                let case =
                    format!("tensor/distance/{name}/f32/{}-of-{cols}-columns", metric.name());
                cases.add(backend, case, move |b| of_metric(b, metric, routine, cols));
            }
        }
        let case = format!("tensor/distance/gradient/f32/{cols}-columns");
        cases.check(backend, case, move |b| gradients(b, cols));
    }
}

fn of_metric(backend: &Backend, metric: Metric, routine: Option<Routine>, cols: usize) -> Outcome {
    let few = Csr {
        rows: 3,
        cols: 5,
        indptr: vec![0, 2, 3, 5],
        indices: vec![0, 4, 2, 1, 4],
        weights: vec![1.0, 2.0, 3.0, 4.0, 5.0],
    };
    // Long rows are summed in parts.
    let long = [(&[1, 2, 9][..], 31), (&[1, 3], 32)].map(|(of, seed)| counts(3000, of, seed));
    let [one, other] = long;
    let positive = Sparse::ALL[2];
    let pairs = [
        (few.clone(), few),
        (positive.matrix(1), positive.with_rows(7).matrix(2)),
        (Sparse::ALL[0].matrix(3), Sparse::ALL[0].with_rows(9).matrix(4)),
        (one, other),
    ];
    let measure = Measure::from(metric).with_routine(routine);
    for (x, y) in pairs {
        let (x, y) = (rounded::<f32>(&x), rounded::<f32>(&y));
        let wide = [&x, &y].map(|csr| spread(csr, cols));
        let found = match distances::<f32>(backend, [&wide[0], &wide[1]], measure)? {
            Ok(found) => found,
            Err(skipped) => return Ok(skipped),
        };
        let (x, y) = (x.dense(), y.dense());
        for (i, x) in x.iter().enumerate() {
            for (j, y) in y.iter().enumerate() {
                let (name, p) = (metric.name(), metric.p());
                let expected = distance::among_columns(name, p, x, y, cols);
                let scale = distance::scale(name, p, x, y);
                let found = found[i * wide[1].rows + j];
                let bound = SINGLE[0] * expected.abs() + SINGLE[1] * scale;
                let same = found == expected || (found.is_nan() && expected.is_nan());
                let near = (found - expected).abs() <= bound;
                if !same && !near {
                    return Err(format!("rows {i} and {j}: {found} instead of {expected}"));
                }
            }
        }
    }
    Ok(Verdict::Passed)
}

fn gradients(backend: &Backend, cols: usize) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    for metric in [
        Metric::Dot,
        Metric::Euclidean,
        Metric::Cosine,
        Metric::Manhattan,
        Metric::BrayCurtis,
        Metric::Canberra,
        Metric::Hellinger,
        Metric::JensenShannon,
        Metric::Minkowski(3.0),
    ] {
        let [x, y] = [1, 2].map(|seed| rounded::<f32>(&Sparse::ALL[2].matrix(seed)));
        let of = |x: &Csr, y: &Csr| {
            let [x, y] = [x, y].map(|csr| {
                let values: Tensor<1> = vector::<f32>(&csr.weights, &device).require_grad();
                (Matrix::new(pattern(csr), values.clone()), values)
            });
            let matrix = |csr: &Result<Matrix, _>| csr.clone().map_err(|e| format!("{e}"));
            let (of_x, of_y) = (matrix(&x.0)?, matrix(&y.0)?);
            let found = pairwise_distances(&of_x, Some(&of_y), metric);
            let found = found.map_err(|e| e.to_string())?;
            let distances: Vec<f64> = found.to_data().iter::<f64>().collect();
            let gradients = found.backward();
            let gradient = |values: &Tensor<1>| -> Vec<f64> {
                let gradient = values.grad(&gradients).expect("it is tracked");
                gradient.into_data().iter::<f64>().collect()
            };
            Ok::<_, String>((distances, [gradient(&x.1), gradient(&y.1)]))
        };
        let (near, narrow) = of(&x, &y)?;
        let (far, wide) = of(&spread(&x, cols), &spread(&y, cols))?;
        let apart = |a: &[f64], b: &[f64]| {
            let apart = a.iter().zip(b).map(|(a, b)| (a - b).abs() / (1.0 + b.abs()));
            apart.fold(0.0, f64::max)
        };
        let most = apart(&near, &far);
        let most = most.max(apart(&narrow[0], &wide[0]));
        let most = most.max(apart(&narrow[1], &wide[1]));
        // Routines round differently.
        if most.is_nan() || most > 1e-5 {
            return Err(format!("{metric}: off by {most}"));
        }
    }
    Ok(())
}
