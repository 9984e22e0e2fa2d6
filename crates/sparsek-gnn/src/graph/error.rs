use sparsek::{
    io::{memory::MemoryError, text::excerpt},
    sparse::PatternError,
};

use super::relation::Relation;

/// Most nodes or edges: devices index with `i32`.
pub const MAX_SIZE: usize = sparsek::sparse::MAX_ENTRIES;

/// Invalid graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// Ids would overflow.
    #[error("{nodes} nodes, but at most {MAX_SIZE} are supported")]
    TooManyNodes {
        /// Nodes.
        nodes: usize,
    },
    /// Offsets would overflow.
    #[error("more than the supported {MAX_SIZE} edges")]
    TooManyEdges,
    /// Node out of range.
    #[error("edge {edge} is ({source_id}, {target_id}), ids must be below {nodes}")]
    NodeOutOfRange {
        /// Position.
        edge: usize,
        /// Source.
        source_id: u32,
        /// Target.
        target_id: u32,
        /// Nodes.
        nodes: usize,
    },
    /// End out of range.
    #[error("edge {edge} is ({source_id}, {target_id}), ids must be below {sources} and {targets}")]
    EdgeOutOfRange {
        /// Position.
        edge: usize,
        /// Source.
        source_id: u32,
        /// Target.
        target_id: u32,
        /// Source nodes.
        sources: usize,
        /// Target nodes.
        targets: usize,
    },
    /// Matrix not square.
    #[error("a graph needs a square matrix, not {rows} × {cols}")]
    NotSquare {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
    },
    /// Empty batch.
    #[error("a batch needs at least one graph")]
    NoGraphs,
    /// Above the memory limit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Malformed CSR arrays.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

/// Invalid heterogeneous graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeteroGraphError {
    /// Repeated node type.
    #[error("node type `{}` is listed twice", excerpt(name))]
    NodeTypeTwice {
        /// Name.
        name: String,
    },
    /// Repeated relation.
    #[error("relation {relation} was added before")]
    RelationTwice {
        /// Relation.
        relation: Relation,
    },
    /// Unknown node type.
    #[error("relation {relation}: there are no nodes of type `{}`", excerpt(name))]
    UnknownNodeType {
        /// Relation.
        relation: Relation,
        /// Type.
        name: String,
    },
    /// Other node counts.
    #[error(
        "relation {relation}: edges from {} to {} nodes, but the types have {} and {}",
        found[0], found[1], expected[0], expected[1]
    )]
    Nodes {
        /// Relation.
        relation: Relation,
        /// Found.
        found: [usize; 2],
        /// Expected.
        expected: [usize; 2],
    },
    /// Too many nodes.
    #[error("node type `{}`: {source}", excerpt(name))]
    NodeType {
        /// Type.
        name: String,
        /// Reason.
        source: GraphError,
    },
    /// Invalid edges.
    #[error("relation {relation}: {source}")]
    Edges {
        /// Relation.
        relation: Relation,
        /// Reason.
        source: Box<GraphError>,
    },
}
