//! Inputs of many gigabytes: 64-bit addressing and the limits of the documented ranges.
//!
//! Only rows near those limits are read back.

use cubecl::client::Client;
use half::f16;
use sparsek_kernels::topk::{self, Method, Routine, Rows, TopkOptions};
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix},
    element::Element,
    runner::{Cases, Outcome, Verdict},
    verify,
};

use crate::kernels::{I32, I64, Layout, read, read_positions, refusal, routines, topk as run};

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    for (name, length) in [("2^31+3", (1 << 31) + 3), ("2^32+5", (1 << 32) + 5)] {
        cases.add(backend, format!("large/vector/f16/{name}"), move |b| vector(b, length));
    }
    cases.add(backend, "large/vector/bitonic/131200-tiles", many_tiles);
    for (name, routine) in routines() {
        // More than 2^32 elements: the last rows exceed a 32-bit index.
        cases.add(backend, format!("large/topk/{name}/f16/32769x131072"), move |b| {
            tall::<f16>(b, routine, 32_769, 131_072, 64)
        });
        cases.add(backend, format!("large/topk/{name}/f16/16777300x256"), move |b| {
            tall::<f16>(b, routine, 16_777_300, 256, 8)
        });
        if routine.is_none() {
            // Most rows of one call.
            cases.add(backend, format!("large/topk/{name}/f16/2^31x2"), move |b| {
                tall::<f16>(b, routine, 1 << 31, 2, 1)
            });
        }
        cases.add(backend, format!("large/topk/{name}/f32/1x2^24"), move |b| long(b, routine));
    }
}

/// Repeats a block and plants greater elements, the last at the end. Their positions need more than
/// 32 bits; ties fill the selection.
fn vector(backend: &Backend, length: usize) -> Outcome {
    let client = backend.client.as_ref().expect("a client");
    let block = Matrix::<f16>::of(Distribution::Uniform, 1, 1 << 20, 4).data;
    let greatest = block.iter().copied().fold(f16::ZERO, f16::max);
    let tie = block.iter().position(|x| *x == greatest).expect("a maximum");
    let mut buffer: Vec<f16> = Vec::with_capacity(length);
    while buffer.len() < length {
        let rest = (length - buffer.len()).min(block.len());
        buffer.extend_from_slice(&block[..rest]);
    }
    let planted = [7, length / 3, 1 << 31, length - 2, length - 1];
    for (i, &at) in planted.iter().enumerate() {
        buffer[at] = f16::from_f32(2.0 + i as f32);
    }
    let mut ties = (tie..length).filter(|&at| buffer[at] == greatest);
    let mut wanted: Vec<i64> = planted.iter().map(|&at| at as i64).collect();
    wanted.extend(ties.by_ref().take(5).map(|at| at as i64));
    wanted.sort_unstable();
    let handle = client.create(cubecl::bytes::Bytes::from_elems(buffer));
    let options = topk::VectorOptions::new(wanted.len());
    match topk::topk_vector(client, &handle, f16::elem_type(), length, &options, I64) {
        Ok(selected) => {
            let found = read_positions(client, selected.indices, I64, wanted.len());
            if found == wanted {
                Ok(Verdict::Passed)
            } else {
                Err(format!("selected {found:?} instead of {wanted:?}"))
            }
        }
        Err(error) => refusal(&error).map(Verdict::Skipped).ok_or(error.to_string()),
    }
}

