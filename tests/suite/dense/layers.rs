//! Layer norm and linear layers with gradients, as kernels and tensors, against f64.

use burn::tensor::{Device, Tensor, TensorData};
use cubecl::{ir::ElemType, server::Handle};
use sparsek::dense::{layer_norm, linear, linear_compressed};
use sparsek::sparse::sparse_topk;
use sparsek::topk::Method;
use sparsek_kernels::dense::{self as kernel, DenseRows, Normalized};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::normals,
    element::Element,
    oracle::dense::{Normalization, Scaled},
    panics::expect_panic,
    runner::{Cases, Outcome, Verdict},
};

use crate::{
    dense::common::{self, small_integers},
    kernels::{read, refusal},
};

/// Rows and width: empty, one, around one chunk of rows, more than one batch.
const SIZES: [[usize; 2]; 9] = [
    [0, 5],
    [1, 1],
    [3, 256],
    [127, 33],
    [128, 64],
    [129, 7],
    [1000, 100],
    [4096, 12],
    [4500, 16],
];
const EPSILON: f32 = 1e-5;

pub fn add(cases: &mut Cases, backend: &Backend) {
    for [rows, width] in SIZES {
        let size = format!("{rows}x{width}");
        if backend.client.is_some() {
            for (name, planes) in [("plane", true), ("unit", false)] {
                cases.add(backend, format!("kernel/dense/{name}/{size}"), move |b| {
                    forced(b, planes, [rows, width])
                });
            }
        }
        let name = format!("tensor/dense/normalize/{size}");
        cases.add(backend, name, move |b| tensors::<f32>(b, [rows, width]));
    }
    for size in [
        [0, 5],
        [1, 1],
        [127, 33],
        [4096, 12],
        [4500, 16],
        [9001, 12],
    ] {
        let [rows, width] = size;
        add_product(cases, backend, format!("linear/{rows}x{width}"), move |b| {
            linears(b, size)
        });
    }
    for [rows, width] in [[129, 7], [300, 64]] {
        let name = |dtype: &str| format!("tensor/dense/normalize/{dtype}/{rows}x{width}");
        cases.add(backend, name("f64"), move |b| {
            tensors::<f64>(b, [rows, width])
        });
        cases.add(backend, name("f16"), move |b| {
            tensors::<half::f16>(b, [rows, width])
        });
        cases.add(backend, name("bf16"), move |b| {
            tensors::<half::bf16>(b, [rows, width])
        });
    }
    for [rows, width, k] in [
        [0, 5, 2],
        [7, 300, 300],
        [1100, 64, 13],
        [4500, 16, 4],
        [9001, 64, 13],
    ] {
        let name = format!("compressed/{rows}x{width}x{k}");
        add_product(cases, backend, name, move |b| {
            compressed(b, [rows, width, k])
        });
    }
    cases.add(backend, "tensor/dense/differences", differences);
    cases.check(backend, "tensor/dense/panics", panics);
}

