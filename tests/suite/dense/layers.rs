//! Layer norm, linear layers, sums and Adam, with gradients, as kernels and tensors, against f64.

use burn::tensor::{Device, Int, Tensor, TensorData};
use cubecl::{ir::ElemType, server::Handle};
use sparsek::dense::{
    AdamFactors, adam_step, add_bias, class_hits, column_sums, cross_entropy, layer_norm, linear,
    linear_added, linear_compressed, linear_selected,
};
use sparsek::sparse::sparse_topk;
use sparsek::topk::Method;
use sparsek_kernels::dense::{self as kernel, DenseRows, Normalized};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::normals,
    element::Element,
    oracle::dense::{self as oracle, Normalization, Scaled, adam},
    panics::expect_panic,
    runner::{Cases, Outcome, Verdict},
};

use crate::{
    dense::common::{self, small_integers},
    kernels::{read, refusal},
};

/// Rows and width: empty, one, around one chunk of rows, more than one batch.
const SIZES: [[usize; 2]; 9] =
    [[0, 5], [1, 1], [3, 256], [127, 33], [128, 64], [129, 7], [1000, 100], [4096, 12], [4500, 16]];
/// Rows, width and k: dense products, then products of kept elements alone, with columns of all
/// dtypes, and with few and many entries per column.
const COMPRESSED: [[usize; 3]; 9] = [
    [0, 5, 2],
    [7, 300, 300],
    [1100, 64, 13],
    [4500, 16, 4],
    [9001, 64, 13],
    [5, 128, 2],
    [3000, 64, 1],
    [400, 1300, 20],
    [70, 70_000, 3],
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
    for size in [[0, 5], [1, 1], [127, 33], [4096, 12], [4500, 16], [9001, 12]] {
        let [rows, width] = size;
        add_product(cases, backend, format!("linear/{rows}x{width}"), move |b| linears(b, size));
    }
    for [rows, width] in [[129, 7], [300, 64]] {
        let name = |dtype: &str| format!("tensor/dense/normalize/{dtype}/{rows}x{width}");
        cases.add(backend, name("f64"), move |b| tensors::<f64>(b, [rows, width]));
        cases.add(backend, name("f16"), move |b| tensors::<half::f16>(b, [rows, width]));
        cases.add(backend, name("bf16"), move |b| tensors::<half::bf16>(b, [rows, width]));
    }
    for size in COMPRESSED {
        let name = size.map(|n| n.to_string()).join("x");
        add_product(cases, backend, format!("compressed/{name}"), move |b| compressed(b, size));
        add_product(cases, backend, format!("selected/{name}"), move |b| selected(b, size));
    }
    for elements in [0, 1, 7, 256, 70_003] {
        let name = |dtype: &str| format!("tensor/dense/adam/{dtype}/{elements}");
        cases.add(backend, name("f32"), move |b| steps::<f32>(b, elements));
        cases.add(backend, name("f64"), move |b| steps::<f64>(b, elements));
        cases.add(backend, name("f16"), move |b| steps::<half::f16>(b, elements));
        cases.add(backend, name("bf16"), move |b| steps::<half::bf16>(b, elements));
    }
    for size in [[0, 5], [1, 1], [129, 7], [4096, 12], [20_003, 41]] {
        let name = |dtype: &str| format!("tensor/dense/classes/{dtype}/{}x{}", size[0], size[1]);
        cases.add(backend, name("f32"), move |b| classes::<f32>(b, size));
        cases.add(backend, name("f64"), move |b| classes::<f64>(b, size));
        cases.add(backend, name("f16"), move |b| classes::<half::f16>(b, size));
        cases.add(backend, name("bf16"), move |b| classes::<half::bf16>(b, size));
    }
    for size in [[0, 5], [1, 1], [129, 7], [4096, 12], [70_003, 1]] {
        let name = format!("tensor/dense/column-sums/{}x{}", size[0], size[1]);
        cases.check(backend, name, move |b| sums(b, size));
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
    let numbers: Vec<Vec<f64>> =
        (sizes.iter().zip(51..)).map(|(&size, seed)| normals(size, seed)).collect();
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
        let y = layer_norm(dense + kept, gamma, beta.clone(), EPSILON);
        let y = add_bias(y, beta);
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

pub fn compare<T: Element>(what: &str, found: &[f64], expected: &Scaled) -> Result<(), String> {
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
    let rows_of = |handle| DenseRows { handle, dtype, rows, width };
    let request =
        Normalized { x: rows_of(&x), gamma: &gamma, epsilon: EPSILON, planes: Some(planes) };
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

/// Three steps in a row, each from what the one before returned.
fn steps<T: Element>(backend: &Backend, elements: usize) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    let factors = [0.9f32, 0.999, 0.01, 0.05, 1e-3];
    let [beta_1, beta_2, decay, rate, epsilon] = factors;
    let request = AdamFactors { beta_1, beta_2, decay, rate, epsilon };
    let round = |x: f64| T::of(x).wide_f64();
    let numbers = |seed| -> Vec<f64> { normals(elements, seed).into_iter().map(round).collect() };
    let on_device = |data: &[f64]| upload::<T>(data, [elements, 1], &backend.device);
    let mut x = numbers(1);
    // The second moment of a dtype without room for 0.001 g² starts at one.
    let mut moments = [numbers(2), vec![1.0; elements]];
    for step in 3..6 {
        let gradient = numbers(step);
        let inputs = [&x, &gradient, &moments[0], &moments[1]].map(Vec::as_slice);
        let expected = adam(inputs, factors.map(f64::from));
        let [tensor, up, first, second] = inputs.map(on_device);
        let (tensor, [first, second]) = adam_step(tensor, up, [first, second], request);
        let found = [tensor, first, second].map(download);
        let names = ["parameter", "first moment", "second moment"];
        for (name, (found, expected)) in names.iter().zip(found.iter().zip(&expected)) {
            compare::<T>(name, found, expected)?;
        }
        let [next, first, second] = found;
        (x, moments) = (next, [first, second]);
    }
    Ok(Verdict::Passed)
}

/// Every fifth row has no label; scores tie often, and one row is large.
fn classes<T: Element>(backend: &Backend, [rows, count]: [usize; 2]) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    if T::NAME == "f64"
        && matches!(backend.kind, Kind::Vulkan | Kind::Wgpu | Kind::WebGpu | Kind::Metal)
    {
        let scores = Tensor::<2>::ones([1, 2], (&backend.device, T::dtype()));
        let labels = Tensor::<1, Int>::zeros([1], &backend.device);
        let run = || drop(cross_entropy(scores, labels, 1.0).into_data());
        let message = expect_panic(run)?;
        return match message.contains("has no logarithms and powers of f64") {
            true => Ok(Verdict::Passed),
            false => Err(message),
        };
    }
    let mut scores = small_integers(rows * count, 7);
    scores.iter_mut().take(count).for_each(|x| *x *= 100.0);
    let label = |row: usize| {
        if row % 5 == 4 { -1 } else { (row * 7 % count) as i64 }
    };
    let labels: Vec<i64> = (0..rows).map(label).collect();
    let scale = 1.0 / 64.0;
    let (loss, gradient, hits) = oracle::cross_entropy(&scores, &labels, count, scale.into());
    let device = backend.device.clone().autodiff();
    let on_device = TensorData::new(labels, [rows]);
    let on_device = Tensor::<1, Int>::from_data(on_device, &device);
    let x = upload::<T>(&scores, [rows, count], &device).require_grad();
    let found = cross_entropy(x.clone(), on_device.clone(), scale);
    compare::<T>("loss", &download(found.clone()), &loss)?;
    if download(class_hits(x.clone().inner(), on_device.inner())) != hits {
        return Err("the hits differ".into());
    }
    if rows == 0 {
        return Ok(Verdict::Passed);
    }
    let gradients = (found * 2.0).backward();
    let found = download(x.grad(&gradients).ok_or("no gradient")?);
    let double = |x: Vec<f64>| x.into_iter().map(|x| 2.0 * x).collect();
    let gradient = Scaled { values: double(gradient.values), scales: double(gradient.scales) };
    compare::<T>("gradient", &found, &gradient)?;
    Ok(Verdict::Passed)
}

/// Small integers: sums and gradients are exact.
fn sums(backend: &Backend, [rows, width]: [usize; 2]) -> Result<(), String> {
    let device = backend.device.clone().autodiff();
    let (data, upstream) = (small_integers(rows * width, 1), small_integers(width, 2));
    let mut expected = vec![0.0; width];
    for (at, x) in data.iter().enumerate() {
        expected[at % width] += x;
    }
    let x = upload::<f32>(&data, [rows, width], &device).require_grad();
    let found = column_sums(x.clone());
    if download(found.clone()) != expected {
        return Err("the sums differ".into());
    }
    if rows == 0 {
        return Ok(());
    }
    let upstream_tensor = upload::<f32>(&upstream, [1, width], &device).reshape([width]);
    let gradients = (found * upstream_tensor).backward();
    let gradient = download(x.grad(&gradients).ok_or("no gradient")?);
    let all = (0..rows * width).map(|at| upstream[at % width]);
    let agrees = gradient == all.collect::<Vec<f64>>();
    agrees.then_some(()).ok_or("the gradient differs".into())
}

/// Result and all gradients, exactly.
fn linears(backend: &Backend, [rows, inputs]: [usize; 2]) -> Result<(), String> {
    // Many rows: widths that the tensor core kernels accept.
    let outputs = if rows > 8192 { 8 } else { 6 };
    let device = backend.device.clone().autodiff();
    let (x, weight) = (small_integers(rows * inputs, 1), small_integers(inputs * outputs, 2));
    let (bias, upstream) = (small_integers(outputs, 3), small_integers(rows * outputs, 4));
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
    let addend = small_integers(rows * outputs, 5);
    let on_device = upload::<f32>(&addend, [rows, outputs], &device).require_grad();
    let found = linear_added(tx.clone(), tw.clone(), tb.clone(), on_device.clone());
    let sums: Vec<f64> = y.iter().zip(&addend).map(|(y, a)| y + a).collect();
    equal("y + addend", download(found.clone()), &sums)?;
    let up = upload::<f32>(&upstream, [rows, outputs], &device);
    let gradients = (found * up).backward();
    let found = on_device.grad(&gradients).ok_or("no gradient for the addend")?;
    equal("daddend", download(found), &upstream)?;
    let found = tw.grad(&gradients).ok_or("no gradient with an addend")?;
    equal("dweight with an addend", download(found), &dw)?;
    // No bias, untracked rows.
    let x = upload::<f32>(&x, [rows, inputs], &device);
    let y = linear(x, tw.clone(), None) * upload::<f32>(&upstream, [rows, outputs], &device);
    let found = tw.grad(&y.backward()).ok_or("no gradient without a bias")?;
    equal("dweight without a bias", download(found), &dw)
}

/// The result, of `len` elements, and both gradients.
fn equal_results(
    found: &[Vec<f64>; 3],
    expected: &[Vec<f64>; 3],
    len: usize,
) -> Result<(), String> {
    for (what, (found, expected)) in ["y", "dx", "dweight"].iter().zip(found.iter().zip(expected)) {
        if found != expected {
            return Err(format!("{what} differs"));
        }
    }
    match found[0].len() == len {
        true => Ok(()),
        false => Err(format!("{} elements", found[0].len())),
    }
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
    equal_results(&found, &expected, rows * outputs)
}

/// Selected outputs equal those of the whole layer, exactly. 300 inputs fill a plane with loads.
fn selected(backend: &Backend, [rows, width, k]: [usize; 3]) -> Result<(), String> {
    let inputs = match rows {
        8192.. => 24,
        _ if width == 1300 => 300,
        _ => 21,
    };
    let device = backend.device.clone().autodiff();
    let scores = upload::<f32>(&small_integers(rows * width, 5), [rows, width], &device);
    let kept = sparse_topk(scores, k, Method::Exact);
    let x = small_integers(rows * inputs, 6);
    let weight = small_integers(width * inputs, 7);
    let run = |alone: bool| -> Result<[Vec<f64>; 3], String> {
        let x = upload::<f32>(&x, [rows, inputs], &device).require_grad();
        let weight = upload::<f32>(&weight, [width, inputs], &device).require_grad();
        let y = match alone {
            true => linear_selected(x.clone(), weight.clone(), &kept).values().clone(),
            false => {
                let places = kept.columns().clone().cast(device.settings().int_dtype);
                x.clone().matmul(weight.clone().transpose()).gather(1, places)
            }
        };
        let found = download(y.clone());
        if rows == 0 {
            return Ok([found, Vec::new(), Vec::new()]);
        }
        let gradients = (y * kept.values().clone()).backward();
        let [dx, dw] = [x, weight].map(|of| of.grad(&gradients).map(download));
        let none = "no gradient";
        Ok([found, dx.ok_or(none)?, dw.ok_or(none)?])
    };
    let (found, expected) = (run(true)?, run(false)?);
    equal_results(&found, &expected, rows * k)
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
    let factors = AdamFactors { beta_1: 0.9, beta_2: 0.999, decay: 0.0, rate: 0.1, epsilon: 1e-8 };
    expect(
        "the second moment has shape [5], the parameter [4]",
        Box::new(|| drop(adam_step(vector(4), vector(4), [vector(4), vector(5)], factors))),
    )?;
    let tracked = Tensor::<1>::ones([4], &device.clone().autodiff());
    expect(
        "the parameter is tracked",
        Box::new(|| {
            let [g, m, v] = [(); 3].map(|()| tracked.clone());
            drop(adam_step(tracked, g, [m, v], factors))
        }),
    )?;
    let labels = |rows: usize| Tensor::<1, Int>::zeros([rows], device);
    expect("2 labels for 3 rows of scores", Box::new(|| drop(cross_entropy(x(), labels(2), 1.0))))?;
    expect("4 labels for 3 rows of scores", Box::new(|| drop(class_hits(x(), labels(4)))))?;
    expect(
        "gamma has 3 elements, rows have 4",
        Box::new(|| drop(layer_norm(x(), vector(3), vector(4), EPSILON))),
    )?;
    expect(
        "beta has 5 elements, rows have 4",
        Box::new(|| drop(layer_norm(x(), vector(4), vector(5), EPSILON))),
    )
}
