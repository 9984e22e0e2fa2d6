//! A thread's step: dropout and Adam read its numbers on the device.

use std::cell::RefCell;

use sparsek::steps::StepWords;

struct Step {
    words: StepWords,
    /// Counts optimizer steps from 1.
    time: usize,
    calls: u32,
}

thread_local! {
    static STEP: RefCell<Option<Step>> = const { RefCell::new(None) };
}

/// Ends the step, also after a panic.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        STEP.set(None);
    }
}

/// Steps do not nest.
pub(crate) fn with_step<T>(words: StepWords, time: usize, run: impl FnOnce() -> T) -> T {
    STEP.set(Some(Step { words, time, calls: 0 }));
    let _running = Running;
    run()
}

/// Numbers of the running step, and of its next random draw.
pub(crate) fn next_call() -> Option<(StepWords, u32)> {
    STEP.with_borrow_mut(|step| {
        let step = step.as_mut()?;
        step.calls += 1;
        Some((step.words.clone(), step.calls - 1))
    })
}

pub(crate) fn optimizer_step() -> Option<(StepWords, usize)> {
    STEP.with_borrow(|step| step.as_ref().map(|step| (step.words.clone(), step.time)))
}
