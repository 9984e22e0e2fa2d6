//! A row's threshold: fewer than k elements lie above, level ones fill up in index order.
//! [`search`] works on keys; [`gaussian`] (exact) and [`early_stop`] on register floats, falling
//! back to it.

pub(crate) mod cube_reduce;
pub(crate) mod early_stop;
pub(crate) mod gaussian;
pub(crate) mod histogram;
pub(crate) mod normal;
pub(crate) mod register_row;
pub(crate) mod search;
