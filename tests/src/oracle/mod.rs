//! What every operation must return, computed plainly on the host.

pub mod distance;
pub mod layers;
pub mod spmm;
pub mod topk;
