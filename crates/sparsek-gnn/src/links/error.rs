use sparsek::io::memory::MemoryError;

/// Why pairs or a split are refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// More negative pairs than pairs without an edge.
    #[error("{requested} negative pairs, but only {available} pairs have no edge")]
    TooFewNonEdges {
        /// Pairs requested.
        requested: usize,
        /// Pairs without an edge.
        available: u64,
    },
    /// An undirected split of a graph that is not symmetric.
    #[error("an undirected split needs a symmetric graph")]
    NotSymmetric,
    /// A bad ratio.
    #[error("{name} {ratio} is not {expected}")]
    Ratio {
        /// Which ratio.
        name: &'static str,
        /// Requested ratio.
        ratio: f64,
        /// Ratios allowed.
        expected: &'static str,
    },
    /// Validation and test take all edges.
    #[error("none of {edges} edges is left for training")]
    NoTrainingEdges {
        /// Edges to split.
        edges: usize,
    },
    /// A pair is out of range.
    #[error("pair {pair} is ({}, {}), ids must be below {nodes}", .ids.0, .ids.1)]
    NodeOutOfRange {
        /// Position in the list.
        pair: usize,
        /// Source and target.
        ids: (u32, u32),
        /// Nodes of the graph.
        nodes: usize,
    },
    /// Too many pairs: their ids have 32 bits, devices index with `i32`.
    #[error("{pairs} pairs, but at most {} are supported", crate::graph::MAX_SIZE)]
    TooManyPairs {
        /// Pairs requested.
        pairs: usize,
    },
    /// Pairs exceed the [`sparsek::io::memory`] limit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}
