//! Errors of sharded selections.

use burn::tensor::{DType, Device};
use sparsek_kernels::topk::Method;

use super::super::lists::{DeviceFailure, device_name};

/// Why [`topk_sharded`](super::topk_sharded) failed. The text does not name the operation.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardedError {
    /// No shards, so no device for the result.
    #[error("there are no shards")]
    NoShards,
    /// k exceeds all elements.
    #[error("k = {k} is greater than the {length} elements of all shards")]
    KTooLarge {
        /// Requested elements.
        k: usize,
        /// Elements of all shards.
        length: usize,
    },
    /// The shards differ in dtype.
    #[error("shard {shard} has dtype {found:?}, the first has {first:?}")]
    MixedDtypes {
        /// The shard.
        shard: usize,
        /// Dtype of the first shard.
        first: DType,
        /// Its dtype.
        found: DType,
    },
    /// Only some shards are on autodiff devices.
    #[error("shard {shard} and the first are not both on autodiff devices")]
    MixedAutodiff {
        /// The shard.
        shard: usize,
    },
    /// Unsupported dtype.
    #[error("dtype {dtype:?} is not supported by this operation or by {device}")]
    Dtype {
        /// Dtype.
        dtype: DType,
        /// Device.
        device: String,
    },
    /// Only the exact method works.
    #[error("method {method:?} is not supported (supported: Exact)")]
    Method {
        /// Method.
        method: Method,
    },
    /// Indices need 64 bits, which a device lacks.
    #[error("{length} elements need indices of 64 bits, which {device} lacks")]
    IndexDtype {
        /// Elements of all shards.
        length: usize,
        /// Device.
        device: String,
    },
    /// A device refused its shard, or failed.
    #[error("{device} failed: {reason}")]
    Device {
        /// Device.
        device: String,
        /// The runtime's report.
        reason: String,
    },
}

impl ShardedError {
    pub(super) fn failed(device: &Device, reason: impl ToString) -> Self {
        Self::Device { device: device_name(device), reason: reason.to_string() }
    }
}

impl From<DeviceFailure> for ShardedError {
    fn from(failure: DeviceFailure) -> Self {
        Self::Device { device: failure.device, reason: failure.reason }
    }
}
