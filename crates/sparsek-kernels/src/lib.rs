//! Selection and sparse kernels for every CubeCL runtime, without Burn.
//!
//! Functions take a [`cubecl::client::Client`] and buffer handles, check the request, choose a
//! routine and launch it. The crate `sparsek` wraps them for Burn.
//!
//! - [`topk`]: the k greatest or least elements of rows, or one long vector.
//! - [`spmm`]: products of CSR matrices with dense and compressed rows, and max aggregation.
//! - [`dense`]: layer normalization, products and sums of many rows.
//! - [`distance`]: between rows of two CSR matrices, over any semiring.
//!
//! Without the feature `kernels` (default), only options, limits and the host's algorithms remain,
//! and CubeCL is not linked.

#![cfg_attr(docsrs, feature(doc_cfg))]
// Constants of kernels, and imports of a semiring's device half.
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
