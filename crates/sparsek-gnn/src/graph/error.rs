use sparsek::{
    io::{memory::MemoryError, text::excerpt},
    sparse::PatternError,
};

use super::relation::Relation;

/// Most nodes and edges: ids have 32 bits, devices index with `i32`.
pub const MAX_SIZE: usize = sparsek::sparse::MAX_ENTRIES;

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
    /// A source or a target is out of range.
    #[error("edge {edge} is ({source_id}, {target_id}), ids must be below {sources} and {targets}")]
    EdgeOutOfRange {
        /// Position in the list.
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

/// Why a graph of several node types is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeteroGraphError {
    /// A node type occurs twice.
    #[error("node type `{}` is listed twice", excerpt(name))]
    NodeTypeTwice {
        /// The type.
        name: String,
    },
    /// A relation occurs twice.
    #[error("relation {relation} was added before")]
    RelationTwice {
        /// The relation.
        relation: Relation,
    },
    /// A relation names a type that the graph lacks.
    #[error("relation {relation}: there are no nodes of type `{}`", excerpt(name))]
    UnknownNodeType {
        /// The relation.
        relation: Relation,
        /// The type.
        name: String,
    },
    /// Edges are between other numbers of nodes.
    #[error(
        "relation {relation}: edges from {} to {} nodes, but the types have {} and {}",
        found[0], found[1], expected[0], expected[1]
    )]
    Nodes {
        /// The relation.
        relation: Relation,
        /// Sources and targets of the edges.
        found: [usize; 2],
        /// Nodes of the types.
        expected: [usize; 2],
    },
    /// A type has too many nodes.
    #[error("node type `{}`: {source}", excerpt(name))]
    NodeType {
        /// The type.
        name: String,
        /// The reason.
        source: GraphError,
    },
    /// The edges of a relation are refused.
    #[error("relation {relation}: {source}")]
    Edges {
        /// The relation.
        relation: Relation,
        /// The reason.
        source: Box<GraphError>,
    },
}
