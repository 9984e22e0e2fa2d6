use crate::graph::Graph;

/// Nodes and edges between them.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Whole-graph ids; seed nodes first.
    pub nodes: Vec<u32>,
    /// Seed count; all nodes for parts.
    pub seeds: usize,
    /// Graph.
    pub graph: Graph,
}

#[cfg(test)]
#[rstest::fixture]
pub(super) fn random_graph() -> Graph {
    use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};

    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let edges: Vec<(u32, u32)> =
        (0..900).map(|_| (rng.random_range(0..100), rng.random_range(0..100))).collect();
    Graph::from_edges(100, edges).unwrap()
}
