//! Device code.

pub(super) mod best_delegates;
pub(super) mod bitonic;
pub(super) mod candidates;
pub(super) mod concatenate;
pub(super) mod delegates;
pub(super) mod finish;
pub(super) mod histogram;
pub(super) mod long_rows;
pub(super) mod selected_subranges;
pub(super) mod types;
