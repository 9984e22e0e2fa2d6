//! The k greatest or least elements along one dimension of a tensor.
//!
//! Functions panic if options or dtypes do not fit; [`topk_sharded`] returns [`ShardedError`].

mod options;
mod ragged;
mod rows;
mod sharded;

pub use options::TopkOptions;
pub use ragged::{argtopk_ragged, topk_mask_ragged, topk_ragged};
pub use rows::{argtopk, topk, topk_mask};
pub use sharded::{ShardedError, topk_sharded};
pub use sparsek_kernels::topk::{MAX_COLS, Method, UnknownMethod};
