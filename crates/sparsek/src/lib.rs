//! Row-wise top-k, sparse aggregation and sparse distances for [Burn](https://burn.dev) tensors:
//! differentiable, on CUDA, Vulkan, Metal, WebGPU and the CPU. The repository has a guide,
//! `docs/guide`.
//!
//! - [`topk`]: the k greatest or least elements along a dimension, masks, sorting.
//! - [`prelude`]: selections as methods of tensors, by Burn's names.
//! - [`sparse`]: CSR matrices, compressed rows, and products.
//! - [`distance`]: distances between sparse or dense rows, and nearest neighbors.
//! - [`dense`]: linear layers and layer normalization.
//! - `nn`: layers of models (feature `nn`).
//! - [`io`]: the memory limit of loaders. [`ops`]: backend operations.
//!
//! # Errors and panics
//!
//! - Tensor operations check shapes, dtypes and options before any launch, and panic with
//!   `operation: reason` if they do not fit, as Burn's do.
//! - Selections have a `try_` form each, which returns the reason as [`topk::TopkError`].
//! - Whatever reads files, checks matrices or spans devices returns an error: [`sparse::CsrError`],
//!   [`sparse::PatternError`], [`sparse::FileError`], [`distance::DistanceError`],
//!   [`topk::ShardedError`], [`topk::StreamError`], [`io::memory::MemoryError`],
//!   `cache::CacheError`.
//! - What only the device knows (memory, drivers) panics when a result is read; only
//!   [`topk::topk_sharded`] and [`topk::TopkStream`] report it.
//!
//! # Features
//!
//! Backends, chosen at run time: `flex` (pure Rust), `vulkan`, `wgpu`, `webgpu`, `metal`, `cuda`,
//! `rocm`, `cpu` (CubeCL's CPU runtime). `fusion` must be on exactly if Burn's is. `nn`: layers of
//! models. `cache` keeps compiled kernels on disk. `kernels` allows your own distances with `flex`
//! alone. `hdf5` reads AnnData and 10x Genomics, `sprs` converts matrices of that crate.

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
pub mod topk;

#[cfg(feature = "kernels")]
pub use sparsek_kernels::semiring;
