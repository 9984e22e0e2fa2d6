use std::path::PathBuf;

use sparsek::io::text;

use crate::nn::ModelError;

/// Training error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// Invalid configuration.
    #[error("{0}")]
    Config(String),
    /// Invalid model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Mismatched dataset.
    #[error("the model takes {model}, but {dataset} has {found}")]
    Mismatch {
        /// Model sizes.
        model: String,
        /// Dataset.
        dataset: String,
        /// Dataset sizes.
        found: String,
    },
    /// Empty split.
    #[error("the {split} split of {dataset} is empty")]
    EmptySplit {
        /// Split.
        split: &'static str,
        /// Dataset.
        dataset: String,
    },
    /// Non-finite loss.
    #[error("the loss is {loss} in epoch {epoch}; try a smaller learning rate")]
    Diverged {
        /// Epoch, from 1.
        epoch: usize,
        /// Loss.
        loss: f64,
    },
    /// Checkpoint error.
    #[error("{}: {reason}", text::clean(&file.display().to_string()))]
    Checkpoint {
        /// File.
        file: PathBuf,
        /// Reason.
        reason: String,
    },
    /// Incompatible devices.
    #[error(transparent)]
    Devices(#[from] DevicesError),
    /// Device failure.
    #[error("the device failed: {0}")]
    Device(String),
    /// Progress failure.
    #[error("cannot report progress: {0}")]
    Progress(#[from] std::io::Error),
}

/// Unfit devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DevicesError {
    /// Empty list.
    #[error("there is no device to train on")]
    None,
    /// Repeated device.
    #[error("{device} is listed twice")]
    Repeated {
        /// Device.
        device: String,
    },
    /// Different backends or types.
    #[error("{device} and {first} are of different kinds")]
    Kinds {
        /// First device.
        first: String,
        /// Other device.
        device: String,
    },
    /// Batching without parts.
    #[error("{devices} devices need batches of graph parts, to share among them")]
    Batching {
        /// Devices.
        devices: usize,
    },
    /// Uneven parts.
    #[error("{parts} parts do not divide evenly among {devices} devices")]
    Parts {
        /// Parts.
        parts: usize,
        /// Devices.
        devices: usize,
    },
    /// No collectives.
    #[error(
        "{device} has no collective operations, which several devices need; \
         CUDA has them with NCCL (libnccl.so)"
    )]
    Collectives {
        /// Device.
        device: String,
    },
}
