//! What is wrong with a graph.
use sparsek::{io::memory::MemoryError, sparse::PatternError};

use super::MAX_SIZE;

/// Why a graph was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// More nodes than ids can name.
    #[error("{nodes} nodes asked for, at most {MAX_SIZE} are supported")]
    TooManyNodes {
        /// Nodes asked for.
        nodes: usize,
    },
    /// More edges than offsets can count.
    #[error("more than {MAX_SIZE} edges, the most that are supported")]
    TooManyEdges,
    /// An edge names a node that the graph does not have.
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
    /// A matrix that relates rows to something else than rows.
    #[error("a matrix of {rows} rows and {cols} columns is no graph, it must be square")]
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
