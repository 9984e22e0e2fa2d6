//! The threshold of a row: fewer than k elements lie above it; those level with it fill up in index
//! order.
//!
//! - [`search`]: on keys, for every method and dtype; always right.
//! - [`gaussian`]: exact, on floats in registers; falls back to [`search`].
//! - [`early_stop`]: RTop-K's Algorithm 2, likewise.

pub(crate) mod early_stop;
pub(crate) mod gaussian;
pub(crate) mod normal;
pub(crate) mod register_row;
pub(crate) mod search;
