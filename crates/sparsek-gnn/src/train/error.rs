//! Errors of training.
use std::path::PathBuf;

use sparsek::io::text;

use crate::nn::ModelError;

/// Why training or evaluation fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The configuration is out of range.
    #[error("{0}")]
    Config(String),
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Model and dataset differ in size.
    #[error("the model takes {model}, but {dataset} has {found}")]
    Mismatch {
        /// The model's sizes.
        model: String,
        /// Name of the dataset.
        dataset: String,
        /// The dataset's sizes.
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
    /// The loss is not finite.
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

/// Why devices cannot train together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DevicesError {
    /// The list is empty.
    #[error("there is no device to train on")]
    None,
    /// A device is listed twice.
    #[error("{device} is listed twice")]
    Repeated {
        /// The device.
        device: String,
    },
    /// The devices differ in backend or type.
    #[error("{device} and {first} are of different kinds")]
    Kinds {
        /// The first device.
        first: String,
        /// One of another kind.
        device: String,
    },
    /// The batching does not divide the graph into parts.
    #[error("{devices} devices need batches of graph parts, to share among them")]
    Batching {
        /// Number of devices.
        devices: usize,
    },
    /// The parts do not divide evenly among the devices.
    #[error("{parts} parts do not divide evenly among {devices} devices")]
    Parts {
        /// Parts of the graph.
        parts: usize,
        /// Number of devices.
        devices: usize,
    },
    /// The backend has no collective operations.
    #[error(
        "{device} has no collective operations, which several devices need; \
         CUDA has them with NCCL (libnccl.so)"
    )]
    Collectives {
        /// The device.
        device: String,
    },
}
