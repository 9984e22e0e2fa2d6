//! Products of tall f32 matrices on tensor cores, which add in f32.
//!
//! | operation | device has | file | factors |
//! | --- | --- | --- | --- |
//! | `x · w + b` | TF32 | `product` | rounded to TF32 |
//! | `xᵀ · y` | TF32 | `inner` | rounded to TF32 |
//! | either | bf16 tiles only, as Vulkan | `split` | sums of two bf16 |

pub(super) mod inner;
pub(super) mod product;
mod split;
