//! An immutable directed graph with cached device copies.
//!
//! `types` holds data, `build` constructs, `derived` makes other graphs, `norm` computes factors on
//! the host, `device` uploads and caches.
mod build;
mod derived;
mod device;
mod error;
mod norm;
mod types;

pub use self::{
    error::GraphError,
    types::{Graph, MAX_SIZE, Norm},
};