/// Gradients against finite differences in f64: rows (dense and compressed), weights, biases.
fn differences(backend: &Backend) -> Outcome {
    let dtype = burn::tensor::DType::F64;
    let lacking = backend.lacks(dtype);
    if let Some(reason) = lacking.or_else(|| product_defect(backend)) {
        return Ok(Verdict::Skipped(reason));
    }
    let (rows, width, out, k) = (7, 6, 4, 3);
    let device = backend.device.clone().autodiff();
    let sizes = [rows * width, width * out, out, out, out];
    let numbers: Vec<Vec<f64>> = (sizes.iter().zip(51..))
        .map(|(&size, seed)| normals(size, seed))
        .collect();
    let upstream = normals(rows * out, 60);
    let tensor = |data: &[f64], shape: Vec<usize>| TensorData::new(data.to_vec(), shape);
    let parameters = |numbers: &[Vec<f64>]| {
        let vector = |at: usize| {
            Tensor::<1>::from_data(tensor(&numbers[at], vec![out]), (&device, dtype)).require_grad()
        };
        let matrix = |at: usize, shape: [usize; 2]| {
            Tensor::<2>::from_data(tensor(&numbers[at], shape.to_vec()), (&device, dtype))
                .require_grad()
        };
        let matrices = [matrix(0, [rows, width]), matrix(1, [width, out])];
        (matrices, [vector(2), vector(3), vector(4)])
    };
    let loss = |[x, weight]: [Tensor<2>; 2], [bias, gamma, beta]: [Tensor<1>; 3]| {
        let dense = linear(x.clone(), weight.clone(), Some(bias));
        let kept = linear_compressed(&sparse_topk(x, k, Method::Exact), weight);
        let y = layer_norm(dense + kept, gamma, beta, EPSILON);
        let upstream = Tensor::<2>::from_data(tensor(&upstream, vec![rows, out]), (&device, dtype));
        (y.clone() * y * upstream).sum()
    };
    let (matrices, vectors) = parameters(&numbers);
    let gradients = loss(matrices.clone(), vectors.clone()).backward();
    let mut found: Vec<Vec<f64>> = Vec::new();
    for matrix in &matrices {
        let gradient = matrix.grad(&gradients).ok_or("no gradient of a matrix")?;
        found.push(gradient.into_data().iter::<f64>().collect());
    }
    for vector in &vectors {
        let gradient = vector.grad(&gradients).ok_or("no gradient of a vector")?;
        found.push(gradient.into_data().iter::<f64>().collect());
    }
    let value = |numbers: &[Vec<f64>]| {
        let (matrices, vectors) = parameters(numbers);
        let data = loss(matrices, vectors).into_data();
        data.iter::<f64>().sum::<f64>()
    };
    let step = 1e-6;
    for (which, gradient) in found.iter().enumerate() {
        for (at, &found) in gradient.iter().enumerate() {
            let moved = |by: f64| {
                let mut numbers = numbers.clone();
                numbers[which][at] += by;
                value(&numbers)
            };
            let expected = (moved(step) - moved(-step)) / (2.0 * step);
            if (found - expected).abs() > 1e-5 * (1.0 + expected.abs()) {
                return Err(format!(
                    "parameter {which}, element {at}: {found}, differences say {expected}"
                ));
            }
        }
    }
    Ok(Verdict::Passed)
}

fn product_defect(backend: &Backend) -> Option<String> {
    match backend.kind {
        Kind::Cpu => Some("Burn tunes a product for a minute on CubeCL's CPU runtime".into()),
        _ => backend.shared_memory_defect(),
    }
}

/// Adds a case with Burn's matrix products, which need shared memory.
fn add_product(
    cases: &mut Cases,
    backend: &Backend,
    name: String,
    body: impl FnOnce(&Backend) -> Result<(), String> + Send + 'static,
) {
    let defect = product_defect(backend);
    let name = format!("tensor/dense/{name}");
    cases.add(backend, name, move |backend| match defect {
        Some(reason) => Ok(Verdict::Skipped(reason)),
        None => body(backend).map(|()| Verdict::Passed),
    });
}

/// Rows with a nonzero mean, one of them constant.
fn problem<T: Element>([rows, width]: [usize; 2]) -> Normalization {
    let round = |data: Vec<f64>| -> Vec<f64> {
        let round = |x: f64| T::of(x).wide_f64();
        data.into_iter().map(round).collect()
    };
    let mut x = round(normals(rows * width, 1));
    for (at, x) in x.iter_mut().enumerate() {
        *x = T::of(if at / width == 2 { 3.0 } else { *x + 1.0 }).wide_f64();
    }
    Normalization {
        x,
        gamma: round(normals(width, 2)),
        beta: round(normals(width, 3)),
        upstream: round(normals(rows * width, 4)),
        epsilon: EPSILON.into(),
    }
}

fn compare<T: Element>(what: &str, found: &[f64], expected: &Scaled) -> Result<(), String> {
    if found.len() != expected.values.len() {
        let (found, expected) = (found.len(), expected.values.len());
        return Err(format!("{what}: {found} elements instead of {expected}"));
    }
    let output = 2f64.powi(-(T::MANTISSA.count_ones() as i32));
    let sums = output.min(f64::from(f32::EPSILON));
    for (at, (&found, &value)) in found.iter().zip(&expected.values).enumerate() {
        let bound = 32.0 * sums * expected.scales[at] + output * value.abs() + 1e-7 * output;
        let small = if T::NAME == "f16" { 1e-7 } else { 0.0 };
        let off = (found - value).abs();
        if off.is_nan() || off > bound + small {
            return Err(format!(
                "{what}: element {at} is {found} instead of {value}, off by more than {bound:e}"
            ));
        }
    }
    Ok(())
}

