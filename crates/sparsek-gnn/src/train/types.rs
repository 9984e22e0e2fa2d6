//! What training reports, and to whom.
use serde::{Deserialize, Serialize};

/// One epoch. Metrics are without dropout, after the epoch's last step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// Epoch, from 1.
    pub epoch: usize,
    /// Mean training loss with dropout, before each step.
    pub loss: f64,
    /// Training metric.
    pub train: f64,
    /// Validation metric.
    pub val: f64,
    /// Test metric.
    pub test: f64,
    /// Wall-clock milliseconds with evaluation.
    pub ms: f64,
}

/// Receives epochs; a closure will do. An error ends the training.
pub trait Progress {
    /// Called after each epoch.
    ///
    /// # Errors
    /// Whatever the receiver could not write.
    fn on_epoch(&mut self, report: &EpochReport) -> std::io::Result<()>;

    /// Called before a save, after its epochs were reported.
    ///
    /// # Errors
    /// Whatever the receiver could not write; then nothing is saved.
    fn before_save(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    /// Whether to stop after this epoch. The run is saved if it has a checkpoint;
    /// [`TrainOutcome::interrupted`] is true unless it was the last epoch.
    fn stop(&self) -> bool {
        false
    }
}

impl<F: FnMut(&EpochReport) -> std::io::Result<()>> Progress for F {
    fn on_epoch(&mut self, report: &EpochReport) -> std::io::Result<()> {
        self(report)
    }
}

/// Result of a training run.
#[derive(Clone, Debug)]
pub struct TrainOutcome<M> {
    /// Best model by validation metric, outside autodiff; the saved one if a resumed run found none
    /// better.
    pub model: M,
    /// Report of that epoch, the first on ties.
    pub best: EpochReport,
    /// Epochs before a resumption, in order.
    pub earlier: Vec<EpochReport>,
    /// Epochs of this run, in order.
    pub history: Vec<EpochReport>,
    /// Number of epochs, including earlier ones.
    pub epochs: usize,
    /// Median wall-clock milliseconds of all epochs.
    pub ms_per_epoch: f64,
    /// Seconds of all epochs.
    pub seconds: f64,
    /// Whether [`Progress::stop`] ended the run early.
    pub interrupted: bool,
}

/// Result of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Mean training loss without dropout; NaN in batched evaluation.
    pub loss: f64,
    /// Training metric.
    pub train: f64,
    /// Validation metric.
    pub val: f64,
    /// Test metric.
    pub test: f64,
}
