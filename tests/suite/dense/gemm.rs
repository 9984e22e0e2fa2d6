//! Tensor core GEMM: exact on integers; unsupported requests are refused.

use cubecl::{
    ir::{ElemType, FloatKind},
    server::Handle,
};
use sparsek_kernels::{
    KernelError,
    dense::{DenseRows, PitchedRows, Weight, accumulates, inner_fits, inner_product, product},
};

use sparsek_tests::{
    backend::Backend,
    runner::{Cases, Outcome, Verdict},
};

use crate::{
    dense::common::{small_integers, upload},
    kernels::read,
};

const F32: ElemType = ElemType::Float(FloatKind::F32);

/// Rows, inputs and outputs: empty, below a tile, near one, ragged, the widest for an H200, chunks
/// of the matrix, and widths of loads by two and by one.
const PRODUCTS: [[usize; 3]; 14] = [
    [0, 4, 4],
    [1, 4, 4],
    [31, 16, 128],
    [33, 100, 132],
    [257, 256, 256],
    [300, 20, 36],
    [1000, 4, 260],
    [9000, 448, 64],
    [70_001, 96, 128],
    [33, 6, 10],
    [257, 7, 3],
    [300, 767, 256],
    [1000, 1000, 12],
    [1000, 1433, 7],
];
const INNER: [[usize; 3]; 11] = [
    [0, 4, 4],
    [1, 4, 8],
    [15, 64, 64],
    [17, 256, 128],
    [1000, 100, 256],
    [4097, 256, 300],
    [3001, 320, 132],
    [70_001, 32, 20],
    [1000, 256, 10],
    [3001, 767, 130],
    [257, 33, 7],
];

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    for size in PRODUCTS {
        let [rows, inputs, outputs] = size;
        for (layout, transposed) in [("plain", false), ("transposed", true)] {
            let name = format!("kernel/dense/product/{layout}/{rows}x{inputs}x{outputs}");
            cases.add(backend, name, move |b| products(b, size, transposed));
        }
    }
    for size in INNER {
        let [rows, left, right] = size;
        let name = format!("kernel/dense/inner/{rows}x{left}x{right}");
        cases.add(backend, name, move |b| inner(b, size));
    }
    cases.check(backend, "kernel/dense/product/refused", refused);
}

/// `[rows, inner] · [inner, outputs]`.
pub fn multiply(x: &[f64], weight: &[f64], [rows, inner, outputs]: [usize; 3]) -> Vec<f64> {
    let mut y = vec![0.0; rows * outputs];
    for row in 0..rows {
        for i in 0..inner {
            for o in 0..outputs {
                y[row * outputs + o] += x[row * inner + i] * weight[i * outputs + o];
            }
        }
    }
    y
}

pub fn transpose(x: &[f64], [rows, cols]: [usize; 2]) -> Vec<f64> {
    let at = |place: usize| x[place % rows * cols + place / rows];
    (0..rows * cols).map(at).collect()
}

pub fn rows(handle: &Handle, [rows, width]: [usize; 2]) -> PitchedRows<'_> {
    let rows = DenseRows { handle, dtype: F32, rows, width };
    rows.into()
}

/// Compares exactly; skips if the kernel refuses as `fits` predicted.
fn verdict(
    backend: &Backend,
    serves: bool,
    result: Result<Handle, KernelError>,
    expected: &[f64],
) -> Outcome {
    let client = backend.client.as_ref().expect("asked for with one");
    let found = match (serves, result) {
        (true, Ok(found)) => read::<f32>(client, found, expected.len()),
        (false, Err(error @ KernelError::Routine { .. })) => {
            return Ok(Verdict::Skipped(error.to_string()));
        }
        (serves, result) => return Err(format!("serves: {serves}, but {result:?}")),
    };
    let mut pairs = found.iter().zip(expected);
    match pairs.position(|(&found, &expected)| f64::from(found) != expected) {
        None => Ok(Verdict::Passed),
        Some(at) => {
            let (found, expected) = (found[at], expected[at]);
            Err(format!("element {at} is {found} instead of {expected}"))
        }
    }
}

