//! Pooling of batched graphs.
//!
//! `global` and `set2set` reduce graphs to rows. `topk` and `sag` score nodes and keep the best, by
//! `select`.
mod global;
mod sag;
mod select;
mod set2set;
mod topk;
mod types;

pub use self::{
    global::{global_max_pool, global_mean_pool, global_sum_pool},
    sag::{SagPooling, SagPoolingConfig},
    set2set::{Set2Set, Set2SetConfig},
    topk::{TopkPooling, TopkPoolingConfig},
    types::Pooled,
};
