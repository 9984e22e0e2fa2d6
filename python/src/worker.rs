//! One thread that computes while Python runs.
//!
//! A CubeCL stream belongs to a thread, and so does the memory that it reuses: all computations run
//! on the same thread, one after the other. The caller waits without the interpreter's lock and
//! looks for signals.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use pyo3::prelude::*;

use crate::error::Failure;

/// Time between two looks for signals.
const POLL: Duration = Duration::from_millis(50);

type Job = Box<dyn FnOnce() + Send>;

struct Worker {
    jobs: Sender<Job>,
    /// A fork copies this, but not the thread.
    process: u32,
}

static WORKER: OnceLock<Result<Worker, String>> = OnceLock::new();

/// Tells a job that nobody waits for it.
#[derive(Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends a job between two parts of its work.
    pub fn check(&self) -> Result<(), Failure> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Failure::runtime("interrupted")),
            false => Ok(()),
        }
    }
}

/// Runs a job on the worker and waits for it without the interpreter's lock.
///
/// An exception of a signal handler, such as `KeyboardInterrupt`, is raised at once; the job ends
/// at its next check. A panic becomes a `RuntimeError`.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    job: impl FnOnce(&Cancel) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let worker = WORKER.get_or_init(start).as_ref().map_err(Failure::runtime)?;
    if worker.process != process::id() {
        let reason = "sparsek was used before this process was forked, and its threads are not \
                      copied; start processes by spawn, or use sparsek first in the child";
        return Err(Failure::runtime(reason).into());
    }
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let cancel = Cancel::default();
    let watched = cancel.clone();
    let job = move || {
        let result = watched.check().and_then(|()| {
            catch_unwind(AssertUnwindSafe(|| job(&watched)))
                .unwrap_or_else(|panic| Err(Failure::runtime(reason(&*panic))))
        });
        // After an interrupt nobody listens.
        let _ = sender.send(result);
    };
    worker.jobs.send(Box::new(job)).map_err(|_| Failure::runtime(GONE))?;
    loop {
        let (result, returned) = py.detach(move || (receiver.recv_timeout(POLL), receiver));
        receiver = returned;
        match result {
            Ok(result) => return Ok(result?),
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::runtime(GONE).into()),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    cancel.0.store(true, Ordering::Relaxed);
                    return Err(signal);
                }
            }
        }
    }
}

const GONE: &str = "the thread that computes has ended";

fn start() -> Result<Worker, String> {
    let (jobs, received) = mpsc::channel::<Job>();
    let work = move || received.into_iter().for_each(|job| job());
    let thread = thread::Builder::new().name("sparsek".into()).spawn(work);
    thread.map_err(|error| format!("the thread that computes: {error}"))?;
    Ok(Worker { jobs, process: process::id() })
}

fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "the computation panicked".into())
}
