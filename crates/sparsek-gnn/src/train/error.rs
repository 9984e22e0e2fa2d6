use std::path::PathBuf;

use sparsek::io::text;

use crate::nn::ModelError;

/// Why training or evaluation fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// Configuration out of range.
    #[error("{0}")]
    Config(String),
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Model and dataset disagree.
    #[error("the model takes {model}, but {dataset} has {found}")]
    Mismatch {
        /// Model sizes.
        model: String,
        /// Dataset name.
        dataset: String,
        /// Dataset sizes.
        found: String,
    },
    /// A split has no nodes.
    #[error("the {split} split of {dataset} is empty")]
    EmptySplit {
        /// Split.
        split: &'static str,
        /// Dataset name.
        dataset: String,
    },
    /// The loss is not finite.
    #[error("the loss is {loss} in epoch {epoch}; try a smaller learning rate")]
    Diverged {
        /// Epoch, from 1.
        epoch: usize,
        /// Loss.
        loss: f64,
    },
    /// Unreadable or unwritable checkpoint file.
    #[error("{}: {reason}", text::clean(&file.display().to_string()))]
    Checkpoint {
        /// File.
        file: PathBuf,
        /// Reason.
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
        /// One of another kind.
        device: String,
    },
    /// The batching makes no parts.
    #[error("{devices} devices need batches of graph parts, to share among them")]
    Batching {
        /// Devices.
        devices: usize,
    },
    /// Parts do not divide evenly.
    #[error("{parts} parts do not divide evenly among {devices} devices")]
    Parts {
        /// Parts.
        parts: usize,
        /// Devices.
        devices: usize,
    },
    /// No collective operations.
    #[error(
        "{device} has no collective operations, which several devices need; \
         CUDA has them with NCCL (libnccl.so)"
    )]
    Collectives {
        /// Device.
        device: String,
    },
}
