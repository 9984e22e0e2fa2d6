//! Products of tall f32 matrices on tensor cores, accumulated in f32.
//!
//! | operation | device has | file | factors |
//! | --- | --- | --- | --- |
//! | `x · w + b` | TF32 | `product` | TF32 |
//! | `xᵀ · y` | TF32 | `inner` | TF32 |
//! | either | bf16 only, as Vulkan | `split` | two bf16 |

pub(super) mod inner;
pub(super) mod product;
mod split;
