use sparsek::io::memory::MemoryError;

/// Invalid pairs or split.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// Too few non-edges.
    #[error("{requested} negative pairs, but only {available} pairs have no edge")]
    TooFewNonEdges {
        /// Requested.
        requested: usize,
        /// Available.
        available: u64,
    },
    /// Asymmetric undirected graph.
    #[error("an undirected split needs a symmetric graph")]
    NotSymmetric,
    /// Bad ratio.
    #[error("{name} {ratio} is not {expected}")]
    Ratio {
        /// Name.
        name: &'static str,
        /// Ratio.
        ratio: f64,
        /// Allowed.
        expected: &'static str,
    },
    /// No training edges.
    #[error("none of {edges} edges is left for training")]
    NoTrainingEdges {
        /// Edges.
        edges: usize,
    },
    /// Pair out of range.
    #[error("pair {pair} is ({}, {}), ids must be below {nodes}", .ids.0, .ids.1)]
    NodeOutOfRange {
        /// Position.
        pair: usize,
        /// Source and target.
        ids: (u32, u32),
        /// Nodes.
        nodes: usize,
    },
    /// More pairs than [`MAX_SIZE`](crate::graph::MAX_SIZE).
    #[error("{pairs} pairs, but at most {} are supported", crate::graph::MAX_SIZE)]
    TooManyPairs {
        /// Pairs.
        pairs: usize,
    },
    /// Above the [`sparsek::io::memory`] limit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}
