//! Dropout and Adam from numbers on the device.

use burn::tensor::{Tensor, TensorData};
use sparsek::{
    dense::{AdamFactors, column_sums},
    steps::{StepRow, StepTable, StepWords, adam_step_in_place, dropout},
};
use sparsek_tests::{
    backend::Backend,
    data::normals,
    element::Element,
    oracle::dense::{adam, keeps},
    panics::expect_panic,
    runner::{Cases, Outcome, Verdict},
};

use crate::dense::layers::compare;

pub fn add(cases: &mut Cases, backend: &Backend) {
    for elements in [0, 1, 7, 256, 70_003] {
        for keep in [0.25, 0.9, 1.0] {
            let name = |dtype: &str| format!("tensor/steps/dropout/{dtype}/{elements}/{keep}");
            cases.add(backend, name("f32"), move |b| drops::<f32>(b, elements, keep));
            cases.add(backend, name("f64"), move |b| drops::<f64>(b, elements, keep));
            cases.add(backend, name("f16"), move |b| drops::<half::f16>(b, elements, keep));
            cases.add(backend, name("bf16"), move |b| drops::<half::bf16>(b, elements, keep));
        }
        let name = |dtype: &str| format!("tensor/steps/adam/{dtype}/{elements}");
        cases.add(backend, name("f32"), move |b| steps::<f32>(b, elements));
        cases.add(backend, name("f64"), move |b| steps::<f64>(b, elements));
        cases.add(backend, name("f16"), move |b| steps::<half::f16>(b, elements));
        cases.add(backend, name("bf16"), move |b| steps::<half::bf16>(b, elements));
    }
    cases.check(backend, "tensor/steps/rows", rows);
    cases.check(backend, "tensor/steps/panics", panics);
}

fn row(rate: f32, seed: [u32; 2]) -> StepRow {
    StepRow { rate, epsilon: 1e-3, seed }
}

fn words(backend: &Backend, row: StepRow) -> StepWords {
    StepTable::new(&[row], &backend.device).next_step()
}

/// Output and gradient keep the same elements, those of the oracle.
fn drops<T: Element>(backend: &Backend, elements: usize, keep: f32) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    let (seed, call) = ([u32::MAX - 3, 0x8000_0001], 5);
    let words = words(backend, row(0.1, seed));
    let device = backend.device.clone().autodiff();
    let round = |x: f64| T::of(x).wide_f64();
    let numbers = |seed| -> Vec<f64> { normals(elements, seed).into_iter().map(round).collect() };
    let tensor = |data: &[f64]| {
        let data = TensorData::new(data.to_vec(), [elements, 1]);
        Tensor::<2>::from_data(data, (&device, T::dtype()))
    };
    let (input, upstream) = (numbers(1), numbers(2));
    let x = tensor(&input).require_grad();
    let y = dropout(x.clone(), &words, keep, call);
    // llvmpipe crashes on Burn's sum of one element.
    let gradients = column_sums(y.clone() * tensor(&upstream)).backward();
    let dx = x.grad(&gradients).ok_or("no gradient")?;
    let output = 2f64.powi(-(T::MANTISSA.count_ones() as i32));
    for (what, found, given) in [("y", y.into_data(), &input), ("dx", dx.into_data(), &upstream)] {
        let found: Vec<f64> = found.iter::<f64>().collect();
        if found.len() != elements {
            return Err(format!("{what}: {} elements", found.len()));
        }
        for (at, (&found, &given)) in found.iter().zip(given).enumerate() {
            let kept = keeps(seed, call, keep, at as u32);
            let expected = if kept { given / f64::from(keep) } else { 0.0 };
            let bound = 2.0 * output.max(f64::from(f32::EPSILON)) * expected.abs();
            if off_by(found, expected, bound) {
                return Err(format!("{what}: element {at} is {found} instead of {expected}"));
            }
        }
    }
    Ok(Verdict::Passed)
}

fn off_by(found: f64, expected: f64, bound: f64) -> bool {
    let off = (found - expected).abs();
    off.is_nan() || off > bound
}

/// Steps have the rows' rates; on devices, a clone of the parameter changes too.
fn steps<T: Element>(backend: &Backend, elements: usize) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    let rates = [0.05f32, 0.01, 0.2];
    let mut table = StepTable::new(&rates.map(|rate| row(rate, [1, 2])), &backend.device);
    let round = |x: f64| T::of(x).wide_f64();
    let numbers = |seed| -> Vec<f64> { normals(elements, seed).into_iter().map(round).collect() };
    let tensor = |data: &[f64]| {
        let data = TensorData::new(data.to_vec(), [elements]);
        Tensor::<1>::from_data(data, (&backend.device, T::dtype()))
    };
    let download = |x: Tensor<1>| x.into_data().iter::<f64>().collect::<Vec<f64>>();
    let mut host = [numbers(1), numbers(2), vec![1.0; elements]];
    let [mut x, mut first, mut second] = host.each_ref().map(|data| tensor(data));
    let start = x.clone();
    for (step, rate) in (3..).zip(rates) {
        let gradient = numbers(step);
        // Neither rate nor epsilon of these is used.
        let factors =
            AdamFactors { beta_1: 0.9, beta_2: 0.999, decay: 0.01, rate: 9.0, epsilon: 9.0 };
        let words = table.next_step();
        (x, [first, second]) =
            adam_step_in_place(x, tensor(&gradient), [first, second], &words, factors);
        let inputs = [&host[0], &gradient, &host[1], &host[2]].map(Vec::as_slice);
        let expected = adam(inputs, [0.9f32, 0.999, 0.01, rate, 1e-3].map(f64::from));
        let found = [&x, &first, &second].map(|tensor| download(tensor.clone()));
        for (name, (found, expected)) in
            ["parameter", "first moment", "second moment"].iter().zip(found.iter().zip(&expected))
        {
            compare::<T>(name, found, expected)?;
        }
        host = found;
    }
    match backend.client.is_some() && download(start) != host[0] {
        true => Err("the parameter moved to another buffer".into()),
        false => Ok(Verdict::Passed),
    }
}

/// Each step has the next row, and the last one again.
fn rows(backend: &Backend) -> Result<(), String> {
    let seeds = [[1, 0], [7, 9], [u32::MAX, 1 << 31]];
    let mut table = StepTable::new(&seeds.map(|seed| row(0.1, seed)), &backend.device);
    for (step, seed) in [0, 1, 2, 2, 2].map(|row| seeds[row]).into_iter().enumerate() {
        let words = table.next_step();
        let ones = Tensor::<2>::ones([8, 64], &backend.device);
        let found: Vec<f32> = dropout(ones, &words, 0.5, 0).into_data().iter().collect();
        let right = found.iter().zip(0..).all(|(&x, at)| (x != 0.0) == keeps(seed, 0, 0.5, at));
        if !right {
            return Err(format!("step {step} has not the seed {seed:?}"));
        }
    }
    Ok(())
}

fn panics(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    let words = words(backend, row(0.1, [1, 2]));
    for keep in [0.0, -0.5, 1.5, f32::NAN] {
        let message =
            expect_panic(|| drop(dropout(Tensor::<1>::ones([3], device), &words, keep, 0)))?;
        if !message.contains("not above 0 and at most 1") {
            return Err(message);
        }
    }
    let message = expect_panic(|| drop(StepTable::new(&[], device)))?;
    message.contains("a table of no step").then_some(()).ok_or(message)
}
