//! An immutable directed graph with cached device copies.
//!
//! `build` constructs, `derived` transforms, `norm` computes factors on the host, `device` caches,
//! `batch` joins graphs.
mod batch;
mod build;
mod derived;
mod device;
mod error;
mod norm;
mod types;

pub use self::{
    batch::GraphBatch,
    error::GraphError,
    types::{Graph, MAX_SIZE, Norm},
};
