//! Vector streams, long rows that run as vectors, and workload statistics.

use cubecl::client::Client;
use sparsek_kernels::KernelError;
use sparsek_kernels::topk::{
    Filter, Subrange, TopkOptions, TopkStream, VectorOptions, VectorStrategy, WorkloadStats, topk,
    topk_vector, topk_vector_stats,
};
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix},
    element::Element,
    runner::{Cases, Outcome},
    verify,
};

use crate::{
    kernels::{I64, Layout, read, read_positions},
    vector::selections::VectorCheck,
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    cases.add(backend, "kernel/vector/workload", workload);
    for (rows, cols, k) in [(1, 40_000, 300), (1, 1 << 20, 5000), (2, 1 << 21, 33), (3, 3 << 20, 1)]
    {
        let case = format!("kernel/vector/long-rows/{rows}x{cols}x{k}");
        cases.add(backend, case, move |b| long_rows(b, rows, cols, k));
    }
    for part in [1, 7, 999, 4096, 30_000] {
        cases.add(backend, format!("kernel/vector/stream/{part}"), move |b| {
            let client = b.client.clone().expect("a client");
            streams(b, &[client], part)
        });
    }
    for part in [7, 999] {
        let case = format!("kernel/vector/stream/several/{part}");
        cases.add(backend, case, move |b| streams(b, &b.clients(), part));
    }
    cases.add(backend, "kernel/vector/stream/forced", forced_streams);
    cases.add(backend, "kernel/vector/more-delegates-than-elements", all_delegates);
    cases.check(backend, "kernel/vector/stream/errors", stream_errors);
}

/// Workload statistics, computed by hand.
fn workload(backend: &Backend) -> Outcome {
    let mut check = VectorCheck::new(backend);
    let client = check.inner.client();
    // Eight subranges of four; two of them hold the three best elements.
    let mut data = vec![0.0f32; 32];
    (data[5], data[6], data[20]) = (3.0, 2.0, 4.0);
    let input = client.create_from_slice(bytemuck::cast_slice(&data));
    for (delegates, filter, subranges, concatenated) in
        [(1, Filter::On, 3, 12), (2, Filter::On, 1, 3), (2, Filter::Off, 1, 5)]
    {
        let options = VectorOptions {
            strategy: VectorStrategy {
                subrange: Subrange::Exponent(2),
                delegates,
                filter,
                ..VectorStrategy::default()
            },
            ..VectorOptions::new(3)
        };
        let found = topk_vector_stats(client, &input, f32::elem_type(), 32, &options, I64);
        let (selected, stats) = match found {
            Ok(found) => found,
            Err(error) => {
                check.inner.refuse(error)?;
                continue;
            }
        };
        let positions = read_positions(client, selected.indices, I64, 3);
        if positions != [5, 6, 20] {
            return Err(format!("selected {positions:?}"));
        }
        // With one delegate the third best is the zero of another subrange.
        let wanted =
            WorkloadStats { length: 32, delegates: 8 * delegates, subranges, concatenated };
        if stats != wanted {
            return Err(format!("{stats:?} instead of {wanted:?}"));
        }
        check.inner.passed += 1;
    }
    check.end()
}

fn long_rows(backend: &Backend, rows: usize, cols: usize, k: usize) -> Outcome {
    let mut check = VectorCheck::new(backend);
    let client = check.inner.client();
    for distribution in [Distribution::Normal, Distribution::Eight] {
        let matrix = Matrix::<f32>::of(distribution, rows, cols, 7);
        let input = Layout::Contiguous.upload(client, &matrix);
        for sorted in [false, true] {
            let options = TopkOptions { sorted, ..TopkOptions::new(k) };
            match topk(client, &input, &options, I64, None) {
                Ok(selected) => {
                    let values = read::<f32>(client, selected.values, rows * k);
                    let positions = read_positions(client, selected.indices, I64, rows * k);
                    verify::selection(&matrix, &options, Some(&values), &positions)?;
                    check.inner.passed += 1;
                }
                Err(error) => check.inner.refuse(error)?,
            }
        }
    }
    check.end()
}

