//! Pooling of batched graphs.

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
