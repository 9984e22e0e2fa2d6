//! Gradients on top of any backend.

mod dense;
mod distance;
mod spmm;
mod topk;
mod tracking;
