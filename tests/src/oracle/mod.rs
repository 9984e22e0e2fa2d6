//! What every operation must return, computed plainly on the host.

pub mod dense;
pub mod distance;
pub mod layers;
pub mod spmm;
pub mod topk;
