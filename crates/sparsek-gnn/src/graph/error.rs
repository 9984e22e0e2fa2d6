//! Errors of graphs.
use sparsek::{io::memory::MemoryError, sparse::PatternError};

use super::types::MAX_SIZE;

/// Why a graph is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// More nodes than ids can name.
    #[error("{nodes} nodes, but at most {MAX_SIZE} are supported")]
    TooManyNodes {
        /// Nodes asked for.
        nodes: usize,
    },
    /// More edges than offsets can count.
    #[error("more than the supported {MAX_SIZE} edges")]
    TooManyEdges,
    /// An edge names a node out of range.
    #[error("edge {edge} is ({source_id}, {target_id}), ids must be below {nodes}")]
    NodeOutOfRange {
        /// Position of the edge in the list.
        edge: usize,
        /// The edge's source.
        source_id: u32,
        /// The edge's target.
        target_id: u32,
        /// Nodes of the graph.
        nodes: usize,
    },
    /// The matrix is not square.
    #[error("a graph needs a square matrix, not {rows} × {cols}")]
    NotSquare {
        /// Rows of the matrix.
        rows: usize,
        /// Its columns.
        cols: usize,
    },
    /// More nodes than the memory limit allows.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The CSR arrays are not a pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}
