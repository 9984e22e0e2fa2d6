use sparsek::{io::memory::MemoryError, sparse::PatternError};

use super::types::MAX_SIZE;

/// Why a graph is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// More nodes than ids can name.
    #[error("{nodes} nodes, but at most {MAX_SIZE} are supported")]
    TooManyNodes {
        /// Nodes requested.
        nodes: usize,
    },
    /// More edges than offsets can count.
    #[error("more than the supported {MAX_SIZE} edges")]
    TooManyEdges,
    /// An edge names a node out of range.
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
    /// Offsets exceed the memory limit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The CSR arrays are not a pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}
