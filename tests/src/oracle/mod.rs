//! Host references for every operation.

pub mod dense;
pub mod distance;
pub mod layers;
pub mod spmm;
pub mod topk;
