//! Training of classifiers of nodes and graphs.
//!
//! [`train`] runs Adam and reports the test [`Metric`] of the best validation epoch.
//! [`CheckpointDir`] makes it resumable; [`Trainer`] replaces its parts. [`train_graphs`]
//! classifies graphs.

mod capture;
mod checkpoint;
mod config;
mod data;
mod devices;
mod engine;
mod epochs;
mod error;
mod fingerprint;
mod graphs;
mod json;
mod log;
mod loss;
mod metric;
mod optimizer;
mod precision;
mod preset;
mod recipe;
mod replicas;
mod run;
#[cfg(all(test, feature = "flex"))]
mod tests;
mod types;

pub use self::{
    checkpoint::{CheckpointDir, RunId, SavedRun},
    config::{Batching, Precision, TrainConfig},
    epochs::Epochs,
    error::{DevicesError, TrainError},
    fingerprint::{Fingerprint, Preparation},
    graphs::{CrossValidation, GraphEpoch, GraphOutcome, GraphTrainConfig, train_graphs},
    log::{RunLog, RunSummary},
    loss::{NodeLoss, Targets},
    metric::{Metric, NodeMetric},
    optimizer::OptimizerConfig,
    preset::{Preset, PresetSettings},
    run::{Trainer, evaluate, train, train_on},
    types::{EpochReport, Evaluation, Progress, TrainOutcome},
};
pub use crate::nn::{NodeModel, NodeModelConfig};
