//! Results and gradients of layers, compared with those of Flex in f64, and with a second run.
//!
//! Inputs and parameters are small integers, exact in every dtype, so that all devices select the
//! same elements.

use burn::tensor::DType;
use sparsek_tests::{
    backend::{Backend, Kind},
    runner::{Cases, Outcome, Verdict},
};

use super::subjects::{Run, SUBJECTS, Subject};

pub fn add(cases: &mut Cases, backend: &Backend) {
    for subject in SUBJECTS {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            if dtype == DType::BF16 && !subject.bf16 {
                continue;
            }
            let name = format!("tensor/nn/{}/{}", subject.name, dtype.name());
            cases.add(backend, name, move |b| compare(b, &subject, dtype));
        }
    }
}

/// Largest error over the greatest magnitude of a result.
fn tolerance(backend: &Backend, subject: &Subject, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1e-2,
        DType::BF16 => 8e-2,
        // On tensor cores, Burn's products round to TF32.
        _ if subject.products && !matches!(backend.kind, Kind::Flex | Kind::Cpu) => 5e-3,
        _ if subject.products => 5e-4,
        _ => 2e-5,
    }
}

fn refusal(backend: &Backend, subject: &Subject, dtype: DType) -> Option<String> {
    if let Some(reason) = backend.lacks(dtype) {
        return Some(reason);
    }
    if subject.products && backend.kind == Kind::Cpu {
        return Some("Burn tunes a product for a minute on CubeCL's CPU runtime".into());
    }
    if let Some(reason) = backend.shared_memory_defect() {
        return Some(reason);
    }
    Kind::Flex.open().err().map(|_| "Flex, which computes the expected result, is missing".into())
}

fn compare(backend: &Backend, subject: &Subject, dtype: DType) -> Outcome {
    if let Some(reason) = refusal(backend, subject, dtype) {
        return Ok(Verdict::Skipped(reason));
    }
    let flex = Kind::Flex.open()?.device.autodiff();
    let expected = (subject.run)(&flex, DType::F64);
    let run = || (subject.run)(&backend.device.clone().autodiff(), dtype);
    let found = run();
    if run() != found {
        return Err("a second run gives other bits".into());
    }
    let tolerance = tolerance(backend, subject, dtype);
    equal(&found, &expected, tolerance).map(|()| Verdict::Passed)
}

fn equal(found: &Run, expected: &Run, tolerance: f64) -> Result<(), String> {
    if expected.floats.iter().flatten().all(|&x| x == 0.0) && expected.integers.is_empty() {
        return Err("every expected result is 0".into());
    }
    if found.integers != expected.integers {
        return Err(format!("selected {:?} instead of {:?}", found.integers, expected.integers));
    }
    let lengths = |run: &Run| run.floats.iter().map(Vec::len).collect::<Vec<_>>();
    if lengths(found) != lengths(expected) {
        let (found, expected) = (lengths(found), lengths(expected));
        return Err(format!("results of {found:?} elements instead of {expected:?}"));
    }
    for (which, (found, expected)) in found.floats.iter().zip(&expected.floats).enumerate() {
        let greatest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let bound = tolerance * (greatest + 1e-3);
        for (at, (x, y)) in found.iter().zip(expected).enumerate() {
            let off = (x - y).abs();
            if off.is_nan() || off > bound {
                return Err(format!(
                    "result {which}, element {at}: {x} instead of {y}, off by more than {bound:e}"
                ));
            }
        }
    }
    Ok(())
}
