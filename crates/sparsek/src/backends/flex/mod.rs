//! The operations in plain Rust, parallel over rows.

mod element;

mod dense;
mod distance;
mod select;
mod spmm;
mod topk;
