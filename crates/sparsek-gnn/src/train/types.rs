use serde::{Deserialize, Serialize};

/// One epoch, evaluated after its last step.
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
    /// Milliseconds with evaluation.
    pub ms: f64,
}

/// Receives epochs; errors end training.
pub trait Progress {
    /// Called after each epoch.
    fn on_epoch(&mut self, report: &EpochReport) -> std::io::Result<()>;

    /// Called before a save; errors prevent it.
    fn before_save(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    /// Whether to stop and save; sets [`TrainOutcome::interrupted`].
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
    /// Best by validation, outside autodiff.
    pub model: M,
    /// Its report; first on ties.
    pub best: EpochReport,
    /// Epochs before resumption.
    pub earlier: Vec<EpochReport>,
    /// Epochs of this run.
    pub history: Vec<EpochReport>,
    /// Epochs with earlier ones.
    pub epochs: usize,
    /// Median wall-clock milliseconds.
    pub ms_per_epoch: f64,
    /// Total seconds.
    pub seconds: f64,
    /// Whether [`Progress::stop`] ended it early.
    pub interrupted: bool,
    /// Whether a [captured](super::Trainer::with_capture) graph repeated epochs.
    pub captured: bool,
}

/// Result of evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Training loss; NaN in batches.
    pub loss: f64,
    /// Training metric.
    pub train: f64,
    /// Validation metric.
    pub val: f64,
    /// Test metric.
    pub test: f64,
}
