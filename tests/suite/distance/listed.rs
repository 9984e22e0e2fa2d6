//! Distances to listed rows, and searches that list rows.

use burn::tensor::DType;
use cubecl::ir::ElemType;
use sparsek::distance::{Metric, NearestNeighbors};
use sparsek_kernels::{
    KernelError,
    dense::filters_columns,
    distance::{DenseForm, Listed, dense_distances, listed_distances},
};
use sparsek_tests::{
    backend::Backend,
    data::Random,
    element::Element,
    oracle::distance,
    runner::{Cases, Outcome, Verdict},
};

use crate::{
    distance::{
        common::{neighbors, same_bits},
        dense::{Rows, normals, upload},
    },
    kernels::{I32, I64, read, read_positions},
};

const METRICS: [Metric; 4] = [Metric::Euclidean, Metric::Cosine, Metric::Correlation, Metric::Dot];

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    for (name, form) in [
        ("root", DenseForm::Difference { root: true }),
        ("angle", DenseForm::Angle { centered: false }),
        ("product", DenseForm::Product),
    ] {
        for index in [I32, I64] {
            let case = format!("kernel/distance/listed/{name}/{index:?}");
            cases.add(backend, case, move |b| kernel(b, form, index));
        }
    }
    cases.check(backend, "kernel/distance/listed/refused", refused);
    for metric in METRICS {
        let case = format!("tensor/neighbors/dense/{}/listed", metric.name());
        cases.add(backend, case, move |b| search(b, metric));
    }
}

/// Lists in any order, empty, full, and too long, have the distances of all pairs, bit for bit.
fn kernel(backend: &Backend, form: DenseForm, index: ElemType) -> Outcome {
    let client = backend.client.as_ref().expect("asked for with one");
    let lacking = (index == I64).then(|| backend.lacks(DType::I64)).flatten();
    if let Some(reason) = lacking.or(backend.shared_memory_defect()) {
        return Ok(Verdict::Skipped(reason));
    }
    let (count, row_count, columns, capacity) = (9, 300, 21, 40);
    let mut random = Random::new(5);
    let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| random.normal() as f32).collect() };
    let (queries, rows) = (draw(count * columns), draw(row_count * columns));
    let lengths: Vec<u32> = vec![0, 1, 2, 17, 39, 40, 41, 300, 33];
    let mut random = Random::new(6);
    let mut listed = Vec::new();
    for _ in 0..count {
        // A step prime to the rows visits each once.
        let (start, step) = (random.below(row_count), 7 + 30 * random.below(5));
        listed.extend((0..capacity).map(|slot| ((start + slot * step) % row_count) as u32));
    }
    let upload = |bytes: &[u8]| client.create_from_slice(bytes);
    let [queries, rows] = [&queries, &rows].map(|all| upload(bytemuck::cast_slice(all)));
    let (numbers, counts) =
        (upload(bytemuck::cast_slice(&listed)), upload(bytemuck::cast_slice(&lengths)));
    let dtype = f32::elem_type();
    let sizes = [count, row_count, columns];
    let operands = [&queries, &rows];
    let all = dense_distances(client, form, operands, sizes, None, dtype);
    let all = read::<f32>(client, all.map_err(|e| e.to_string())?, count * row_count);
    let lists = Listed { numbers: &numbers, counts: &counts, capacity };
    let found = listed_distances(client, form, operands, sizes, lists, [dtype, index]);
    let (distances, rows) = found.map_err(|e| e.to_string())?;
    let distances = read::<f32>(client, distances, count * capacity);
    let rows = read_positions(client, rows, index, count * capacity);
    let farthest = if form == DenseForm::Product { f32::NEG_INFINITY } else { f32::INFINITY };
    for query in 0..count {
        let place = query * capacity;
        let length = lengths[query] as usize;
        let mut own = listed[place..place + length.min(capacity)].to_vec();
        own.sort_unstable();
        for slot in 0..capacity {
            let (found, row) = (distances[place + slot], rows[place + slot]);
            let right = if length > capacity {
                found.is_nan()
            } else if let Some(&number) = own.get(slot) {
                let expected = all[query * row_count + number as usize];
                row == i64::from(number) && found.to_bits() == expected.to_bits()
            } else {
                row == row_count as i64 - 1 && found == farthest
            };
            if !right {
                return Err(format!("query {query}, slot {slot}: row {row} at {found}"));
            }
        }
    }
    Ok(Verdict::Passed)
}

