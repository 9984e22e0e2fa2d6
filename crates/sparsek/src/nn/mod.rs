//! Layers with a Burn `Config` and `Module`, by what they select:
//!
//! - activations: [`MaxK`], [`KWinners`]
//! - experts: [`TopkRouter`], [`MoeDispatch`], [`SparseMoe`]
//! - keys: [`TopkAttention`]
//! - latents: [`TopkSae`]
//! - tokens: [`Sampler`]
//! - weights: [`PruneMasks`], [`n_of_m_mask`]
//! - gradients: [`TopkCompressor`]
//!
//! Parameters must have the input's dtype. Ties and NaN follow [`topk`](crate::topk). Gradients
//! reach selected values only. Layers panic for unfit shapes.

mod attention;
#[cfg(all(test, feature = "flex"))]
mod fixtures;
mod kwinners;
mod maxk;
mod moe;
mod prune;
mod sae;
mod sampler;
mod support;

pub use attention::{TopkAttention, TopkAttentionConfig};
pub use kwinners::{KWinners, KWinnersConfig};
pub use maxk::{MaxK, MaxKConfig};
pub use moe::{
    Expert, Gate, MoeDispatch, Routing, SparseMoe, SparseMoeConfig, TopkRouter, TopkRouterConfig,
};
pub use prune::{
    Kept, PruneMasks, PruneRule, SparseGradient, TopkCompressor, TopkCompressorConfig,
    magnitude_mask, magnitude_mask_rows, n_of_m_mask,
};
pub use sae::{SaeActivation, SaeOutput, TopkSae, TopkSaeConfig};
pub use sampler::{Sampler, SamplerConfig};
