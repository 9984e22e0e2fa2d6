//! CSR matrices: construction, conversions, errors.

use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData};
use half::{bf16, f16};
use sparsek::sparse::{Csr, CsrError, FileError, MAX_ENTRIES, Pattern, PatternError};
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Random},
    element::Element,
    oracle::spmm::Csr as Host,
    panics::expect_panic,
    runner::{Cases, Outcome, Verdict},
    sparse::{Sparse, Values, pattern, rounded, upload, vector},
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    add_dtype::<f32>(cases, backend);
    add_dtype::<f64>(cases, backend);
    add_dtype::<f16>(cases, backend);
    add_dtype::<bf16>(cases, backend);
    cases.check(backend, "tensor/csr/refusals", refusals);
}

fn add_dtype<T: Element>(cases: &mut Cases, backend: &Backend) {
    for recipe in Sparse::ALL {
        cases.add(backend, format!("tensor/csr/{}/{}", T::NAME, recipe.name), move |b| {
            of_dtype::<T>(b, &recipe)
        });
    }
    cases.add(backend, format!("tensor/csr/{}/special", T::NAME), special::<T>);
}

/// Checks that an unsupported dtype is refused.
fn refused<T: Element>(device: &Device) -> Outcome {
    match Csr::from_npz("", (device, T::dtype())) {
        Err(FileError::Csr { source: CsrError::Dtype { .. }, .. }) => {
            Ok(Verdict::Skipped(format!("Burn has no {} tensors on this device", T::NAME)))
        }
        other => Err(format!("{} was not refused: {other:?}", T::NAME)),
    }
}

fn special<T: Element>(backend: &Backend) -> Outcome {
    let device = &backend.device;
    if !device.supports_dtype(T::dtype()) {
        return refused::<T>(device);
    }
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    let mut random = Random::new(9);
    let rows = [Distribution::Special, Distribution::Subnormal];
    let data: Vec<T> = rows.iter().flat_map(|row| row.row::<T>(60, &mut random)).collect();
    let x = TensorData::new(data.clone(), [2, 60]);
    let csr = Csr::from_dense(Tensor::from_data(x, (device, T::dtype())));
    let csr = csr.map_err(|e| e.to_string())?;
    let not_zero = |x: &&T| x.bits() & !T::SIGN != 0;
    let expected: Vec<f64> = data.iter().filter(not_zero).map(|x| x.wide_f64()).collect();
    same::<T>("entries", &elements(csr.values())?, &expected)?;
    let dense = data.iter().map(|x| if not_zero(&x) { x.wide_f64() } else { 0.0 });
    let dense: Vec<f64> = dense.collect();
    same::<T>("dense", &elements(&csr.to_dense())?, &dense)?;
    Ok(Verdict::Passed)
}

fn of_dtype<T: Element>(backend: &Backend, recipe: &Sparse) -> Outcome {
    let device = &backend.device;
    if !device.supports_dtype(T::dtype()) {
        return refused::<T>(device);
    }
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    let host = rounded::<T>(&recipe.matrix(1));
    let csr = upload::<T>(&host, device);
    expect::<T>("as given", &csr, &host)?;
    dense::<T>(&csr, &host)?;
    transposes::<T>(&csr, &host)?;
    slices::<T>(&csr, &host)?;
    orders::<T>(&csr, &host)?;
    if recipe.values != Values::Normal && recipe.values != Values::Positive {
        duplicates::<T>(device, &host)?;
    }
    moves::<T>(&csr, &host)?;
    Ok(Verdict::Passed)
}

/// Elements of a tensor, which must have dtype `T`.
pub fn elements<T: Element, const D: usize>(tensor: &Tensor<D>) -> Result<Vec<T>, String> {
    let data = tensor.to_data();
    if data.dtype() != T::dtype() {
        return Err(format!("{:?} instead of {:?}", data.dtype(), T::dtype()));
    }
    Ok(bytemuck::pod_collect_to_vec(data.as_bytes()))
}

/// Checks that elements are equal bit for bit.
pub fn same<T: Element>(what: &str, found: &[T], expected: &[f64]) -> Result<(), String> {
    if found.len() != expected.len() {
        let (found, expected) = (found.len(), expected.len());
        return Err(format!("{what}: {found} elements instead of {expected}"));
    }
    let expected: Vec<T> = expected.iter().map(|&x| T::of(x)).collect();
    match (0..found.len()).find(|&i| !found[i].same(expected[i])) {
        Some(i) => {
            Err(format!("{what}: element {i} is {:?} instead of {:?}", found[i], expected[i]))
        }
        None => Ok(()),
    }
}