fn refused(backend: &Backend) -> Result<(), String> {
    let client = backend.client.as_ref().expect("asked for with one");
    let (form, dtype) = (DenseForm::Product, f32::elem_type());
    let few = client.create_from_slice(&[0; 64]);
    let listed = |capacity| Listed { numbers: &few, counts: &few, capacity };
    let call = |capacity| {
        let sizes = [4, 2, 2];
        listed_distances(client, form, [&few, &few], sizes, listed(capacity), [dtype, I32])
    };
    match call(1 << 26) {
        Err(KernelError::Routine { .. }) => {}
        result => return Err(format!("a long list: {:?}", result.err())),
    }
    match (backend.shared_memory_defect(), call(8)) {
        (None, Err(KernelError::BufferTooShort { .. }))
        | (Some(_), Err(KernelError::Routine { .. })) => Ok(()),
        (_, result) => Err(format!("short lists: {:?}", result.err())),
    }
}

/// An index of many rows, which are listed: neighbors equal those in parts, whose bounds are in
/// memory, bit for bit, and distances the oracle's.
fn search(backend: &Backend, metric: Metric) -> Outcome {
    let cols = 12;
    let client = backend.client.as_ref().expect("asked for with one");
    if !filters_columns(client, cols) {
        return Ok(Verdict::Skipped("lists need TF32".into()));
    }
    let count = 66_000;
    let usual = normals::<f32>([count, cols], 1);
    // Sorted by norm; few distinct rows, so that lists overflow; rows without bounds.
    let mut sorted = usual.clone();
    let norm = |row: &Vec<f64>| row.iter().map(|x| x * x).sum::<f64>();
    sorted.sort_by(|a, b| norm(a).total_cmp(&norm(b)));
    let copies: Rows = (0..count).map(|row| usual[row % 29].clone()).collect();
    let mut special = usual.clone();
    for (row, value) in [(0, f64::NAN), (64, f64::INFINITY), (65_999, f64::NEG_INFINITY)] {
        special[row][row % cols] = value;
    }
    let mut query = normals::<f32>([37, cols], 2);
    query[3] = usual[640].clone();
    query[4][2] = f64::NAN;
    for (name, index) in
        [("usual", &usual), ("sorted", &sorted), ("copies", &copies), ("special", &special)]
    {
        let fitted = NearestNeighbors::fit(upload::<f32>(index, cols, backend), metric);
        let queried = upload::<f32>(&query, cols, backend);
        for k in [1, 10, 60] {
            let parts = fitted.clone().with_index_batch(40_000);
            let expected = neighbors(&parts, Some(&queried), k)?;
            for fitted in [fitted.clone(), fitted.clone().with_query_batch(16)] {
                if !same_bits(&neighbors(&fitted, Some(&queried), k)?, &expected) {
                    return Err(format!("{metric}, {name}, k {k}: other neighbors than in parts"));
                }
            }
        }
        if name == "usual" {
            let parts = fitted.clone().with_index_batch(40_000);
            if !same_bits(&neighbors(&fitted, None, 2)?, &neighbors(&parts, None, 2)?) {
                return Err(format!("{metric}: other neighbors of the index itself"));
            }
        }
        if name == "special" {
            // The cases of fewer rows compare NaN with the oracle.
            continue;
        }
        let found = neighbors(&fitted, Some(&queried), 10)?;
        for (at, row) in query.iter().enumerate().filter(|&(at, _)| at != 4) {
            let (name, p) = (metric.name(), metric.p());
            let nearest = distance::nearest(name, p, row, index, 10, None);
            for (slot, &(j, expected)) in nearest.iter().enumerate() {
                let scale = 2e-6 * distance::scale(name, p, row, &index[j]);
                let distance = found.0[at][slot];
                let near = (distance - expected).abs() <= scale + 1e-5 * expected.abs();
                if !near {
                    let text = format!("{distance} instead of {expected}");
                    return Err(format!("{metric}, row {at}, neighbor {slot}: {text}"));
                }
            }
        }
    }
    Ok(Verdict::Passed)
}
