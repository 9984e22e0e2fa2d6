use sparsek::{
    io::memory,
    sparse::{Csr, Pattern},
};

use super::{
    bipartite::BipartiteGraph,
    error::{GraphError, MAX_SIZE},
    types::Graph,
};

impl Graph {
    /// Takes (source, target) edges in any order; cost and errors as
    /// [`BipartiteGraph::from_edges`].
    pub fn from_edges(
        nodes: usize,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Self, GraphError> {
        check_nodes(nodes)?;
        let bytes = memory::product(&[nodes, 2 * size_of::<u32>()]);
        memory::check(format_args!("a graph of {nodes} nodes"), bytes)?;
        let made = BipartiteGraph::from_edges(nodes, nodes, edges);
        made.map(Self::from_bipartite).map_err(|error| match error {
            GraphError::EdgeOutOfRange { edge, source_id, target_id, .. } => {
                GraphError::NodeOutOfRange { edge, source_id, target_id, nodes }
            }
            error => error,
        })
    }

    /// Takes CSR: node `i` aggregates from `indices[indptr[i]..indptr[i + 1]]`. Errors for
    /// malformed CSR and above [`MAX_SIZE`].
    pub fn from_csr(nodes: usize, indptr: Vec<u32>, indices: Vec<u32>) -> Result<Self, GraphError> {
        check_nodes(nodes)?;
        if indices.len() > MAX_SIZE {
            return Err(GraphError::TooManyEdges);
        }
        let pattern = Pattern::new(nodes, nodes, indptr, indices)?;
        Ok(Self::from_pattern(pattern))
    }

    /// Takes a square matrix, such as
    /// [`kneighbors_graph`](sparsek::distance::NearestNeighbors::kneighbors_graph) without a query.
    ///
    /// Rows aggregate from stored columns, zeros too; [`Graph::symmetrized`] adds reverse edges.
    /// Copies the pattern to the host. Errors unless square.
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
    /// assert_eq!(graph.neighbors(0), [2]);
    /// assert_eq!(graph.symmetrized().with_self_loops().edges(), 7);
    /// # }
    /// ```
    pub fn from_neighbors(neighbors: &Csr) -> Result<Self, GraphError> {
        neighbors.pattern().as_ref().clone().try_into()
    }

    pub(crate) fn from_rows(rows: impl Iterator<Item = Vec<u32>>) -> Self {
        Self::try_from_rows(rows).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(super) fn try_from_rows(rows: impl Iterator<Item = Vec<u32>>) -> Result<Self, GraphError> {
        let (mut indptr, mut indices) = (vec![0], Vec::new());
        for mut row in rows {
            indices.append(&mut row);
            if indices.len() > MAX_SIZE {
                return Err(GraphError::TooManyEdges);
            }
            indptr.push(indices.len() as u32);
        }
        let nodes = indptr.len() - 1;
        let pattern = Pattern::new(nodes, nodes, indptr, indices)?;
        Ok(Self::from_pattern(pattern))
    }
}

impl TryFrom<Pattern> for Graph {
    type Error = GraphError;

    fn try_from(pattern: Pattern) -> Result<Self, GraphError> {
        BipartiteGraph::from(pattern).try_into()
    }
}

/// Errors unless square; shares the device copies.
impl TryFrom<BipartiteGraph> for Graph {
    type Error = GraphError;

    fn try_from(edges: BipartiteGraph) -> Result<Self, GraphError> {
        let (rows, cols) = (edges.targets(), edges.sources());
        match rows == cols {
            true => Ok(Self::from_bipartite(edges)),
            false => Err(GraphError::NotSquare { rows, cols }),
        }
    }
}

fn check_nodes(nodes: usize) -> Result<(), GraphError> {
    if nodes > MAX_SIZE { Err(GraphError::TooManyNodes { nodes }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn edges_become_sorted_rows_of_sources() {
        let graph = Graph::from_edges(4, [(3, 0), (1, 0), (1, 2), (1, 2)]).unwrap();
        assert_eq!((graph.nodes(), graph.edges()), (4, 4));
        assert_eq!(graph.neighbors(0), [1, 3]);
        assert_eq!(graph.neighbors(2), [1, 1]);
        assert_eq!(graph.mean_norm(), [0.5, 0.0, 0.5, 0.0]);
    }

    #[test]
    fn ids_are_checked() {
        let error = Graph::from_edges(2, [(0, 1), (2, 0)]).unwrap_err();
        assert_eq!(
            error,
            GraphError::NodeOutOfRange { edge: 1, source_id: 2, target_id: 0, nodes: 2 }
        );
    }

    #[rstest]
    #[case::decreasing(vec![0, 2, 1], vec![0])]
    #[case::short(vec![0, 1], vec![0])]
    #[case::out_of_range(vec![0, 1, 1], vec![2])]
    fn broken_matrices_are_refused(#[case] indptr: Vec<u32>, #[case] indices: Vec<u32>) {
        assert!(Graph::from_csr(2, indptr, indices).is_err());
    }
}