fn streams(backend: &Backend, clients: &[Client], part: usize) -> Outcome {
    let mut check = VectorCheck::new(backend);
    let length = (40 * part).min(20_000);
    for distribution in [Distribution::Normal, Distribution::Eight, Distribution::Special] {
        let matrix = Matrix::<f32>::of(distribution, 1, length, part as u64);
        for (k, largest, sorted) in
            [(1, true, false), (5, false, true), (300, true, false), (length, true, true)]
        {
            if k > length {
                continue;
            }
            let options = VectorOptions { largest, sorted, ..VectorOptions::new(k) };
            let mut stream = TopkStream::over(clients, f32::elem_type(), options);
            let parts = matrix.data.chunks(part).map(bytemuck::cast_slice::<f32, u8>);
            // Alternate with buffers that the stream allocates.
            let pushed = parts.enumerate().try_for_each(|(at, part)| {
                if at % 2 == 0 {
                    return stream.push(part);
                }
                let mut buffer = stream.buffer(part.len());
                buffer.copy_from_slice(part);
                stream.push_buffer(buffer)
            });
            match pushed.and_then(|()| stream.finish()) {
                Ok(best) => {
                    let asked = TopkOptions { largest, sorted, ..TopkOptions::new(k) };
                    let values: Vec<f32> = bytemuck::pod_collect_to_vec(&best.values);
                    let places: Vec<i64> = best.indices.iter().map(|&at| at as i64).collect();
                    verify::selection(&matrix, &asked, Some(&values), &places)?;
                    check.inner.passed += 1;
                }
                Err(error) => check.inner.refuse(error)?,
            }
        }
    }
    check.end()
}

/// Options that fit the parts, but not the merge of their results.
fn forced_streams(backend: &Backend) -> Outcome {
    let mut check = VectorCheck::new(backend);
    let client = check.inner.client();
    let (k, part) = (50, 8000);
    let matrix = Matrix::<f32>::of(Distribution::Eight, 1, 3 * part, 3);
    for (subrange, delegates, filter) in [
        (Subrange::Auto, 1, Filter::On),
        (Subrange::Auto, 2, Filter::Auto),
        (Subrange::Exponent(4), 1, Filter::Auto),
    ] {
        let options = VectorOptions {
            strategy: VectorStrategy { subrange, delegates, filter, ..VectorStrategy::default() },
            ..VectorOptions::new(k)
        };
        let mut stream = TopkStream::new(client, f32::elem_type(), options);
        let mut parts = matrix.data.chunks(part);
        let pushed = parts.try_for_each(|part| stream.push(bytemuck::cast_slice(part)));
        match pushed.and_then(|()| stream.finish()) {
            Ok(best) => {
                let values: Vec<f32> = bytemuck::pod_collect_to_vec(&best.values);
                let places: Vec<i64> = best.indices.iter().map(|&at| at as i64).collect();
                verify::selection(&matrix, &TopkOptions::new(k), Some(&values), &places)?;
                check.inner.passed += 1;
            }
            Err(error) => check.inner.refuse(error)?,
        }
    }
    check.end()
}

/// More delegates than a subrange has elements, all -inf.
fn all_delegates(backend: &Backend) -> Outcome {
    let mut check = VectorCheck::new(backend);
    let client = check.inner.client();
    for (length, exponent, delegates, k) in
        [(10, 0, 2, 5), (3, 4, 4, 3), (9, 1, 3, 7), (5000, 1, 4, 1500), (5000, 0, 3, 1500)]
    {
        let least = vec![f32::NEG_INFINITY; length];
        let input = client.create_from_slice(bytemuck::cast_slice(&least));
        for filter in [Filter::On, Filter::Off] {
            let options = VectorOptions {
                strategy: VectorStrategy {
                    subrange: Subrange::Exponent(exponent),
                    delegates,
                    filter,
                    ..VectorStrategy::default()
                },
                ..VectorOptions::new(k)
            };
            match topk_vector(client, &input, f32::elem_type(), length, &options, I64) {
                Ok(selected) => {
                    let positions = read_positions(client, selected.indices, I64, k);
                    let first: Vec<i64> = (0..k as i64).collect();
                    if positions != first {
                        return Err(format!(
                            "{length} elements, 2^{exponent}, {delegates}: {positions:?}"
                        ));
                    }
                    check.inner.passed += 1;
                }
                Err(error) => check.inner.refuse(error)?,
            }
        }
    }
    check.end()
}

/// Invalid parts, too few elements, and no result after a failed part.
fn stream_errors(backend: &Backend) -> Result<(), String> {
    let client = backend.client.as_ref().ok_or("kernels")?;
    let stream = || TopkStream::new(client, f32::elem_type(), VectorOptions::new(3));
    let mut short = stream();
    let whole = short.push(&[0; 8]);
    let mut broken = stream();
    let part = broken.push(&[0; 7]);
    let after = broken.push(&[0; 16]);
    match (whole, short.finish(), part, after, broken.finish()) {
        (
            Ok(()),
            Err(KernelError::KTooLarge { k: 3, cols: 2 }),
            Err(KernelError::Part { bytes: 7, size: 4 }),
            Ok(()),
            Err(KernelError::Part { bytes: 7, size: 4 }),
        ) => Ok(()),
        found => Err(format!("{found:?}")),
    }
}
