//! Top-k kernels on ragged rows, for every routine.

use sparsek_kernels::KernelError;
use sparsek_kernels::topk::{self as kernel, Method, Routine};
use sparsek_tests::{
    backend::Backend,
    data::Matrix,
    element::{Dtype, Element},
    runner::{Cases, Outcome},
    with_dtype,
};

use crate::{
    kernels::{Check, I32, I64, Layout, U32, routines},
    topk::common::each_output,
};

const SIZES: [usize; 14] = [1, 2, 3, 8, 31, 32, 64, 100, 256, 700, 1024, 2048, 4097, 20_000];

const METHODS: [(&str, Method); 6] = [
    ("exact", Method::Exact),
    ("early-0", Method::EarlyStop(0)),
    ("early-4", Method::EarlyStop(4)),
    ("early-8", Method::EarlyStop(8)),
    ("precision-0", Method::Precision(0.0)),
    ("precision-1e-2", Method::Precision(1e-2)),
];

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    for (name, routine) in routines() {
        let at = |group: String| format!("kernel/topk/{name}/ragged/{group}");
        for cols in SIZES {
            cases.add(backend, at(format!("sizes/{cols}")), move |b| sizes(b, routine, cols));
        }
        for layout in Layout::ALL {
            cases.add(backend, at(format!("layout/{layout:?}").to_lowercase()), move |b| {
                layouts(b, routine, layout)
            });
        }
        for cols in SIZES {
            cases.add(backend, at(format!("bounds/sizes/{cols}")), move |b| {
                bounds_of_sizes(b, routine, cols)
            });
        }
        for layout in Layout::ALL {
            cases.add(backend, at(format!("bounds/layout/{layout:?}").to_lowercase()), move |b| {
                bounds_in_layouts(b, routine, layout)
            });
        }
        for kind in Dtype::ALL {
            with_dtype!(kind, T => cases.add(
                backend,
                at(format!("bounds/{}", T::NAME)),
                move |b| bounds_of_dtype::<T>(b, routine),
            ));
        }
        for (form, index) in [("i32", I32), ("i64", I64), ("u32", U32)] {
            cases.add(backend, at(format!("outputs/{form}")), move |b| outputs(b, routine, index));
        }
        for (method, value) in METHODS {
            for largest in [true, false] {
                let end = if largest { "largest" } else { "smallest" };
                for kind in Dtype::ALL {
                    with_dtype!(kind, T => cases.add(
                        backend,
                        at(format!("{}/{method}/{end}", T::NAME)),
                        move |b| dtype::<T>(b, routine, value, largest),
                    ));
                }
            }
        }
    }
    cases.check(backend, "kernel/topk/ragged/errors", errors);
}

fn ragged<T: Element>(rows: usize, cols: usize, seed: u64) -> Matrix<T> {
    Matrix::mixed(rows, cols, seed).with_any_lengths(seed)
}

fn sizes(backend: &Backend, routine: Option<Routine>, cols: usize) -> Outcome {
    let mut check = Check::new(backend, routine);
    let rows = if cols > 8192 { 22 } else { 44 };
    let matrix = ragged::<f32>(rows, cols, cols as u64);
    let mut ks = vec![1, 2, 17, 32, 100, cols / 2, cols - 1, cols];
    ks.sort_unstable();
    ks.dedup();
    check.all(&matrix, Layout::Contiguous, &ks, &[false], true, Method::Exact)?;
    check.end()
}

fn between<T: Element>(rows: usize, cols: usize, seed: u64) -> Matrix<T> {
    ragged(rows, cols, seed).with_any_starts(seed)
}

fn bounds_of_sizes(backend: &Backend, routine: Option<Routine>, cols: usize) -> Outcome {
    let mut check = Check::new(backend, routine);
    let rows = if cols > 8192 { 22 } else { 44 };
    let matrix = between::<f32>(rows, cols, 400 + cols as u64);
    let mut ks = vec![1, 17, 100, cols / 2, cols];
    ks.sort_unstable();
    ks.dedup();
    check.all(&matrix, Layout::Contiguous, &ks, &[false], true, Method::Exact)?;
    check.all(
        &matrix,
        Layout::Contiguous,
        &[cols.min(20)],
        &[true],
        false,
        Method::EarlyStop(4),
    )?;
    check.end()
}

