//! Selection and sparse kernels written once in CubeCL, for every CubeCL runtime.
//!
//! This crate does not depend on Burn. It takes a [`cubecl::client::Client`] and buffer handles,
//! checks the request, chooses a routine and launches it. The crate `sparsek` wraps it as Burn
//! tensor operations.
//!
//! - [`topk`]: the k greatest or least elements of rows, and of one long vector.
//! - [`spmm`]: products of CSR matrices with dense and compressed rows, and aggregation by the
//!   maximum.
//! - [`dense`]: layer normalization, products and sums of very many dense rows.
//! - [`distance`]: distances between the rows of two CSR matrices, over any semiring.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod dense;
mod device;
pub mod distance;
mod error;
mod launch;
mod primitives;
pub mod spmm;
pub mod topk;

#[doc(hidden)]
pub use cubecl;
pub use device::column_dtype;
#[doc(hidden)]
pub use device::host_rounds;
pub use error::KernelError;
