//! Selection and sparse kernels written once in CubeCL, for every CubeCL runtime.
//!
//! This crate knows nothing of Burn: it takes a [`cubecl::client::Client`] and buffer handles, checks
//! the request, chooses a routine and launches it. The crate `sparsek` wraps it as Burn tensor
//! operations.

pub mod aggregate;
mod error;
mod launch;
pub mod topk;

pub use error::KernelError;
