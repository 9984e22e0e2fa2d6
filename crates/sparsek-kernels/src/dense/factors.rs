#![allow(missing_docs, reason = "the derives write types of their own beside it")]

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

/// Factors of one Adam step, with bias corrections.
///
/// With `g = gradient + decay · x`: `m = beta_1 · m + (1 - beta_1) · g`,
/// `v = beta_2 · v + (1 - beta_2) · g²`, `x = x - rate · m / (sqrt(v) + epsilon)`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "kernels", derive(CubeType, CubeLaunch), expand(derive(Clone, Copy)))]
pub struct AdamFactors {
    /// First moment's decay.
    pub beta_1: f32,
    /// Second moment's decay.
    pub beta_2: f32,
    /// L2 penalty.
    pub decay: f32,
    /// Learning rate × `sqrt(1 - beta_2^t) / (1 - beta_1^t)`.
    pub rate: f32,
    /// Adam's epsilon × `sqrt(1 - beta_2^t)`.
    pub epsilon: f32,
}
