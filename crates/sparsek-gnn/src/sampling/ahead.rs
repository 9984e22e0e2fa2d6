//! ```text
//! worker w: makes items w, w + workers, w + 2 · workers, … into a queue of its own
//! iterator: reads queue i mod workers
//! ```
//!
//! Items are independent, so scheduling changes nothing.

use std::{
    iter::FusedIterator,
    num::NonZeroUsize,
    panic::resume_unwind,
    sync::{
        Arc,
        mpsc::{Receiver, sync_channel},
    },
    thread::{self, JoinHandle},
};

const MAX_WORKERS: usize = 4;

pub(crate) fn default_workers() -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    cores.min(MAX_WORKERS)
}

pub(crate) trait Plan: Send + Sync + 'static {
    type Item: Send + 'static;
    type Scratch;

    fn scratch(&self) -> Self::Scratch;
    fn item(&self, at: usize, scratch: &mut Self::Scratch) -> Self::Item;
}

struct Worker<T> {
    items: Receiver<T>,
    thread: JoinHandle<()>,
}

impl<T: Send + 'static> Worker<T> {
    fn start<P: Plan<Item = T>>(
        plan: Arc<P>,
        places: impl Iterator<Item = usize> + Send + 'static,
        prefetch: usize,
    ) -> std::io::Result<Self> {
        // A waiting item is ahead too.
        let (sender, items) = sync_channel(prefetch - 1);
        let work = move || {
            let mut scratch = plan.scratch();
            for at in places {
                if sender.send(plan.item(at, &mut scratch)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("sparsek-sampler".to_string()).spawn(work)?;
        Ok(Self { items, thread })
    }
}

enum Source<P: Plan> {
    Workers(Vec<Worker<P::Item>>),
    Local { plan: Arc<P>, scratch: P::Scratch },
}

pub(crate) struct Ahead<P: Plan> {
    source: Source<P>,
    next: usize,
    count: usize,
}

impl<P: Plan> Ahead<P> {
    /// Needs `prefetch > 0`. Without threads, the iterator makes the items.
    pub fn new(plan: P, count: usize, workers: usize, prefetch: usize) -> Self {
        let plan = Arc::new(plan);
        let workers = workers.min(count);
        let started: Result<Vec<_>, _> = (0..workers)
            .map(|first| Worker::start(plan.clone(), (first..count).step_by(workers), prefetch))
            .collect();
        let source = match started {
            Ok(workers) if !workers.is_empty() => Source::Workers(workers),
            _ => Source::Local { scratch: plan.scratch(), plan },
        };
        Self { source, next: 0, count }
    }

    /// Items read.
    pub fn position(&self) -> usize {
        self.next
    }

    fn stop(&mut self) -> thread::Result<()> {
        self.next = self.count;
        let Source::Workers(workers) = &mut self.source else {
            return Ok(());
        };
        // Close all receivers before waiting.
        let threads: Vec<_> = workers.drain(..).map(|worker| worker.thread).collect();
        threads.into_iter().map(JoinHandle::join).fold(Ok(()), Result::and)
    }
}

impl<P: Plan> Iterator for Ahead<P> {
    type Item = P::Item;

    fn next(&mut self) -> Option<P::Item> {
        if self.next == self.count {
            return None;
        }
        let item = match &mut self.source {
            Source::Local { plan, scratch } => Ok(plan.item(self.next, scratch)),
            Source::Workers(workers) => workers[self.next % workers.len()].items.recv(),
        };
        let Ok(item) = item else {
            let panic = self.stop().expect_err("a worker ends early by a panic only");
            resume_unwind(panic)
        };
        self.next += 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.count - self.next;
        (left, Some(left))
    }
}

impl<P: Plan> ExactSizeIterator for Ahead<P> {}

impl<P: Plan> FusedIterator for Ahead<P> {}

impl<P: Plan> Drop for Ahead<P> {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
