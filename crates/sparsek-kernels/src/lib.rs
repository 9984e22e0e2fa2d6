//! Selection and sparse kernels for CubeCL runtimes, without Burn.
//!
//! Functions take a [`cubecl::client::Client`] and buffer handles, check the request, choose a
//! routine and launch it. Buffers are contiguous unless a request has strides or a pitch. `sparsek`
//! wraps them for Burn.
//!
//! Errors: unsupported dtypes, too many entries, and buffers too short, too large or needing wider
//! addresses. Functions list others.
//!
//! Without the default feature `kernels`, only options, limits and host algorithms remain.

#![cfg_attr(docsrs, feature(doc_cfg))]
// Constants and imports of kernels.
#![cfg_attr(not(feature = "kernels"), allow(dead_code, unused_imports))]
#![allow(
    clippy::collapsible_if,
    clippy::collapsible_else_if,
    clippy::identity_op,
    clippy::manual_div_ceil,
    reason = "kernels decide outer conditions when compiled, copy by `+ 0`, and round up by hand"
)]

pub mod dense;
#[cfg(feature = "kernels")]
mod device;
#[cfg(feature = "kernels")]
mod device_error;
pub mod distance;
mod error;
mod hash;
#[cfg(feature = "kernels")]
mod launch;
#[cfg(feature = "kernels")]
mod primitives;
pub mod spmm;
pub mod topk;

#[cfg(feature = "kernels")]
#[doc(hidden)]
pub use cubecl;
#[cfg(feature = "kernels")]
pub use device::column_dtype;
#[doc(hidden)]
#[cfg(feature = "kernels")]
pub use device::{has_logarithms, host_rounds};
pub use error::KernelError;