fn forced(backend: &Backend, planes: bool, sizes: [usize; 2]) -> Outcome {
    let client = backend.client.as_ref().expect("asked for with one");
    let [rows, width] = sizes;
    let problem = problem::<f32>(sizes);
    let upload = |data: &[f64]| common::upload(backend, data);
    let download = |handle: Handle, n: usize| -> Vec<f64> {
        let data = read::<f32>(client, handle, n).into_iter();
        data.map(f64::from).collect()
    };
    let (x, gamma) = (upload(&problem.x), upload(&problem.gamma));
    let (beta, upstream) = (upload(&problem.beta), upload(&problem.upstream));
    let dtype = ElemType::Float(cubecl::ir::FloatKind::F32);
    let rows_of = |handle| DenseRows {
        handle,
        dtype,
        rows,
        width,
    };
    let request = Normalized {
        x: rows_of(&x),
        gamma: &gamma,
        epsilon: EPSILON,
        planes: Some(planes),
    };
    let expected = problem.solve();
    let y = match kernel::layer_norm(client, &request, &beta) {
        Ok(y) => y,
        Err(error) => {
            return match refusal(&error) {
                Some(reason) => Ok(Verdict::Skipped(reason)),
                None => Err(error.to_string()),
            };
        }
    };
    compare::<f32>("y", &download(y, rows * width), &expected.y)?;
    let gradients = kernel::layer_norm_gradient(client, &request, &upstream);
    let [dx, parameters] = gradients.map_err(|error| error.to_string())?;
    compare::<f32>("dx", &download(dx, rows * width), &expected.dx)?;
    let parameters = download(parameters, 2 * width);
    compare::<f32>("dgamma", &parameters[..width], &expected.gamma)?;
    compare::<f32>("dbeta", &parameters[width..], &expected.beta)?;
    let sums = kernel::column_sums(client, &rows_of(&upstream)).map_err(|e| e.to_string())?;
    compare::<f32>("sums", &download(sums, width), &expected.beta)?;
    Ok(Verdict::Passed)
}

fn upload<T: Element>(data: &[f64], shape: [usize; 2], device: &Device) -> Tensor<2> {
    let data: Vec<T> = data.iter().map(|&x| T::of(x)).collect();
    Tensor::from_data(TensorData::new(data, shape), (device, T::dtype()))
}

fn download<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

fn tensors<T: Element>(backend: &Backend, sizes: [usize; 2]) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    let problem = problem::<T>(sizes);
    let expected = problem.solve();
    let device = backend.device.clone().autodiff();
    let vector = |data: &[f64]| {
        let row = upload::<T>(data, [1, sizes[1]], &device);
        row.reshape([sizes[1]]).require_grad()
    };
    let x = upload::<T>(&problem.x, sizes, &device).require_grad();
    let (gamma, beta) = (vector(&problem.gamma), vector(&problem.beta));
    let y = layer_norm(x.clone(), gamma.clone(), beta.clone(), EPSILON);
    compare::<T>("y", &download(y.clone()), &expected.y)?;
    if sizes[0] == 0 {
        return Ok(Verdict::Passed);
    }
    let gradients = (y * upload::<T>(&problem.upstream, sizes, &device)).backward();
    let dx = x.grad(&gradients).ok_or("no gradient for x")?;
    compare::<T>("dx", &download(dx), &expected.dx)?;
    let dgamma = gamma.grad(&gradients).ok_or("no gradient for gamma")?;
    compare::<T>("dgamma", &download(dgamma), &expected.gamma)?;
    let dbeta = beta.grad(&gradients).ok_or("no gradient for beta")?;
    compare::<T>("dbeta", &download(dbeta), &expected.beta)?;
    Ok(Verdict::Passed)
}

