//! An immutable directed graph, shared by reference counting, with its device copies cached beside it.
mod derived;
mod device;
mod error;
mod norm;

use std::sync::{Arc, Mutex, OnceLock};

use sparsek::{
    io::memory,
    sparse::{Csr, Pattern},
};

pub use error::GraphError;
pub use norm::Norm;

/// Most nodes and most edges that a graph may have: ids and offsets are 32 bits wide, and devices index with `i32`.
pub const MAX_SIZE: usize = sparsek::sparse::MAX_ENTRIES;

/// An immutable directed graph in CSR form; a clone shares everything.
///
/// Row `i` of the pattern lists the nodes that `i` aggregates from. An edge `(source, target)` carries a message from
/// `source` to `target`, so it is stored as column `source` of row `target`, as `edge_index` is read in PyG. Edges may
/// repeat, and then count as often as they occur; [`Graph::symmetrised`] removes repetitions. Loops are edges like others.
///
/// The first aggregation on a device uploads the pattern and its transpose there, and they stay for the graph's life.
///
/// ```
/// use sparsek_gnn::Graph;
///
/// let path = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// assert_eq!(path.in_degrees(), [0, 1, 1]);
/// assert_eq!(path.out_degrees(), [1, 1, 0]);
/// assert!(!path.is_symmetric() && path.symmetrised().is_symmetric());
/// assert_eq!(path.with_self_loops().edges(), 5);
/// ```
#[derive(Clone)]
pub struct Graph {
    inner: Arc<Inner>,
}

struct Inner {
    pattern: Pattern,
    symmetric: OnceLock<bool>,
    looped: OnceLock<derived::Looped>,
    devices: Mutex<Vec<device::OnDevice>>,
}

impl Graph {
    /// Builds a graph of `nodes` nodes from (source, target) edges, in any order.
    ///
    /// # Errors
    /// [`GraphError`] when an id is not below `nodes`, when there are more than [`MAX_SIZE`] nodes
    /// or edges, or when the nodes' offsets exceed the limit of [`sparsek::io::memory`].
    ///
    /// Cost: O(nodes + edges), and a sort of every row.
    pub fn from_edges(
        nodes: usize,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Self, GraphError> {
        check_nodes(nodes)?;
        let bytes = memory::product(&[nodes, 2 * size_of::<u32>()]);
        memory::check(format_args!("a graph of {nodes} nodes"), bytes)?;
        let mut list = Vec::new();
        let mut indptr = vec![0u32; nodes + 1];
        for (edge, (source_id, target_id)) in edges.into_iter().enumerate() {
            if edge >= MAX_SIZE {
                return Err(GraphError::TooManyEdges);
            }
            if source_id as usize >= nodes || target_id as usize >= nodes {
                return Err(GraphError::NodeOutOfRange {
                    edge,
                    source_id,
                    target_id,
                    nodes,
                });
            }
            indptr[target_id as usize + 1] += 1;
            list.push((source_id, target_id));
        }
        for i in 0..nodes {
            indptr[i + 1] += indptr[i];
        }
        let mut next = indptr.clone();
        let mut indices = vec![0u32; list.len()];
        for (source, target) in list {
            let slot = &mut next[target as usize];
            indices[*slot as usize] = source;
            *slot += 1;
        }
        for row in indptr.windows(2) {
            indices[row[0] as usize..row[1] as usize].sort_unstable();
        }
        Self::from_csr(nodes, indptr, indices)
    }

    /// Takes a CSR pattern: row `i` is `indices[indptr[i]..indptr[i + 1]]`, the nodes that `i` aggregates from.
    ///
    /// # Errors
    /// [`GraphError`] when `indptr` does not have `nodes + 1` entries rising from 0 to the number of indices, when an
    /// id is not below `nodes`, or when there are more than [`MAX_SIZE`] nodes or edges.
    pub fn from_csr(nodes: usize, indptr: Vec<u32>, indices: Vec<u32>) -> Result<Self, GraphError> {
        check_nodes(nodes)?;
        if indices.len() > MAX_SIZE {
            return Err(GraphError::TooManyEdges);
        }
        let pattern = Pattern::new(nodes, nodes, indptr, indices)?;
        Ok(Self::from_pattern(pattern))
    }

    /// The graph of the neighbours in a square matrix, such as those of
    /// [`kneighbors_graph`](sparsek::distance::NearestNeighbors::kneighbors_graph) without a query: every row aggregates from its
    /// neighbours. Each entry is an edge, an explicit zero too; the distances are left behind, and no edge is added or reversed
    /// (see [`Graph::symmetrised`]).
    ///
    /// # Errors
    /// [`GraphError::NotSquare`], for neighbours of queries among other rows.
    ///
    /// Cost: a copy of the pattern on the host.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use sparsek::{distance::{Metric, NearestNeighbors}, sparse::Csr};
    /// use sparsek_gnn::Graph;
    ///
    /// # #[cfg(feature = "flex")]
    /// # {
    /// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0], [2.0, 0.0]], &Device::flex());
    /// let index = NearestNeighbors::fit(Csr::from_dense(x).unwrap(), Metric::Cosine);
    /// let graph = Graph::from_neighbors(&index.kneighbors_graph(None, 1).unwrap()).unwrap();
    /// assert_eq!(graph.neighbours(0), [2]);
    /// assert_eq!(graph.symmetrised().with_self_loops().edges(), 7);
    /// # }
    /// ```
    pub fn from_neighbors(neighbors: &Csr) -> Result<Self, GraphError> {
        neighbors.pattern().as_ref().clone().try_into()
    }

    fn from_pattern(pattern: Pattern) -> Self {
        Self {
            inner: Arc::new(Inner {
                pattern,
                symmetric: OnceLock::new(),
                looped: OnceLock::new(),
                devices: Mutex::default(),
            }),
        }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.inner.pattern.rows()
    }

    /// Number of stored directed edges.
    pub fn edges(&self) -> usize {
        self.inner.pattern.nnz()
    }

    /// The CSR pattern.
    pub fn pattern(&self) -> &Pattern {
        &self.inner.pattern
    }

    /// The nodes that `node` aggregates from.
    ///
    /// # Panics
    /// When `node` is not below [`Graph::nodes`].
    pub fn neighbours(&self, node: usize) -> &[u32] {
        let indptr = self.inner.pattern.indptr();
        &self.inner.pattern.indices()[indptr[node] as usize..indptr[node + 1] as usize]
    }

    /// How many nodes each node aggregates from: the lengths of the rows.
    pub fn in_degrees(&self) -> Vec<u32> {
        self.inner
            .pattern
            .indptr()
            .windows(2)
            .map(|w| w[1] - w[0])
            .collect()
    }

    /// How many nodes aggregate from each node: the lengths of the columns.
    pub fn out_degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.nodes()];
        for &source in self.inner.pattern.indices() {
            degrees[source as usize] += 1;
        }
        degrees
    }
}

