//! HEAD

pub(super) mod columns;
pub(super) mod norms;
pub(super) mod packed;
pub(super) mod parts;
pub(super) mod range;
