//! Errors of streamed selections.

use burn::tensor::DType;
use sparsek_kernels::topk::Method;

use super::super::lists::DeviceFailure;

/// Why a [`TopkStream`](super::TopkStream) refused a part or failed. The text does not name the
/// operation.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// No parts, so no device for the result.
    #[error("no part was pushed")]
    NoParts,
    /// k exceeds all elements.
    #[error("k = {k} is greater than the {length} elements of all parts")]
    KTooLarge {
        /// Requested elements.
        k: usize,
        /// Elements of all parts.
        length: u64,
    },
    /// The parts differ in dtype.
    #[error("the part has dtype {found:?}, the first has {first:?}")]
    MixedDtypes {
        /// Dtype of the first part.
        first: DType,
        /// Dtype of the part.
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
    /// Only the exact method works.
    #[error("method {method:?} is not supported (supported: Exact)")]
    Method {
        /// Method.
        method: Method,
    },
    /// Indices need 64 bits, which a device lacks.
    #[error("{length} elements need indices of 64 bits, which {device} lacks")]
    IndexDtype {
        /// Elements, the refused part included.
        length: u64,
        /// Device.
        device: String,
    },
    /// A device refused its part, or failed.
    #[error("{device} failed: {reason}")]
    Device {
        /// Device.
        device: String,
        /// The runtime's report.
        reason: String,
    },
}

impl From<DeviceFailure> for StreamError {
    fn from(failure: DeviceFailure) -> Self {
        Self::Device { device: failure.device, reason: failure.reason }
    }
}
