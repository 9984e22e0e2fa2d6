//! What can be wrong with shards.

use burn::tensor::{DType, Device};

use super::super::Method;

/// A refused or failed [`topk_sharded`](super::topk_sharded).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardedError {
    /// There is no shard, so no device for the result.
    #[error("topk_sharded: there are no shards")]
    NoShards,
    /// More members asked than the shards have elements.
    #[error("topk_sharded: k = {k} is greater than the {length} elements of all shards")]
    KTooLarge {
        /// Members asked.
        k: usize,
        /// Elements of all shards.
        length: usize,
    },
    /// The shards do not have one dtype.
    #[error("topk_sharded: shard {shard} has dtype {found:?}, the first has {first:?}")]
    MixedDtypes {
        /// Which shard.
        shard: usize,
        /// Dtype of the first shard.
        first: DType,
        /// Dtype of this one.
        found: DType,
    },
    /// Some shards are on autodiff devices and some are not.
    #[error("topk_sharded: shard {shard} and the first are not both on autodiff devices")]
    MixedAutodiff {
        /// Which shard.
        shard: usize,
    },
    /// The operation does not exist for this dtype, or the device lacks it.
    #[error("topk_sharded: dtype {dtype:?} is not supported by this operation or by {device}")]
    Dtype {
        /// Dtype of the shards.
        dtype: DType,
        /// The device of the shard.
        device: String,
    },
    /// A vector in shards has no other than exact members.
    #[error("topk_sharded: method {method:?} is not supported (supported: Exact)")]
    Method {
        /// Method asked.
        method: Method,
    },
    /// The options name another dimension than the only one.
    #[error("topk_sharded: dimension {dim} is out of range for a vector (expected -1 or 0)")]
    Dimension {
        /// Dimension asked.
        dim: isize,
    },
    /// The indices need 64 bits, which a device lacks.
    #[error("topk_sharded: {length} elements need indices of 64 bits, which {device} lacks")]
    IndexDtype {
        /// Elements of all shards.
        length: usize,
        /// The device.
        device: String,
    },
    /// A device refused its shard, or failed while it selected from it.
    #[error("topk_sharded: {device} failed: {reason}")]
    Device {
        /// The device.
        device: String,
        /// What the runtime reports.
        reason: String,
    },
}

impl ShardedError {
    pub(super) fn failed(device: &Device, reason: impl ToString) -> Self {
        Self::Device {
            device: name(device),
            reason: reason.to_string(),
        }
    }
}

pub(super) fn name(device: &Device) -> String {
    format!("{device:?}")
}
