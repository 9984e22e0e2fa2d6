//! Products of tall f32 matrices, accumulated in f32.
//!
//! - `product` and `inner`: `x · w + b` and `xᵀ · y`, with factors rounded to TF32.
//! - `panels`: both without TF32, by `split`, as on Vulkan, with factors as sums of two bf16, or by
//!   `plain`, as in WGSL, without tensor cores.

pub(super) mod inner;
mod panels;
mod plain;
pub(super) mod product;
mod split;
mod types;
