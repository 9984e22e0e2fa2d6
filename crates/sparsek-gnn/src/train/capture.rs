//! Repeats an epoch as a captured graph: one launch for the host.
//!
//! ```text
//! first epochs   run, so that kernels are compiled and tuned and memory is allocated
//! next epoch     record the launches of a step and its evaluation, then replay them
//! later epochs   replay
//! ```
//!
//! Parameters, Adam's moments and the step's number change in place; [`StepTable`] has the numbers
//! of each step.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::{
    backend::{Backend, BackendGraph, Dispatch},
    module::{Module, ModuleMapper, Param},
    tensor::{Device, Tensor},
};
use sparsek::steps::{StepRow, StepTable};

use super::{
    data::read, engine::Engine, error::TrainError, precision::has_untrained, replicas::Replicas,
};
use crate::{nn::NodeModel, step::with_step};

/// Fusion allocates as in later runs from the second on.
const WARM_UP: usize = 3;

pub(super) struct Capture {
    device: Device,
    table: StepTable,
    ran: usize,
    phase: Phase,
}

enum Phase {
    /// Nothing ran, or the device has no graphs.
    Plain,
    /// The device prepares or records a graph.
    Open,
    Recorded(Box<Recorded>),
}

struct Recorded {
    graph: BackendGraph<Dispatch>,
    numbers: Tensor<1>,
}

impl Capture {
    pub(super) fn new(rows: &[StepRow], device: &Device) -> Self {
        let device = device.clone().without_autodiff();
        Self { table: StepTable::new(rows, &device), device, ran: 0, phase: Phase::Plain }
    }

    /// Returns the loss and counts of epoch `time`.
    pub(super) fn epoch<M: NodeModel>(
        &mut self,
        engine: &Engine,
        replicas: Replicas<M>,
        (lr, time): (f64, usize),
    ) -> Result<(Replicas<M>, Vec<f32>), TrainError> {
        let device = self.device.as_dispatch();
        if self.ran == 0 && Dispatch::graph_prepare(device).is_ok() {
            self.phase = Phase::Open;
        }
        // Not earlier: the first epoch draws parameters when it reads them.
        if self.ran == 1 && has_untrained(replicas.model()) {
            let reason = "capture needs a model whose parameters are all trained";
            return Err(TrainError::Config(reason.to_string()));
        }
        let mut records = false;
        if self.ran == WARM_UP && matches!(self.phase, Phase::Open) {
            records = Dispatch::graph_start_capture(device).is_ok();
            if !records {
                self.close();
            }
        }
        self.ran += 1;
        if let Phase::Recorded(recorded) = &self.phase {
            replay(&self.device, &recorded.graph)?;
            return Ok((replicas, read(recorded.numbers.clone())?));
        }
        let words = self.table.next_step();
        let (replicas, numbers) = with_step(words, time, || engine.measured_step(replicas, lr))?;
        if records {
            let graph = Dispatch::graph_stop_capture(self.device.as_dispatch());
            self.phase = Phase::Plain;
            let graph = graph.map_err(|error| failed(&error))?;
            replay(&self.device, &graph)?;
            self.phase = Phase::Recorded(Box::new(Recorded { graph, numbers: numbers.clone() }));
        }
        Ok((replicas, read(numbers)?))
    }

    pub(super) fn is_recorded(&self) -> bool {
        matches!(self.phase, Phase::Recorded(_))
    }

    fn close(&mut self) {
        if let Phase::Open = self.phase {
            // Also ends what was prepared only. A device thread that panicked does so again.
            let stop = || drop(Dispatch::graph_stop_capture(self.device.as_dispatch()));
            let _ = catch_unwind(AssertUnwindSafe(stop));
            self.phase = Phase::Plain;
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.close();
    }
}

fn replay(device: &Device, graph: &BackendGraph<Dispatch>) -> Result<(), TrainError> {
    // SAFETY: the trainer keeps the step's tensors, and this thread runs nothing beside it.
    let done = unsafe { Dispatch::graph_replay(device.as_dispatch(), graph) };
    done.map_err(|error| failed(&error))
}

fn failed(error: &dyn std::fmt::Display) -> TrainError {
    TrainError::Device(format!("{error}; train without capture"))
}

/// Model unchanged by later steps.
pub(super) fn copied<M: Module>(model: M, device: &Device) -> Result<M, TrainError> {
    let model = model.map(&mut Copier);
    device.flush().map_err(|error| TrainError::Device(error.to_string()))?;
    Ok(model)
}

struct Copier;

impl ModuleMapper for Copier {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| value * 1.0)
    }
}
