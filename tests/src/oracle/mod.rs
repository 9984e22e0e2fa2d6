//! What every operation must return, computed plainly on the host.

pub mod spmm;
pub mod topk;
