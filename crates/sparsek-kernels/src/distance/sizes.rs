//! Sizes, and choices that need no device.

use super::{
    semiring::Inner,
    tuning::{DENSE_TENSOR_CORE, RADIUS_BLOCK},
};

/// Whether tables of all columns would dominate memory; then only occupied columns are numbered.
pub fn is_wide(cols: usize, entries: usize) -> bool {
    cols > entries.saturating_mul(4).saturating_add(1 << 16)
}

/// Whether the choice of a routine depends on the greatest magnitude, at this density.
pub fn inspects_values(inner: Option<Inner>, density: f64) -> bool {
    inner.is_some_and(|inner| inner != Inner::Ones) && density >= DENSE_TENSOR_CORE
}

/// Blocks of a row in which [`Radius`](crate::distance::Radius) counts.
pub fn radius_blocks(across: usize) -> usize {
    across.div_ceil(RADIUS_BLOCK)
}
