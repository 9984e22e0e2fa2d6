//! Products of tall f32 matrices: `product` and `inner` in TF32; `panels` without, by `split`
//! (pairs of bf16) or `plain` (no tensor cores).

pub(super) mod filter;
pub(super) mod inner;
mod panels;
mod plain;
pub(super) mod product;
mod split;
mod types;
