//! Preparation of matrices: norms and values, entries by column, dense f16 copies.
//!
//! `parts` and `range` keep long sums and extreme magnitudes exact, on devices and on the host.

pub(super) mod columns;
pub(super) mod norms;
pub(super) mod packed;
pub(super) mod parts;
pub(super) mod range;