fn bounds_in_layouts(backend: &Backend, routine: Option<Routine>, layout: Layout) -> Outcome {
    let mut check = Check::new(backend, routine);
    for cols in [65, 128, 1300] {
        let matrix = between::<f32>(36, cols, 500 + cols as u64);
        check.all(&matrix, layout, &[1, 32, 65], &[false, true], true, Method::Exact)?;
    }
    let matrix = between::<f32>(36, 6000, 6500);
    check.all(&matrix, layout, &[5000], &[true], true, Method::Exact)?;
    check.end()
}

/// All forms of output too.
fn bounds_of_dtype<T: Element>(backend: &Backend, routine: Option<Routine>) -> Outcome {
    let mut check = Check::new(backend, routine);
    for cols in [64, 203, 1500] {
        let matrix = between::<T>(44, cols, 600 + cols as u64);
        let ks = [1, 17, cols / 2];
        check.all(&matrix, Layout::Contiguous, &ks, &[false, true], true, Method::Exact)?;
        let precise = Method::Precision(1e-2);
        check.all(&matrix, Layout::Contiguous, &ks[..2], &[false], false, precise)?;
    }
    each_output(&mut check, &between::<f32>(36, 1100, 700), I32)?;
    check.end()
}

fn layouts(backend: &Backend, routine: Option<Routine>, layout: Layout) -> Outcome {
    let mut check = Check::new(backend, routine);
    for cols in [65, 128, 1300] {
        let matrix = ragged::<f32>(36, cols, 100 + cols as u64);
        check.all(&matrix, layout, &[1, 32, 65], &[false, true], true, Method::Exact)?;
    }
    for (cols, k) in [(700, 700), (6000, 5000)] {
        let matrix = ragged::<f32>(36, cols, 100 + cols as u64);
        check.all(&matrix, layout, &[k], &[true], true, Method::Exact)?;
    }
    check.end()
}

fn outputs(backend: &Backend, routine: Option<Routine>, index: cubecl::ir::ElemType) -> Outcome {
    let mut check = Check::new(backend, routine);
    for cols in [60, 256, 1100] {
        each_output(&mut check, &ragged::<f32>(36, cols, 200 + cols as u64), index)?;
    }
    check.end()
}

fn dtype<T: Element>(
    backend: &Backend,
    routine: Option<Routine>,
    method: Method,
    largest: bool,
) -> Outcome {
    let mut check = Check::new(backend, routine);
    for cols in [64, 203, 1500] {
        let matrix = ragged::<T>(44, cols, 300 + cols as u64);
        check.all(
            &matrix,
            Layout::Contiguous,
            &[1, 17, cols / 2],
            &[false, true],
            largest,
            method,
        )?;
    }
    check.end()
}

/// Short buffers of bounds are refused by type before a launch.
fn errors(backend: &Backend) -> Result<(), String> {
    let client = backend.client.as_ref().expect("a client");
    let input = Layout::Contiguous.upload(client, &Matrix::<f32>::mixed(5, 10, 0));
    let buffer = |bounds: &[u32]| client.create_from_slice(bytemuck::cast_slice(bounds));
    let input = input.with_lengths(buffer(&[3; 4]));
    for k in [0, 2] {
        let options = kernel::TopkOptions::new(k);
        match kernel::topk(client, &input, &options, I32, None) {
            Err(KernelError::BufferTooShort { name: "lengths", needed: 5, found: 4 }) => {}
            Err(error) => return Err(format!("unexpected refusal: {error}")),
            Ok(_) => return Err("four lengths for five rows were accepted".into()),
        }
        let (starts, ends) = (buffer(&[0; 4]), buffer(&[3; 5]));
        match kernel::topk(client, &input.clone().with_bounds(starts, ends), &options, I32, None) {
            Err(KernelError::BufferTooShort { name: "starts", needed: 5, found: 4 }) => {}
            Err(error) => return Err(format!("unexpected refusal of starts: {error}")),
            Ok(_) => return Err("four starts for five rows were accepted".into()),
        }
    }
    Ok(())
}
