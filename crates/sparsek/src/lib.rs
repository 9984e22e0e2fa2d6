//! Row-wise top-k, sparse aggregation and sparse distances for [Burn](https://burn.dev) tensors:
//! differentiable, on CUDA, Vulkan, Metal, WebGPU and the CPU.
//!
//! - [`topk`]: the k greatest or least elements along a dimension, exact or with early stop.
//! - [`sparse`]: CSR matrices, compressed rows, and their products with dense tensors.
//! - [`distance`]: distances between sparse rows over any semiring, and nearest neighbors.
//! - [`dense`]: linear layers and layer normalization of many rows.
//! - [`io`]: the memory limit of every loader.
//! - [`ops`]: the backend operations.
//!
//! # Errors and panics
//!
//! Operations on tensors panic with a clear message if shapes, dtypes or options do not fit, as
//! Burn's do. These return typed errors instead:
//!
//! - [`sparse::Pattern::new`] returns [`sparse::PatternError`];
//! - [`sparse::Csr`] returns [`sparse::CsrError`], and [`sparse::NpzError`] for files;
//! - [`distance::pairwise_distances`] and [`distance::NearestNeighbors`] return
//!   [`distance::DistanceError`];
//! - [`topk::topk_sharded`] returns [`topk::ShardedError`];
//! - [`io::memory`] returns [`io::memory::MemoryError`], `cache::enable` returns `CacheError`.
//!
//! A device that fails at run time panics when a result is read, as in Burn; only `topk_sharded`
//! reports it.
//!
//! # Features
//!
//! The device chooses the backend at run time. Features link backends: `flex` (pure Rust),
//! `vulkan`, `wgpu`, `metal`, `cuda`, `cpu` (CubeCL's CPU runtime). `fusion` must be on exactly if
//! Burn's is. `cache` keeps compiled kernels on disk.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod backends;
#[cfg(feature = "cache")]
pub mod cache;
pub mod dense;
pub mod distance;
pub mod io;
pub mod ops;
pub mod sparse;
pub mod topk;

pub use sparsek_kernels::semiring;
