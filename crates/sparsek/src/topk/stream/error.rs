use burn::tensor::DType;
use sparsek_kernels::topk::Method;

use super::super::lists::DeviceFailure;

/// Why a [`TopkStream`](super::TopkStream) failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// No parts.
    #[error("no part was pushed")]
    NoParts,
    /// k exceeds all elements.
    #[error("k = {k} is greater than the {length} elements of all parts")]
    KTooLarge {
        /// k.
        k: usize,
        /// Elements.
        length: u64,
    },
    /// Parts differ in dtype.
    #[error("the part has dtype {found:?}, the first has {first:?}")]
    MixedDtypes {
        /// First dtype.
        first: DType,
        /// Dtype.
        found: DType,
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
        length: u64,
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

impl From<DeviceFailure> for StreamError {
    fn from(failure: DeviceFailure) -> Self {
        Self::Device { device: failure.device, reason: failure.reason }
    }
}