/// More tiles than a grid has cubes in one dimension. Element 0, which is not selected, is what
/// extra cubes would leave behind.
fn many_tiles(backend: &Backend) -> Outcome {
    let client = backend.client.as_ref().expect("a client");
    let length = 131_200 << 11;
    let mut buffer = vec![u32::MAX - 1; length];
    (buffer[0], buffer[length - 5]) = (7, u32::MAX);
    let handle = client.create(cubecl::bytes::Bytes::from_elems(buffer));
    let strategy = topk::VectorStrategy {
        subrange: topk::Subrange::Whole,
        selection: topk::Selection::Bitonic,
        ..topk::VectorStrategy::default()
    };
    for k in [1, 3] {
        let options = topk::VectorOptions { strategy, ..topk::VectorOptions::new(k) };
        let selected = topk::topk_vector(client, &handle, u32::elem_type(), length, &options, I64);
        let selected = match selected {
            Ok(selected) => selected,
            Err(error) => {
                return refusal(&error).map(Verdict::Skipped).ok_or(error.to_string());
            }
        };
        let found = read_positions(client, selected.indices, I64, k);
        let mut wanted: Vec<i64> = (1..k as i64).collect();
        wanted.push(length as i64 - 5);
        if found != wanted {
            return Err(format!("k = {k}: selected {found:?} instead of {wanted:?}"));
        }
    }
    Ok(Verdict::Passed)
}

/// Repeats a block of rows; checks the first, middle, 2^32 and last ones.
fn tall<T: Element>(
    backend: &Backend,
    routine: Option<Routine>,
    rows: usize,
    cols: usize,
    k: usize,
) -> Outcome {
    let client = backend.client.as_ref().expect("a client");
    let block = Matrix::<T>::mixed(18, cols, 18);
    // Align the block's end with the buffer's.
    let shift = rows % block.rows;
    let row = |i: usize| block.row((i + block.rows - shift) % block.rows);
    let mut buffer: Vec<T> = Vec::with_capacity(rows * cols);
    (0..rows).for_each(|i| buffer.extend_from_slice(row(i)));
    let bytes = cubecl::bytes::Bytes::from_elems(buffer);
    let input = Rows {
        handle: client.create(bytes),
        dtype: T::elem_type(),
        rows,
        cols,
        row_stride: cols,
        col_stride: 1,
        starts: None,
        lengths: None,
    };

    let options = TopkOptions { k, largest: true, sorted: false, method: Method::Exact };
    let selected = match topk::topk(client, &input, &options, I32, routine) {
        Ok(selected) => selected,
        Err(error) => {
            return refusal(&error)
                .filter(|_| routine.is_some())
                .map(Verdict::Skipped)
                .ok_or_else(|| error.to_string());
        }
    };
    let length = rows * k;
    let values: Vec<T> = read(client, selected.values, length);
    let positions: Vec<i32> = read(client, selected.indices, length);
    let boundary = (1usize << 32) / cols;
    for first in [0, rows / 2, boundary.min(rows) - 18, rows - 18] {
        let matrix = Matrix {
            starts: None,
            lengths: None,
            rows: 18,
            cols,
            data: (first..first + 18).flat_map(|i| row(i).to_vec()).collect(),
        };
        let span = first * k..(first + 18) * k;
        let positions: Vec<i64> = positions[span.clone()].iter().map(|&p| i64::from(p)).collect();
        verify::selection(&matrix, &options, Some(&values[span]), &positions)
            .map_err(|e| format!("rows from {first}: {e}"))?;
    }
    Ok(Verdict::Passed)
}

fn long(backend: &Backend, routine: Option<Routine>) -> Outcome {
    let client: &Client = backend.client.as_ref().expect("a client");
    let mut reason = None;
    for distribution in [Distribution::Normal, Distribution::Relu, Distribution::Bits] {
        let matrix = Matrix::<f32>::of(distribution, 1, 1 << 24, 6);
        let input = Layout::Contiguous.upload(client, &matrix);
        for k in [1, 128, 1 << 20] {
            let options = TopkOptions { k, largest: true, sorted: false, method: Method::Exact };
            match run::<f32>(client, &input, &options, I32, routine) {
                Ok((values, positions)) => {
                    verify::selection(&matrix, &options, Some(&values), &positions)?
                }
                Err(error) => {
                    reason = Some(
                        refusal(&error)
                            .filter(|_| routine.is_some())
                            .ok_or_else(|| error.to_string())?,
                    )
                }
            }
        }
    }
    Ok(reason.map_or(Verdict::Passed, Verdict::Skipped))
}
