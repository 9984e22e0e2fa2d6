//! The k greatest or least elements along a dimension.
//!
//! Functions panic with their name and a [`TopkError`] if arguments do not fit; `try_` forms return
//! it before any launch. [`topk_sharded`] and [`TopkStream`] have their own errors. Gradients reach
//! selected values; indices have none.

mod error;
mod extension;
mod lists;
mod masks;
mod ordered;
mod ragged;
mod request;
mod rows;
#[cfg(all(test, feature = "serde"))]
mod serialization;
mod sharded;
mod small_int;
mod stream;
mod ties;
mod vector;

pub use error::TopkError;
pub(crate) use error::or_panic;
pub use extension::TopkExt;
#[cfg(feature = "nn")]
pub(crate) use masks::mask_at;
pub use masks::{
    topk_bool_mask, topk_mask, topk_mask_by, topk_mask_fill, topk_mask_magnitude,
    try_topk_bool_mask, try_topk_mask, try_topk_mask_by, try_topk_mask_fill,
    try_topk_mask_magnitude,
};
pub use ordered::{argsort, kthvalue, sort, try_argsort, try_kthvalue, try_sort};
pub use ragged::{
    RowBounds, argtopk_ragged, topk_mask_ragged, topk_ragged, try_argtopk_ragged,
    try_topk_mask_ragged, try_topk_ragged,
};
#[cfg(feature = "nn")]
pub(crate) use request::check;
pub(crate) use request::{LongRows, check_indexed};
pub use rows::{argtopk, topk, try_argtopk, try_topk};
pub use sharded::{ShardedError, topk_sharded};
pub use sparsek_kernels::topk::{
    Construction, Filter, Finish, MAX_COLS, Method, Selection, Subrange, TopkOptions, Tuning,
    UnknownMethod, VectorOptions, VectorStrategy,
};
pub use stream::{StreamError, TopkStream};
pub use ties::{RowOptions, TieBreak};
pub use vector::{topk_vector, try_topk_vector};
