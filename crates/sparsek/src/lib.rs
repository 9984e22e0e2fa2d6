//! Row-wise top-k, sparse aggregation and sparse distances for [Burn](https://burn.dev) tensors:
//! differentiable, on CUDA, Vulkan, Metal, WebGPU and the CPU.
//!
//! - [`topk`]: the k greatest or least elements along a dimension.
//! - [`sparse`]: CSR matrices, compressed rows, and products.
//! - [`distance`]: distances between sparse rows, and nearest neighbors.
//! - [`dense`]: linear layers and layer normalization.
//! - `nn`: layers of models (feature `nn`).
//! - [`io`]: the memory limit of loaders. [`ops`]: backend operations.
//!
//! # Errors and panics
//!
//! Tensor operations panic if shapes, dtypes or options do not fit, as Burn's do. Typed errors:
//! [`sparse::PatternError`], [`sparse::CsrError`], [`sparse::NpzError`],
//! [`distance::DistanceError`], [`topk::ShardedError`], [`io::memory::MemoryError`],
//! `cache::CacheError`. Device failures panic when a result is read; only [`topk::topk_sharded`]
//! reports them.
//!
//! # Features
//!
//! Backends, chosen at run time: `flex` (pure Rust), `vulkan`, `wgpu`, `webgpu`, `metal`, `cuda`,
//! `rocm`, `cpu` (CubeCL's CPU runtime). `fusion` must be on exactly if Burn's is. `nn`: layers of
//! models. `cache` keeps compiled kernels on disk.

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
pub mod sparse;
pub mod topk;

pub use sparsek_kernels::semiring;
