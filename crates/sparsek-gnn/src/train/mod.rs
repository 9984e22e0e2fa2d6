//! Training of node classifiers, full batch or in batches, on one device or several.
//!
//! [`train`] runs Adam on the loss of the training nodes, evaluates every epoch, and reports the [`Metric`] of the test nodes in
//! the epoch that was best on the validation nodes. With a [`CheckpointDir`] it can be stopped and resumed.
mod checkpoint;
mod data;
mod devices;
mod engine;
mod epochs;
mod fingerprint;
mod lists;
mod log;
mod metric;
mod optimizer;
mod replicas;
mod run;
#[cfg(all(test, feature = "flex"))]
mod tests;

use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor},
};
use serde::{Deserialize, Serialize};
use sparsek::io::text;
use std::path::PathBuf;

pub use checkpoint::{CheckpointDir, RunId, SavedRun};
pub use devices::DevicesError;
pub use engine::Batching;
pub use epochs::Epochs;
pub use fingerprint::{Fingerprint, Preparation};
pub use log::{RunLog, RunSummary};
pub use metric::Metric;
pub use run::{Evaluation, TrainOutcome, Trainer, evaluate, train, train_on};

use crate::{Graph, datasets::NodeDataset, nn::ModelError};

/// A model that scores the classes of every node.
pub trait NodeModel: Module {
    /// Scores (logits) of every class for every node. Shapes: x is [nodes, features], the result [nodes, classes].
    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2>;
}

/// The configuration from which a [`NodeModel`] is built; it is stored beside the model's parameters.
pub trait NodeModelConfig: Config + Clone + PartialEq {
    /// The model that is built.
    type Model: NodeModel;

    /// Checks the sizes, without building anything.
    ///
    /// # Errors
    /// [`ModelError`] for what cannot be built, such as a k above the width.
    fn validate(&self) -> Result<(), ModelError>;

    /// Builds the model on the device, with random parameters.
    ///
    /// # Errors
    /// As [`NodeModelConfig::validate`].
    fn init(&self, device: &Device) -> Result<Self::Model, ModelError>;

    /// Features per node that the model takes.
    fn input_width(&self) -> usize;

    /// Classes that the model scores.
    fn classes(&self) -> usize;

    /// Least bytes that training on a whole graph of `nodes` nodes takes, its data apart. What
    /// exceeds the limit of [`sparsek::io::memory`] is refused before anything is allocated.
    /// Default: 0, for unknown.
    fn training_bytes(&self, nodes: usize) -> u128 {
        let _ = nodes;
        0
    }
}

/// How to train.
#[derive(Config, Debug, PartialEq)]
pub struct TrainConfig {
    /// Most epochs to run.
    #[config(default = 200)]
    pub epochs: usize,
    /// Learning rate of Adam.
    #[config(default = 0.003)]
    pub lr: f64,
    /// L2 penalty added to the gradients.
    #[config(default = 0.0)]
    pub weight_decay: f64,
    /// Stop after so many epochs without a better validation accuracy.
    pub patience: Option<usize>,
    /// Seed of the parameters and of dropout.
    #[config(default = 0)]
    pub seed: u64,
    /// What chooses the epoch and is reported. Default: [`Metric::default_for`] the dataset.
    pub metric: Option<Metric>,
    /// What an epoch takes its steps on.
    #[config(default = "Batching::Full")]
    pub batches: Batching,
    /// Whether evaluation also goes through batches like those of training, instead of the whole graph at once. Then scores are
    /// estimates: batches lack edges.
    #[config(default = false)]
    pub evaluate_batches: bool,
    /// Epochs between saves, when there is a checkpoint directory. The last epoch is always saved.
    #[config(default = 25)]
    pub save_every: usize,
}

impl TrainConfig {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`TrainError::Config`] for no epochs, a learning rate that is not positive, or a negative penalty.
    pub fn validate(&self) -> Result<(), TrainError> {
        let bad = |reason: String| Err(TrainError::Config(reason));
        if self.epochs == 0 || self.save_every == 0 {
            return bad(
                "the number of epochs, and of epochs between saves, must be at least 1".to_string(),
            );
        }
        if !(self.lr > 0.0 && self.lr.is_finite()) {
            return bad(format!(
                "learning rate {} is not a positive number",
                self.lr
            ));
        }
        if !(self.weight_decay >= 0.0 && self.weight_decay.is_finite()) {
            return bad(format!(
                "weight decay {} is not a number from 0 up",
                self.weight_decay
            ));
        }
        self.batches.check()
    }

    /// What is measured on a dataset.
    pub fn metric_for(&self, data: &NodeDataset) -> Metric {
        self.metric.unwrap_or_else(|| Metric::default_for(data))
    }
}

/// What one epoch did. The metric is that of the parameters after the epoch's last step, without dropout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// Epochs run, counted from 1.
    pub epoch: usize,
    /// Mean loss of the training nodes, with dropout, each before the step that it led to.
    pub loss: f64,
    /// The metric on the training nodes.
    pub train: f64,
    /// The metric on the validation nodes.
    pub val: f64,
    /// The metric on the test nodes.
    pub test: f64,
    /// Wall-clock milliseconds, the evaluation included.
    pub ms: f64,
}

/// What is told of every epoch; a closure will do. An error ends the training.
pub trait Progress {
    /// Called after each epoch.
    ///
    /// # Errors
    /// Whatever the receiver could not write.
    fn on_epoch(&mut self, report: &EpochReport) -> std::io::Result<()>;

    /// Called before the state of the run is saved, after the epochs that it covers were told.
    ///
    /// # Errors
    /// Whatever the receiver could not write; nothing is saved then.
    fn before_save(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    /// Whether to end after this epoch. Asked after each epoch; the run is saved where it has a
    /// checkpoint, and [`TrainOutcome::interrupted`] is true unless it was the last epoch anyway.
    fn stop(&self) -> bool {
        false
    }
}

impl<F: FnMut(&EpochReport) -> std::io::Result<()>> Progress for F {
    fn on_epoch(&mut self, report: &EpochReport) -> std::io::Result<()> {
        self(report)
    }
}

/// Why training or evaluation ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The training configuration is out of range.
    #[error("{0}")]
    Config(String),
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model does not fit the dataset.
    #[error("the model is for {model}, dataset {dataset} has {found}")]
    Mismatch {
        /// Sizes that the model takes.
        model: String,
        /// Name of the dataset.
        dataset: String,
        /// Sizes of the dataset.
        found: String,
    },
    /// A split has no nodes.
    #[error("the {split} split of {dataset} is empty")]
    EmptySplit {
        /// Which split.
        split: &'static str,
        /// Name of the dataset.
        dataset: String,
    },
    /// The loss is no longer a number.
    #[error("the loss is {loss} in epoch {epoch}; try a smaller learning rate")]
    Diverged {
        /// Epoch, counted from 1.
        epoch: usize,
        /// The loss.
        loss: f64,
    },
    /// A checkpoint file cannot be read or written.
    #[error("{}: {reason}", text::clean(&file.display().to_string()))]
    Checkpoint {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The devices cannot train together.
    #[error(transparent)]
    Devices(#[from] DevicesError),
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(String),
    /// The receiver of progress failed.
    #[error("cannot report progress: {0}")]
    Progress(#[from] std::io::Error),
}
