//! Immutable directed graphs with cached device copies.
//!
//! `build` constructs, `derived` transforms, `norm` computes factors on the host, `device` caches,
//! `batch` joins graphs. `bipartite` holds edges between two sets of nodes, `hetero` several types
//! of nodes and edges.
mod batch;
mod bipartite;
mod build;
mod derived;
mod device;
mod error;
mod hetero;
mod norm;
mod relation;
mod types;

pub use self::{
    batch::GraphBatch,
    bipartite::BipartiteGraph,
    error::{GraphError, HeteroGraphError, MAX_SIZE},
    hetero::HeteroGraph,
    relation::Relation,
    types::{Graph, Norm},
};
