use serde::{Deserialize, Serialize};

/// One epoch; metrics are without dropout, after its last step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// From 1.
    pub epoch: usize,
    /// Mean training loss with dropout, before steps.
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

/// Receives epochs, perhaps by closure; errors end training.
pub trait Progress {
    /// Called after each epoch.
    fn on_epoch(&mut self, report: &EpochReport) -> std::io::Result<()>;

    /// Called before a save, after its epochs' reports; errors prevent the save.
    fn before_save(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    /// Whether to stop after this epoch, saving to a checkpoint; sets [`TrainOutcome::interrupted`]
    /// unless it was the last.
    fn stop(&self) -> bool {
        false
    }
}

impl<F: FnMut(&EpochReport) -> std::io::Result<()>> Progress for F {
    fn on_epoch(&mut self, report: &EpochReport) -> std::io::Result<()> {
        self(report)
    }
}

/// Result of training.
#[derive(Clone, Debug)]
pub struct TrainOutcome<M> {
    /// Best by validation, outside autodiff; the saved one if resumption found no better.
    pub model: M,
    /// Its report; the first on ties.
    pub best: EpochReport,
    /// Epochs before resumption.
    pub earlier: Vec<EpochReport>,
    /// Epochs of this run.
    pub history: Vec<EpochReport>,
    /// All epochs, with earlier ones.
    pub epochs: usize,
    /// Median wall-clock milliseconds.
    pub ms_per_epoch: f64,
    /// Seconds of all epochs.
    pub seconds: f64,
    /// Whether [`Progress::stop`] ended it early.
    pub interrupted: bool,
}

/// Result of evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Training loss without dropout; NaN in batches.
    pub loss: f64,
    /// Training metric.
    pub train: f64,
    /// Validation metric.
    pub val: f64,
    /// Test metric.
    pub test: f64,
}
