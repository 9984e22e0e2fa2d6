use super::{
    semiring::Inner,
    tuning::{DENSE_TENSOR_CORE, RADIUS_BLOCK},
};

/// Whether column tables would dominate memory.
pub fn is_wide(cols: usize, entries: usize) -> bool {
    cols > entries.saturating_mul(4).saturating_add(1 << 16)
}

/// Whether the routine depends on the greatest magnitude.
pub fn inspects_values(inner: Option<Inner>, density: f64) -> bool {
    inner.is_some_and(|inner| inner != Inner::Ones) && density >= DENSE_TENSOR_CORE
}

/// Blocks per row of [`Radius`](crate::distance::Radius).
pub fn radius_blocks(across: usize) -> usize {
    across.div_ceil(RADIUS_BLOCK)
}
