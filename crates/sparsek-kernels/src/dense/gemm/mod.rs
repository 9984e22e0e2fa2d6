//! Products of tall f32 matrices on tensor cores, accumulated in f32.
//!
//! - `product` and `inner`: `x · w + b` and `xᵀ · y`, with factors rounded to TF32.
//! - `split`: both without TF32, as on Vulkan, with factors as sums of two bf16.

pub(super) mod inner;
pub(super) mod product;
mod split;
