//! Immutable graphs with cached device copies.

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
