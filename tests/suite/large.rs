//! Cases of many gigabytes: 64-bit addressing and the ends of the documented ranges.
//!
//! The buffers are made on the device where they can be, and only the rows that could be wrong are
//! read back.

use cubecl::client::Client;
use half::f16;
use sparsek_kernels::topk::{self, Method, Routine, Rows, TopkOptions};
use sparsek_tests::backend::Backend;
use sparsek_tests::data::{Distribution, Matrix};
use sparsek_tests::element::Element;
use sparsek_tests::runner::{Cases, Outcome, Verdict};
use sparsek_tests::verify;

use crate::kernels::{I32, Layout, read, refusal, routines, topk as run};

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    for (name, routine) in routines() {
        // 2^32 elements and a few: the last rows lie past a 32-bit index.
        cases.add(
            backend,
            format!("large/topk/{name}/f16/32769x131072"),
            move |b| tall::<f16>(b, routine, 32_769, 131_072, 64),
        );
        cases.add(
            backend,
            format!("large/topk/{name}/f16/16777300x256"),
            move |b| tall::<f16>(b, routine, 16_777_300, 256, 8),
        );
        if routine.is_none() {
            // The most rows of one call.
            cases.add(backend, format!("large/topk/{name}/f16/2^31x2"), move |b| {
                tall::<f16>(b, routine, 1 << 31, 2, 1)
            });
        }
        cases.add(backend, format!("large/topk/{name}/f32/1x2^24"), move |b| {
            long(b, routine)
        });
    }
}

/// One block of rows repeated over the whole buffer; a few blocks are checked, the last among them.
fn tall<T: Element>(
    backend: &Backend,
    routine: Option<Routine>,
    rows: usize,
    cols: usize,
    k: usize,
) -> Outcome {
    let client = backend.client.as_ref().expect("a client");
    let block = Matrix::<T>::mixed(18, cols, 18);
    // Start the block so that it ends with the buffer.
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
        lengths: None,
    };

    let options = TopkOptions {
        k,
        largest: true,
        sorted: false,
        method: Method::Exact,
    };
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
            lengths: None,
            rows: 18,
            cols,
            data: (first..first + 18).flat_map(|i| row(i).to_vec()).collect(),
        };
        let span = first * k..(first + 18) * k;
        let positions: Vec<i64> = positions[span.clone()]
            .iter()
            .map(|&p| i64::from(p))
            .collect();
        verify::selection(&matrix, &options, Some(&values[span]), &positions)
            .map_err(|e| format!("rows from {first}: {e}"))?;
    }
    Ok(Verdict::Passed)
}

/// The longest row.
fn long(backend: &Backend, routine: Option<Routine>) -> Outcome {
    let client: &Client = backend.client.as_ref().expect("a client");
    let mut reason = None;
    for distribution in [Distribution::Normal, Distribution::Relu, Distribution::Bits] {
        let matrix = Matrix::<f32>::of(distribution, 1, 1 << 24, 6);
        let input = Layout::Contiguous.upload(client, &matrix);
        for k in [1, 128, 1 << 20] {
            let options = TopkOptions {
                k,
                largest: true,
                sorted: false,
                method: Method::Exact,
            };
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
