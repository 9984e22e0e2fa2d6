use sparsek::{io::memory::MemoryError, sparse::PatternError};

use super::types::MAX_SIZE;

/// Why a graph is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// Ids would overflow.
    #[error("{nodes} nodes, but at most {MAX_SIZE} are supported")]
    TooManyNodes {
        /// Nodes requested.
        nodes: usize,
    },
    /// Offsets would overflow.
    #[error("more than the supported {MAX_SIZE} edges")]
    TooManyEdges,
    /// A node is out of range.
    #[error("edge {edge} is ({source_id}, {target_id}), ids must be below {nodes}")]
    NodeOutOfRange {
        /// Position in the list.
        edge: usize,
        /// Source.
        source_id: u32,
        /// Target.
        target_id: u32,
        /// Nodes of the graph.
        nodes: usize,
    },
    /// The matrix is not square.
    #[error("a graph needs a square matrix, not {rows} × {cols}")]
    NotSquare {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
    },
    /// A batch of no graphs.
    #[error("a batch needs at least one graph")]
    NoGraphs,
    /// Offsets exceed the memory limit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Malformed CSR arrays.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}
