use burn::tensor::{DType, Device};
use sparsek_kernels::topk::Method;

use super::super::lists::{DeviceFailure, device_name};

/// Why [`topk_sharded`](super::topk_sharded) failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardedError {
    /// No shards.
    #[error("there are no shards")]
    NoShards,
    /// k exceeds all elements.
    #[error("k = {k} is greater than the {length} elements of all shards")]
    KTooLarge {
        /// k.
        k: usize,
        /// Elements.
        length: usize,
    },
    /// Shards differ in dtype.
    #[error("shard {shard} has dtype {found:?}, the first has {first:?}")]
    MixedDtypes {
        /// Shard.
        shard: usize,
        /// First dtype.
        first: DType,
        /// Dtype.
        found: DType,
    },
    /// Only some shards use autodiff.
    #[error("shard {shard} and the first are not both on autodiff devices")]
    MixedAutodiff {
        /// Shard.
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
    /// Inexact method.
    #[error("method {method:?} is not supported (supported: Exact)")]
    Method {
        /// Method.
        method: Method,
    },
    /// Device lacks 64-bit indices.
    #[error("{length} elements need indices of 64 bits, which {device} lacks")]
    IndexDtype {
        /// Elements.
        length: usize,
        /// Device.
        device: String,
    },
    /// Device refused or failed.
    #[error("{device} failed: {reason}")]
    Device {
        /// Device.
        device: String,
        /// Reason.
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