/// Result and all gradients, exactly.
fn linears(backend: &Backend, [rows, inputs]: [usize; 2]) -> Result<(), String> {
    // Many rows: widths that the tensor core kernels accept.
    let outputs = if rows > 8192 { 8 } else { 6 };
    let device = backend.device.clone().autodiff();
    let (x, weight) = (
        small_integers(rows * inputs, 1),
        small_integers(inputs * outputs, 2),
    );
    let (bias, upstream) = (
        small_integers(outputs, 3),
        small_integers(rows * outputs, 4),
    );
    let mut y = Vec::new();
    let mut dx = vec![0.0; x.len()];
    let mut dw = vec![0.0; weight.len()];
    let mut db = vec![0.0; outputs];
    for row in 0..rows {
        for (o, db) in db.iter_mut().enumerate() {
            let up = upstream[row * outputs + o];
            let mut sum = bias[o];
            *db += up;
            for i in 0..inputs {
                let (x, weight) = (x[row * inputs + i], weight[i * outputs + o]);
                sum += x * weight;
                dx[row * inputs + i] += up * weight;
                dw[i * outputs + o] += up * x;
            }
            y.push(sum);
        }
    }
    let tx = upload::<f32>(&x, [rows, inputs], &device).require_grad();
    let tw = upload::<f32>(&weight, [inputs, outputs], &device).require_grad();
    let tb = upload::<f32>(&bias, [1, outputs], &device);
    let tb = tb.reshape([outputs]).require_grad();
    let found = linear(tx.clone(), tw.clone(), Some(tb.clone()));
    let equal = |what: &str, found: Vec<f64>, expected: &[f64]| {
        let agrees = found == expected;
        agrees.then_some(()).ok_or_else(|| {
            let at = found.iter().zip(expected).position(|(a, b)| a != b);
            format!("{what} differs at {at:?}, of {} elements", found.len())
        })
    };
    equal("y", download(found.clone()), &y)?;
    if rows == 0 {
        return Ok(());
    }
    let gradients = (found * upload::<f32>(&upstream, [rows, outputs], &device)).backward();
    let gradient = |x: &Tensor<2>| x.grad(&gradients).ok_or("no gradient");
    equal("dx", download(gradient(&tx)?), &dx)?;
    equal("dweight", download(gradient(&tw)?), &dw)?;
    let found = tb.grad(&gradients).ok_or("no gradient for the bias")?;
    equal("dbias", download(found), &db)?;
    // No bias, untracked rows.
    let x = upload::<f32>(&x, [rows, inputs], &device);
    let y = linear(x, tw.clone(), None) * upload::<f32>(&upstream, [rows, outputs], &device);
    let found = tw.grad(&y.backward()).ok_or("no gradient without a bias")?;
    equal("dweight without a bias", download(found), &dw)
}

/// A linear layer of compressed rows equals that of dense rows, exactly.
fn compressed(backend: &Backend, [rows, width, k]: [usize; 3]) -> Result<(), String> {
    let outputs = if rows > 8192 { 24 } else { 21 };
    let device = backend.device.clone().autodiff();
    let x = small_integers(rows * width, 5);
    let weight = small_integers(width * outputs, 6);
    let upstream = small_integers(rows * outputs, 7);
    let run = |compressed: bool| -> Result<[Vec<f64>; 3], String> {
        let x = upload::<f32>(&x, [rows, width], &device).require_grad();
        let weight = upload::<f32>(&weight, [width, outputs], &device).require_grad();
        let kept = sparse_topk(x.clone(), k, Method::Exact);
        let y = match compressed {
            true => linear_compressed(&kept, weight.clone()),
            false => kept.to_dense().matmul(weight.clone()),
        };
        let found = download(y.clone());
        if rows == 0 {
            return Ok([found, Vec::new(), Vec::new()]);
        }
        let upstream = upload::<f32>(&upstream, [rows, outputs], &device);
        let gradients = (y * upstream).backward();
        let [dx, dw] = [x, weight].map(|of| of.grad(&gradients).map(download));
        let none = "no gradient";
        Ok([found, dx.ok_or(none)?, dw.ok_or(none)?])
    };
    let (found, expected) = (run(true)?, run(false)?);
    for (what, (found, expected)) in ["y", "dx", "dweight"]
        .iter()
        .zip(found.iter().zip(expected))
    {
        if *found != expected {
            return Err(format!("{what} differs"));
        }
    }
    match found[0].len() == rows * outputs {
        true => Ok(()),
        false => Err(format!("{} elements", found[0].len())),
    }
}

fn panics(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    let x = || Tensor::<2>::ones([3, 4], device);
    let vector = |n: usize| Tensor::<1>::ones([n], device);
    let expect = |what: &str, body: Box<dyn FnOnce() + '_>| {
        let message = expect_panic(body)?;
        let agrees = message.contains(what);
        agrees.then_some(()).ok_or(message)
    };
    expect(
        "rows of 4 elements, but the weight has 5 rows",
        Box::new(|| drop(linear(x(), Tensor::ones([5, 2], device), None))),
    )?;
    expect(
        "a bias of 3 elements for 2 columns",
        Box::new(|| drop(linear(x(), Tensor::ones([4, 2], device), Some(vector(3))))),
    )?;
    expect(
        "gamma has 3 elements, rows have 4",
        Box::new(|| drop(layer_norm(x(), vector(3), vector(4), EPSILON))),
    )?;
    expect(
        "beta has 5 elements, rows have 4",
        Box::new(|| drop(layer_norm(x(), vector(4), vector(5), EPSILON))),
    )
}
