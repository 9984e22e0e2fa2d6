//! Host references for every operation.

pub mod dense;
pub mod distance;
pub mod layers;
pub mod messages;
pub mod pooling;
pub mod predict;
pub mod prepare;
pub mod spmm;
pub mod topk;