fn products(backend: &Backend, size: [usize; 3], transposed: bool) -> Outcome {
    let client = backend.client.as_ref().expect("asked for with one");
    let [count, inputs, outputs] = size;
    let (numbers, weight) =
        (small_integers(count * inputs, 1), small_integers(inputs * outputs, 2));
    let mut expected = multiply(&numbers, &weight, size);
    let stored = match transposed {
        true => transpose(&weight, [inputs, outputs]),
        false => weight,
    };
    let (x, stored) = (upload(backend, &numbers), upload(backend, &stored));
    let x = rows(&x, [count, inputs]);
    let matrix = Weight {
        handle: &stored,
        inputs,
        outputs,
        strides: if transposed { [1, inputs] } else { [outputs, 1] },
    };
    let serves = matrix.fits(client, &x);
    if transposed {
        return verdict(backend, serves, product(client, &x, &matrix, None, None), &expected);
    }
    let bias = small_integers(outputs, 3);
    for (at, sum) in expected.iter_mut().enumerate() {
        *sum += bias[at % outputs];
    }
    let bias = upload(backend, &bias);
    let found = product(client, &x, &matrix, Some(&bias), None);
    let plain = verdict(backend, serves, found, &expected)?;
    if !matches!(plain, Verdict::Passed) {
        return Ok(plain);
    }
    let with_padding = upload(backend, &pad(&numbers, [count, inputs]));
    let padded = apart(x, &with_padding);
    let found = product(client, &padded, &matrix, Some(&bias), None);
    verdict(backend, matrix.fits(client, &padded), found, &expected)?;
    let addend = small_integers(count * outputs, 8);
    let sums: Vec<f64> = expected.iter().zip(&addend).map(|(a, b)| a + b).collect();
    let addend = upload(backend, &addend);
    let found = product(client, &x, &matrix, Some(&bias), Some(&addend));
    verdict(backend, accumulates(client), found, &sums)?;
    Ok(Verdict::Passed)
}

fn inner(backend: &Backend, size: [usize; 3]) -> Outcome {
    let client = backend.client.as_ref().expect("asked for with one");
    let [count, left, right] = size;
    let (x, y) = (small_integers(count * left, 4), small_integers(count * right, 5));
    let expected = multiply(&transpose(&x, [count, left]), &y, [left, count, right]);
    let padded = [(&x, left), (&y, right)].map(|(side, width)| pad(side, [count, width]));
    let padded = padded.map(|side| upload(backend, &side));
    let (x, y) = (upload(backend, &x), upload(backend, &y));
    let (x, y) = (rows(&x, [count, left]), rows(&y, [count, right]));
    let serves = inner_fits(client, &x, &y);
    let plain = verdict(backend, serves, inner_product(client, &x, &y), &expected)?;
    if !matches!(plain, Verdict::Passed) {
        return Ok(plain);
    }
    let (x, y) = (apart(x, &padded[0]), apart(y, &padded[1]));
    let found = inner_product(client, &x, &y);
    verdict(backend, inner_fits(client, &x, &y), found, &expected)?;
    Ok(Verdict::Passed)
}

fn padded_width(width: usize) -> usize {
    width.next_multiple_of(4) + 4
}

/// Rows apart, with NaN between them.
fn pad(data: &[f64], [count, width]: [usize; 2]) -> Vec<f64> {
    let pitch = padded_width(width);
    let mut padded = vec![f64::NAN; count * pitch];
    for row in 0..count {
        padded[row * pitch..][..width].copy_from_slice(&data[row * width..][..width]);
    }
    padded
}

fn apart<'a>(x: PitchedRows<'_>, handle: &'a Handle) -> PitchedRows<'a> {
    PitchedRows { rows: DenseRows { handle, ..x.rows }, pitch: padded_width(x.rows.width) }
}

/// Another dtype and mismatched sides; widths that are no multiple of 4 and large matrices, unless
/// `fits` says that they are served.
fn refused(backend: &Backend) -> Result<(), String> {
    let client = backend.client.as_ref().expect("asked for with one");
    let data = upload(backend, &small_integers(1 << 16, 6));
    let matrix = |inputs, outputs| Weight { handle: &data, inputs, outputs, strides: [outputs, 1] };
    let mut narrow = rows(&data, [8, 64]);
    narrow.rows.dtype = ElemType::Float(FloatKind::F16);
    let products = [
        (rows(&data, [8, 6]), matrix(6, 8), true),
        (rows(&data, [8, 8]), matrix(8, 6), true),
        (rows(&data, [8, 8]), matrix(16, 8), false),
        (rows(&data, [1, 1 << 14]), matrix(1 << 14, 4), true),
        (narrow, matrix(64, 8), false),
    ];
    for (x, matrix, may) in products {
        let result = product(client, &x, &matrix, None, None);
        let served = may && matrix.fits(client, &x);
        match (served, result) {
            (true, Ok(_)) | (false, Err(KernelError::Routine { .. })) => {}
            (_, result) => return Err(format!("{x:?} times {matrix:?}: {result:?}")),
        }
    }
    let inner = [[rows(&data, [8, 8]), rows(&data, [9, 8])], [narrow, narrow]];
    for [x, y] in inner {
        let result = inner_product(client, &x, &y);
        if !matches!(result, Err(KernelError::Routine { .. })) {
            return Err(format!("{x:?} and {y:?}: {result:?}"));
        }
    }
    Ok(())
}
