//! Row-wise top-k, sparse aggregation and sparse distances for [Burn](https://burn.dev) tensors:
//! differentiable, on CUDA, Vulkan, Metal, WebGPU and the CPU. Guide: `docs/guide`.
//!
//! - [`topk`]: greatest or least elements along a dimension, masks, sorting.
//! - [`prelude`]: selections as tensor methods, by Burn's names.
//! - [`sparse`]: CSR matrices, compressed rows, products.
//! - [`distance`]: distances between rows, nearest neighbors.
//! - [`dense`]: linear layers, layer normalization; [`steps`]: steps that graphs can repeat.
//! - `nn`: layers of models (feature `nn`).
//! - [`io`]: memory limit of loaders. [`ops`]: backend operations.
//!
//! # Errors and panics
//!
//! - Tensor operations check arguments before any launch and panic with `operation: reason`.
//! - `try_` forms of selections return [`topk::TopkError`].
//! - Readers, matrix checks and calls over devices return errors, such as [`sparse::CsrError`] or
//!   [`topk::ShardedError`].
//! - Device failures (memory, drivers) panic when a result is read; only [`topk::topk_sharded`] and
//!   [`topk::TopkStream`] report them.
//!
//! # Features
//!
//! Backends, chosen at run time: `flex` (pure Rust), `vulkan`, `wgpu`, `webgpu`, `metal`, `cuda`,
//! `rocm`, `cpu` (CubeCL's CPU runtime). `fusion` must match Burn's. `cache` keeps compiled kernels
//! on disk. `kernels` allows your own distances with `flex` alone. `hdf5` reads AnnData and 10x
//! Genomics, `sprs` converts its matrices.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod backends;
#[cfg(feature = "cache")]
pub mod cache;
pub mod dense;
pub mod distance;
pub mod io;
#[cfg(feature = "nn")]
pub mod nn;
pub mod ops;
pub mod prelude;
pub mod sparse;
pub mod steps;
pub mod topk;

#[cfg(feature = "kernels")]
pub use sparsek_kernels::semiring;
