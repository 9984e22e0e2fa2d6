//! Columns of products below limits: exact on integers; unsupported requests are refused.

use sparsek_kernels::{
    KernelError,
    dense::{RowLists, Weight, filtered_columns, filters_columns},
};
use sparsek_tests::{
    backend::Backend,
    runner::{Cases, Outcome, Verdict},
};

use crate::{
    dense::{
        common::{small_integers, upload},
        gemm::{multiply, rows, transpose},
    },
    kernels::read,
};

/// Rows, inputs, outputs: empty, below a tile, ragged, most inputs of an H200, many tiles.
const SIZES: [[usize; 3]; 8] = [
    [0, 4, 4],
    [1, 4, 4],
    [33, 16, 128],
    [257, 100, 1000],
    [300, 7, 33],
    [70, 416, 300],
    [5, 448, 20],
    [2100, 24, 20_000],
];
const CAPACITY: usize = 24;

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    for size in SIZES {
        let [rows, inputs, outputs] = size;
        for (layout, transposed) in [("plain", false), ("transposed", true)] {
            let name = format!("kernel/dense/filter/{layout}/{rows}x{inputs}x{outputs}");
            cases.add(backend, name, move |b| listed(b, size, transposed));
        }
    }
    cases.check(backend, "kernel/dense/filter/refused", refused);
}

/// Limits of all kinds: of a few columns, half of them, none, all, and none for NaN.
fn limit(row: usize, sums: &[f64]) -> f64 {
    let mut sorted = sums.to_vec();
    sorted.sort_by(f64::total_cmp);
    match row % 7 {
        0 => f64::NEG_INFINITY,
        1 => f64::INFINITY,
        2 => f64::NAN,
        3 => sorted[sorted.len() / 2],
        _ => sorted[(CAPACITY - 1).min(sorted.len() - 1)],
    }
}

fn listed(backend: &Backend, size: [usize; 3], transposed: bool) -> Outcome {
    let client = backend.client.as_ref().expect("asked for with one");
    let [count, inputs, outputs] = size;
    let (x, weight) = (small_integers(count * inputs, 1), small_integers(inputs * outputs, 2));
    // Some columns are on every list, or on none.
    let mut bias = small_integers(outputs, 3);
    bias[0] = f64::NEG_INFINITY;
    bias[outputs - 1] = f64::INFINITY;
    let mut sums = multiply(&x, &weight, size);
    for (at, sum) in sums.iter_mut().enumerate() {
        *sum += bias[at % outputs];
    }
    let limits: Vec<f64> =
        sums.chunks(outputs).enumerate().map(|(row, sums)| limit(row, sums)).collect();
    let weight = match transposed {
        true => transpose(&weight, [inputs, outputs]),
        false => weight,
    };
    let [x, weight, bias, uploaded] = [&x, &weight, &bias, &limits].map(|all| upload(backend, all));
    let strides = if transposed { [1, inputs] } else { [outputs, 1] };
    let matrix = Weight { handle: &weight, inputs, outputs, strides };
    let rows = rows(&x, [count, inputs]);
    let result = filtered_columns(client, &rows, &matrix, &bias, &uploaded, CAPACITY);
    let lists = match (filters_columns(client, inputs), result) {
        (true, Ok(lists)) => lists,
        (false, Err(error @ KernelError::Routine { .. })) => {
            return Ok(Verdict::Skipped(error.to_string()));
        }
        (serves, result) => return Err(format!("serves: {serves}, but {:?}", result.err())),
    };
    let RowLists { columns, counts } = lists;
    let columns = read::<u32>(client, columns, count * CAPACITY);
    let counts = read::<u32>(client, counts, count);
    for row in 0..count {
        let sums = &sums[row * outputs..][..outputs];
        let expected: Vec<u32> =
            (0..outputs as u32).filter(|&at| sums[at as usize] <= limits[row]).collect();
        let mut found = columns[row * CAPACITY..][..CAPACITY.min(counts[row] as usize)].to_vec();
        found.sort_unstable();
        found.dedup();
        let right = match expected.len() <= CAPACITY {
            true => counts[row] as usize == expected.len() && found == expected,
            false => {
                let all_are_near = found.iter().all(|at| expected.contains(at));
                counts[row] as usize > CAPACITY && found.len() == CAPACITY && all_are_near
            }
        };
        if !right {
            return Err(format!("row {row}: {} of {expected:?}: {found:?}", counts[row]));
        }
    }
    Ok(Verdict::Passed)
}

fn refused(backend: &Backend) -> Result<(), String> {
    let client = backend.client.as_ref().expect("asked for with one");
    let data = upload(backend, &small_integers(1 << 16, 6));
    let matrix = |inputs, outputs| Weight { handle: &data, inputs, outputs, strides: [outputs, 1] };
    for (x, matrix) in [
        (rows(&data, [8, 8]), matrix(16, 8)),
        (rows(&data, [2, 1 << 14]), matrix(1 << 14, 4)),
        (rows(&data, [8, 0]), matrix(0, 4)),
        (rows(&data, [8, 8]), matrix(8, 0)),
    ] {
        let result = filtered_columns(client, &x, &matrix, &data, &data, 4);
        if !matches!(result, Err(KernelError::Routine { .. })) {
            return Err(format!("{x:?} times {matrix:?} is served"));
        }
    }
    let long = filtered_columns(client, &rows(&data, [8, 8]), &matrix(8, 8), &data, &data, 1 << 32);
    if !matches!(long, Err(KernelError::Routine { .. })) {
        return Err("lists of 2^32 columns are served".into());
    }
    let short = upload(backend, &[0.0; 4]);
    let result = filtered_columns(client, &rows(&data, [8, 8]), &matrix(8, 8), &data, &short, 4);
    match (filters_columns(client, 8), result) {
        (true, Err(KernelError::BufferTooShort { .. }))
        | (false, Err(KernelError::Routine { .. })) => Ok(()),
        (_, result) => Err(format!("short limits: {:?}", result.err())),
    }
}
