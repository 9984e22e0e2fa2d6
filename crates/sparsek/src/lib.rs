//! Keep k of each row: row-wise top-k, sparse aggregation and sparse distances for [Burn](https://burn.dev) tensors,
//! differentiable, on CUDA, Vulkan, Metal, WebGPU and the CPU.
//!
//! - [`topk`]: the k greatest or least elements along a dimension, exact or with early stop; as
//!   values and indices, indices only, or the dense masked tensor.
//! - [`dense`]: linear layers and layer normalisation of very many rows.
//! - [`distance`]: distances between the rows of sparse matrices over any semiring, and nearest neighbours.
//! - [`io`]: the memory limit that every loader keeps.
//! - [`sparse`]: CSR matrices, from scipy's files, coordinates or dense tensors, and their products with dense tensors.
//!
//! The device decides the backend at run time. Features choose what is linked: `flex` (pure Rust),
//! `vulkan`, `wgpu`, `metal`, `cuda`, `cpu` (CubeCL's CPU runtime), `fusion`, which must be on
//! exactly when Burn's is, and `cache`, which keeps compiled kernels on disk (module `cache`).

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
