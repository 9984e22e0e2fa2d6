//! Runs cases and counts results per backend.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Trial};

use crate::{
    backend::{Backend, Kind},
    panics::message,
};

/// Result of a case that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All assertions held.
    Passed,
    /// The device refused with the documented error.
    Skipped(String),
}

/// Result of a case; the error is the failure message.
pub type Outcome = Result<Verdict, String>;

pub struct Case {
    kind: Kind,
    name: String,
    body: Box<dyn FnOnce() -> Outcome + Send>,
}

#[derive(Default)]
pub struct Cases(Vec<Case>);

impl Cases {
    /// Adds case `backend/name`.
    pub fn add(
        &mut self,
        backend: &Backend,
        name: impl Into<String>,
        body: impl FnOnce(&Backend) -> Outcome + Send + 'static,
    ) {
        let owned = backend.clone();
        let name = format!("{}/{}", backend.kind, name.into());
        self.0.push(Case { kind: backend.kind, name, body: Box::new(move || body(&owned)) });
    }

    /// Adds a case that must not be skipped.
    pub fn check(
        &mut self,
        backend: &Backend,
        name: impl Into<String>,
        body: impl FnOnce(&Backend) -> Result<(), String> + Send + 'static,
    ) {
        self.add(backend, name, |backend| body(backend).map(|()| Verdict::Passed));
    }

    /// Adds a case whose kernels, such as Burn's sums and products, have shared memory.
    pub fn check_shared(
        &mut self,
        backend: &Backend,
        name: impl Into<String>,
        body: impl FnOnce(&Backend) -> Result<(), String> + Send + 'static,
    ) {
        self.add(backend, name, |backend| match backend.shared_memory_defect() {
            Some(reason) => Ok(Verdict::Skipped(reason)),
            None => body(backend).map(|()| Verdict::Passed),
        });
    }
}

#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: BTreeMap<String, usize>,
    pub time: Duration,
}

impl Counts {
    pub fn skips(&self) -> usize {
        self.skipped.values().sum()
    }
}

/// Runs the cases in sequence; returns counts in the order of `kinds`.
pub fn run(mut arguments: Arguments, kinds: &[Kind], cases: Cases) -> Vec<Counts> {
    arguments.test_threads = Some(1);
    let counts = Arc::new(Mutex::new(vec![Counts::default(); kinds.len()]));
    let trials = cases.0.into_iter().map(|case| {
        let slot = kinds
            .iter()
            .position(|&kind| kind == case.kind)
            .expect("every case belongs to an open backend");
        let counts = Arc::clone(&counts);
        Trial::ignorable_test(case.name, move || {
            let start = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(case.body))
                .unwrap_or_else(|panic| Err(message(&*panic)));
            let mut counts = counts.lock().expect("no case panics while it holds the lock");
            let counts = &mut counts[slot];
            counts.time += start.elapsed();
            match outcome {
                Ok(Verdict::Passed) => {
                    counts.passed += 1;
                    Ok(Completion::Completed)
                }
                Ok(Verdict::Skipped(reason)) => {
                    *counts.skipped.entry(reason.clone()).or_default() += 1;
                    Ok(Completion::ignored_with(reason))
                }
                Err(failure) => {
                    counts.failed += 1;
                    Err(failure.into())
                }
            }
        })
    });
    let trials = trials.collect();
    // The counts replace libtest's conclusion.
    let _ = libtest_mimic::run(&arguments, trials);
    Arc::try_unwrap(counts).map_or_else(
        |shared| shared.lock().expect("idle").clone(),
        |own| own.into_inner().expect("idle"),
    )
}

/// One line per backend, then the totals.
pub fn summary(backends: &[Backend], counts: &[Counts]) -> String {
    let mut text = String::new();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (backend, counts) in backends.iter().zip(counts) {
        let _ = write!(
            text,
            "{} ({}): {} passed, {} failed, {} skipped",
            backend.kind,
            backend.label,
            counts.passed,
            counts.failed,
            counts.skips()
        );
        if !counts.skipped.is_empty() {
            let reasons: Vec<String> =
                counts.skipped.iter().map(|(reason, n)| format!("{reason}: {n}")).collect();
            let _ = write!(text, " ({})", reasons.join("; "));
        }
        let _ = writeln!(text, ", {:.1} s", counts.time.as_secs_f64());
        passed += counts.passed;
        failed += counts.failed;
        skipped += counts.skips();
    }
    let _ = writeln!(text, "{passed} passed, {failed} failed, {skipped} skipped");
    text
}

/// One JSON object per backend and line.
pub fn json_lines(backends: &[Backend], counts: &[Counts]) -> String {
    let line = |(backend, counts): (&Backend, &Counts)| {
        let object = serde_json::json!({
            "backend": backend.kind.to_string(),
            "device": backend.label,
            "fusion": cfg!(feature = "fusion"),
            "passed": counts.passed,
            "failed": counts.failed,
            "skipped": counts.skips(),
            "reasons": counts.skipped,
            "seconds": counts.time.as_secs_f64(),
        });
        format!("{object}\n")
    };
    backends.iter().zip(counts).map(line).collect()
}
