//! A part of a graph.
use crate::graph::Graph;

/// Some nodes of a graph and edges between them.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Ids in the whole graph, in batch order; seed nodes come first.
    pub nodes: Vec<u32>,
    /// Edges between the batch's nodes.
    pub graph: Graph,
}

/// 100 nodes and 900 edges, for tests.
#[cfg(test)]
pub(super) fn random_graph() -> Graph {
    use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};

    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let edges: Vec<(u32, u32)> = (0..900)
        .map(|_| (rng.random_range(0..100), rng.random_range(0..100)))
        .collect();
    Graph::from_edges(100, edges).unwrap()
}