impl TryFrom<Pattern> for Graph {
    type Error = GraphError;

    /// Row `i` of a square pattern lists the nodes that `i` aggregates from.
    fn try_from(pattern: Pattern) -> Result<Self, GraphError> {
        let (rows, cols) = (pattern.rows(), pattern.cols());
        match rows == cols {
            true => Ok(Self::from_pattern(pattern)),
            false => Err(GraphError::NotSquare { rows, cols }),
        }
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph")
            .field("nodes", &self.nodes())
            .field("edges", &self.edges())
            .finish_non_exhaustive()
    }
}

fn check_nodes(nodes: usize) -> Result<(), GraphError> {
    if nodes > MAX_SIZE {
        Err(GraphError::TooManyNodes { nodes })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_become_sorted_rows_of_sources() {
        let graph = Graph::from_edges(4, [(3, 0), (1, 0), (1, 2), (1, 2)]).unwrap();
        assert_eq!((graph.nodes(), graph.edges()), (4, 4));
        assert_eq!(graph.neighbours(0), [1, 3]);
        assert_eq!(graph.neighbours(2), [1, 1]);
        assert_eq!(graph.mean_norm(), [0.5, 0.0, 0.5, 0.0]);
    }

    #[test]
    fn ids_are_checked() {
        let error = Graph::from_edges(2, [(0, 1), (2, 0)]).unwrap_err();
        assert_eq!(
            error,
            GraphError::NodeOutOfRange {
                edge: 1,
                source_id: 2,
                target_id: 0,
                nodes: 2
            }
        );
        assert!(Graph::from_csr(2, vec![0, 2, 1], vec![0]).is_err());
        assert!(Graph::from_csr(2, vec![0, 1], vec![0]).is_err());
        assert!(Graph::from_csr(2, vec![0, 1, 1], vec![2]).is_err());
    }
}
