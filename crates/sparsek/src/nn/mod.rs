//! Layers of models: each a `Config` and a `Module` of Burn.
//!
//! | layer | selects |
//! |---|---|
//! | [`MaxK`], [`KWinners`] | activations of a row |
//! | [`TopkRouter`], [`MoeDispatch`], [`SparseMoe`] | experts of a token |
//! | [`TopkAttention`] | keys of a query |
//! | [`TopkSae`] | latents of a sparse autoencoder |
//! | [`Sampler`] | the next token of a text |
//! | [`PruneMasks`], [`n_of_m_mask`] | weights that stay |
//! | [`TopkCompressor`] | elements of a gradient to send |
//!
//! Layers compute in the dtype of their input, which parameters must have. Selections are those of
//! [`topk`](crate::topk): ties go to the lowest index, NaN is greatest. They have no gradient;
//! selected values do. Layers panic if shapes do not fit.

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
