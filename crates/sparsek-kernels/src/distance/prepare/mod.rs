//! Preparation; `parts` and `range` keep long sums and extreme values exact, on the host too.

pub(super) mod columns;
pub(super) mod norms;
pub(super) mod packed;
pub(super) mod parts;
pub(super) mod range;
