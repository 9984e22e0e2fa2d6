//! Thresholds.

pub(crate) mod early_stop;
pub(crate) mod gaussian;
pub(crate) mod normal;
pub(crate) mod register_row;
pub(crate) mod search;
