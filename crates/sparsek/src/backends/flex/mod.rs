//! Plain Rust, parallel over rows.

mod dense;
mod dense_rows;
mod distance;
mod element;
mod parallel;
mod select;
mod spmm;
mod topk;
mod tuning;