fn integers(tensor: &Tensor<1, Int>) -> Vec<u32> {
    tensor.to_data().iter::<u32>().collect()
}

/// Checks sizes, dtype, pattern (host and device) and values.
fn expect<T: Element>(what: &str, csr: &Csr, host: &Host) -> Result<(), String> {
    let sizes = (csr.rows(), csr.cols(), csr.nnz());
    if sizes != (host.rows, host.cols, host.indices.len()) || csr.dtype() != T::dtype() {
        return Err(format!("{what}: {sizes:?} of {:?}", csr.dtype()));
    }
    if **csr.pattern() != pattern(host) {
        return Err(format!("{what}: another pattern"));
    }
    if integers(csr.indptr()) != host.indptr || integers(csr.indices()) != host.indices {
        return Err(format!("{what}: another pattern on the device"));
    }
    same::<T>(what, &elements(csr.values())?, &host.weights)
}

fn dense<T: Element>(csr: &Csr, host: &Host) -> Result<(), String> {
    let dense = csr.to_dense();
    if dense.dims() != [host.rows, host.cols] {
        return Err(format!("dense of shape {:?}", dense.dims()));
    }
    same::<T>("dense", &elements(&dense)?, &host.dense().concat())?;
    let back = Csr::from_dense(dense).map_err(|e| e.to_string())?;
    expect::<T>("from dense", &back, &without_zeros(host))
}

fn without_zeros(host: &Host) -> Host {
    from_entries(host, host.entries().filter(|&(.., w)| w != 0.0))
}

/// A matrix of the same size from entries in row order.
fn from_entries(like: &Host, entries: impl Iterator<Item = (usize, usize, f64)>) -> Host {
    let mut host =
        Host { indptr: vec![0; like.rows + 1], indices: Vec::new(), weights: Vec::new(), ..*like };
    for (i, j, w) in entries {
        host.indices.push(j as u32);
        host.weights.push(w);
        host.indptr[i + 1..].fill(host.indices.len() as u32);
    }
    host
}

fn transposed(host: &Host) -> Host {
    let like = Host {
        rows: host.cols,
        cols: host.rows,
        indptr: Vec::new(),
        indices: Vec::new(),
        weights: Vec::new(),
    };
    let mut entries: Vec<_> = host.entries().map(|(i, j, w)| (j, i, w)).collect();
    entries.sort_by_key(|&(i, j, _)| (i, j));
    from_entries(&like, entries.into_iter())
}

fn transposes<T: Element>(csr: &Csr, host: &Host) -> Result<(), String> {
    let once = csr.transpose();
    expect::<T>("transposed", &once, &transposed(host))?;
    expect::<T>("transposed twice", &once.transpose(), host)
}

fn slices<T: Element>(csr: &Csr, host: &Host) -> Result<(), String> {
    let rows = host.rows;
    for range in [0..rows, 0..0, rows..rows, rows / 3..rows - rows / 4, 0..rows.min(1)] {
        let of_range = host.entries().filter(|(i, ..)| range.contains(i));
        let like = Host { rows: range.len(), ..host.clone() };
        let expected = from_entries(&like, of_range.map(|(i, j, w)| (i - range.start, j, w)));
        let what = format!("rows {range:?}");
        expect::<T>(&what, &csr.slice_rows(range), &expected)?;
    }
    Ok(())
}

pub fn shuffled(mut entries: Vec<(usize, usize, f64)>, seed: u64) -> Vec<(usize, usize, f64)> {
    let mut random = Random::new(seed);
    (1..entries.len()).for_each(|i| entries.swap(i, random.below(i + 1)));
    entries
}

fn from_coo<T: Element>(
    [rows, cols]: [usize; 2],
    entries: &[(usize, usize, f64)],
    device: &Device,
) -> Result<Csr, String> {
    let of = |id: fn(&(usize, usize, f64)) -> usize| -> Vec<u32> {
        entries.iter().map(|entry| id(entry) as u32).collect()
    };
    let weights: Vec<f64> = entries.iter().map(|entry| entry.2).collect();
    let values = vector::<T>(&weights, device);
    Csr::from_coo([rows, cols], &of(|e| e.0), &of(|e| e.1), values).map_err(|e| e.to_string())
}

fn orders<T: Element>(csr: &Csr, host: &Host) -> Result<(), String> {
    let device = &csr.device();
    let entries = shuffled(host.entries().collect(), 2);
    let found = from_coo::<T>([host.rows, host.cols], &entries, device)?;
    expect::<T>("from coordinates", &found, host)?;
    let mut by_row = entries;
    by_row.sort_by_key(|entry| entry.0);
    let unsorted = from_entries(host, by_row.into_iter());
    let values = vector::<T>(&unsorted.weights, device);
    let found = Csr::from_unsorted(&pattern(&unsorted), values).map_err(|e| e.to_string())?;
    expect::<T>("from unsorted", &found, host)
}

/// Every second entry comes in three parts, which must add up.
fn duplicates<T: Element>(device: &Device, host: &Host) -> Result<(), String> {
    let parts = host.entries().enumerate().flat_map(|(e, (i, j, w))| {
        let weights = match e % 2 {
            0 => vec![w],
            _ => vec![w, 1.5, -0.25],
        };
        weights.into_iter().map(move |w| (i, j, w))
    });
    let entries = shuffled(parts.collect(), 3);
    let found = from_coo::<T>([host.rows, host.cols], &entries, device)?;
    let mut expected = host.clone();
    let odd = expected.weights.iter_mut().skip(1).step_by(2);
    odd.for_each(|w| *w += 1.25);
    expect::<T>("with duplicates", &found, &expected)
}

fn moves<T: Element>(csr: &Csr, host: &Host) -> Result<(), String> {
    let device = csr.device();
    let to = |device: &Device, csr: &Csr| csr.to_device(device).map_err(|e| e.to_string());
    expect::<T>("on its own device", &to(&device, csr)?, host)?;
    #[cfg(feature = "flex")]
    {
        let flex = to(&Device::flex(), csr)?;
        if flex.device() != Device::flex() || flex.indices().device() != Device::flex() {
            return Err("it did not move".into());
        }
        expect::<T>("on Flex", &flex, host)?;
        expect::<T>("moved back", &to(&device, &flex)?, host)?;
    }
    let twice = Host { weights: host.weights.iter().map(|w| 2.0 * w).collect(), ..host.clone() };
    let other = vector::<T>(&twice.weights, &device);
    let found = csr.with_values(other).map_err(|e| e.to_string())?;
    expect::<T>("with other values", &found, &twice)
}

fn refusals(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    let values = |n: usize| vector::<f32>(&vec![1.0; n], device);
    let csr = |indptr: &[u32], indices: &[u32], n| {
        let pattern = Pattern::new(2, 4, indptr.to_vec(), indices.to_vec());
        Csr::new(pattern.expect("a pattern"), values(n))
    };
    let coo = |shape, rows: &[u32], cols: &[u32], n| Csr::from_coo(shape, rows, cols, values(n));
    let sorted = csr(&[0, 1, 3], &[3, 0, 2], 3).map_err(|e| e.to_string())?;
    let too_large =
        |what| PatternError::TooLarge { what, found: MAX_ENTRIES + 1, limit: MAX_ENTRIES };
    let column = PatternError::Column { entry: 0, column: 4, cols: 4 };
    let refused = [
        (csr(&[0, 2, 5], &[0, 1, 0, 3, 2], 5), CsrError::Unsorted { row: 1, column: 2, before: 3 }),
        (csr(&[0, 1, 4], &[0, 1, 2, 2], 4), CsrError::Duplicate { row: 1, column: 2 }),
        (csr(&[0, 1, 2], &[0, 0], 3), values_error(2, 3)),
        (sorted.with_values(values(2)), values_error(3, 2)),
        (coo([2, 4], &[0, 1], &[0, 1], 1), values_error(2, 1)),
        (coo([2, 4], &[0, 1], &[0], 2), CsrError::Ids { rows: 2, cols: 1 }),
        (coo([2, 4], &[0, 2], &[0, 1], 2), CsrError::Row { entry: 1, row: 2, rows: 2 }),
        (coo([2, 4], &[1], &[4], 1), column.into()),
        (coo([MAX_ENTRIES + 1, 4], &[], &[], 0), too_large("rows").into()),
        (coo([2, MAX_ENTRIES + 1], &[], &[], 0), too_large("columns").into()),
    ];
    for (found, expected) in refused {
        match found {
            Err(error) if error == expected && !error.to_string().contains('\n') => {}
            other => return Err(format!("{other:?} instead of {expected:?}")),
        }
    }
    for range in [1..3, 3..3] {
        let message = expect_panic(|| drop(sorted.slice_rows(range)))?;
        if !message.contains("of 2 rows") {
            return Err(format!("the message does not say 2 rows: {message}"));
        }
    }
    let shared = Arc::clone(sorted.pattern());
    Csr::new(shared, values(3)).map_err(|e| e.to_string())?;
    Ok(())
}

fn values_error(entries: usize, found: usize) -> CsrError {
    CsrError::Values { entries, found }
}
