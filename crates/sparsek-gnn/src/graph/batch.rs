use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use burn::tensor::Device;
use sparsek::sparse::{MessagePassing, Pattern};

use super::{
    error::{GraphError, MAX_SIZE},
    types::Graph,
};

/// Disjoint union of graphs, PyG's `Batch`; clones share everything.
///
/// One block-diagonal [`Graph`]; nodes `offsets[g]..offsets[g + 1]` form graph g.
///
/// ```
/// use sparsek_gnn::{Graph, graph::GraphBatch};
///
/// let path = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let pair = Graph::from_edges(2, [(1, 0)]).unwrap();
/// let batch = GraphBatch::new(&[&path, &pair]).unwrap();
/// assert_eq!((batch.graphs(), batch.nodes(1)), (2, 3..5));
/// assert_eq!(batch.graph().neighbors(3), [4]);
/// assert_eq!(batch.graph_ids(), [0, 0, 0, 1, 1]);
/// ```
#[derive(Clone)]
pub struct GraphBatch {
    inner: Arc<Inner>,
}

struct Inner {
    graph: Graph,
    offsets: Vec<u32>,
    readouts: Mutex<Vec<(Device, MessagePassing)>>,
}

impl GraphBatch {
    /// Joins graphs in O(nodes + edges); errors for none and above [`MAX_SIZE`] nodes or edges.
    pub fn new(graphs: &[&Graph]) -> Result<Self, GraphError> {
        if graphs.is_empty() {
            return Err(GraphError::NoGraphs);
        }
        let sum = |size: fn(&Graph) -> usize| {
            graphs.iter().fold(0usize, |sum, graph| sum.saturating_add(size(graph)))
        };
        let (nodes, edges) = (sum(Graph::nodes), sum(Graph::edges));
        if nodes > MAX_SIZE {
            return Err(GraphError::TooManyNodes { nodes });
        }
        if edges > MAX_SIZE {
            return Err(GraphError::TooManyEdges);
        }
        let mut offsets = Vec::with_capacity(graphs.len() + 1);
        let (mut indptr, mut indices) = (vec![0], Vec::with_capacity(edges));
        indptr.reserve(nodes);
        for graph in graphs {
            let (node, edge) = (indptr.len() as u32 - 1, indices.len() as u32);
            offsets.push(node);
            indptr.extend(graph.pattern().indptr()[1..].iter().map(|end| edge + end));
            indices.extend(graph.pattern().indices().iter().map(|source| node + source));
        }
        offsets.push(nodes as u32);
        Ok(Self::from_parts(Graph::from_csr(nodes, indptr, indices)?, offsets))
    }

    fn from_parts(graph: Graph, offsets: Vec<u32>) -> Self {
        Self { inner: Arc::new(Inner { graph, offsets, readouts: Mutex::default() }) }
    }

    /// Union.
    pub fn graph(&self) -> &Graph {
        &self.inner.graph
    }

    /// Graph count, ≥ 1.
    pub fn graphs(&self) -> usize {
        self.inner.offsets.len() - 1
    }

    /// First node of each graph, then node count.
    pub fn offsets(&self) -> &[u32] {
        &self.inner.offsets
    }

    /// Nodes of a graph; panics out of range.
    pub fn nodes(&self, graph: usize) -> Range<usize> {
        self.inner.offsets[graph] as usize..self.inner.offsets[graph + 1] as usize
    }

    /// Graph of each node, PyG's `batch`.
    pub fn graph_ids(&self) -> Vec<u32> {
        let of = |graph| self.nodes(graph as usize).map(move |_| graph);
        (0..self.graphs() as u32).flat_map(of).collect()
    }

    /// Keeps `nodes` in order, edges between them, and all graphs.
    ///
    /// Panics unless nodes are unique, valid and grouped by ascending graph.
    ///
    /// ```
    /// use sparsek_gnn::{Graph, graph::GraphBatch};
    ///
    /// let pair = Graph::from_edges(2, [(1, 0)]).unwrap();
    /// let batch = GraphBatch::new(&[&pair, &pair]).unwrap().induced(&[1, 3, 2]);
    /// assert_eq!((batch.offsets(), batch.graph().edges()), (&[0, 1, 3][..], 1));
    /// ```
    pub fn induced(&self, nodes: &[u32]) -> Self {
        let mut offsets = vec![0];
        let mut rest = nodes;
        for graph in 0..self.graphs() {
            let own = self.nodes(graph);
            let count = rest.iter().take_while(|&&node| own.contains(&(node as usize))).count();
            offsets.push(offsets[graph] + count as u32);
            rest = &rest[count..];
        }
        if let Some(node) = rest.first() {
            panic!("node {node} is out of range or follows a node of a later graph");
        }
        Self::from_parts(self.inner.graph.induced(nodes), offsets)
    }

    /// Messages from nodes to graphs, in node order; uploaded once per device.
    ///
    /// Deterministic, with gradients. Attention per graph:
    ///
    /// ```
    /// # #[cfg(feature = "flex")] {
    /// use burn::tensor::{Device, Tensor};
    /// use sparsek_gnn::{Graph, graph::GraphBatch};
    ///
    /// let device = Device::flex();
    /// let pair = Graph::from_edges(2, [(1, 0)]).unwrap();
    /// let batch = GraphBatch::new(&[&pair, &pair]).unwrap();
    /// let x = Tensor::<2>::from_floats([[1.0], [3.0], [5.0], [5.0]], &device);
    /// let readout = batch.readout(&device);
    /// let weights = readout.edge_softmax(Tensor::zeros([4, 1], &device));
    /// let y = readout.scatter_sum(weights * x).try_into_vec_as::<f32>().unwrap();
    /// assert_eq!(y, [2.0, 5.0]);
    /// # }
    /// ```
    pub fn readout(&self, device: &Device) -> MessagePassing {
        let device = device.clone().without_autodiff();
        let readouts = self.inner.readouts.lock();
        let mut readouts = readouts.unwrap_or_else(PoisonError::into_inner);
        if let Some((_, readout)) = readouts.iter().find(|(on, _)| *on == device) {
            return readout.clone();
        }
        let nodes = self.inner.graph.nodes();
        let all = (0..nodes as u32).collect();
        let pattern = Pattern::new(self.graphs(), nodes, self.inner.offsets.clone(), all);
        let readout = MessagePassing::new(&pattern.expect("offsets rise to the nodes"), &device);
        readouts.push((device, readout.clone()));
        readout
    }
}

impl From<Graph> for GraphBatch {
    fn from(graph: Graph) -> Self {
        let offsets = vec![0, graph.nodes() as u32];
        Self::from_parts(graph, offsets)
    }
}

impl std::fmt::Debug for GraphBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphBatch")
            .field("graph", &self.inner.graph)
            .field("offsets", &self.inner.offsets)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn batch() -> GraphBatch {
        let triangle = Graph::from_edges(3, [(0, 1), (1, 2), (2, 0), (2, 0)]).unwrap();
        let none = Graph::from_edges(0, []).unwrap();
        let one = Graph::from_edges(1, [(0, 0)]).unwrap();
        GraphBatch::new(&[&triangle, &none, &one]).unwrap()
    }

    #[test]
    fn the_union_is_block_diagonal() {
        let batch = batch();
        assert_eq!(batch.offsets(), [0, 3, 3, 4]);
        assert_eq!((batch.graphs(), batch.nodes(1), batch.nodes(2)), (3, 3..3, 3..4));
        assert_eq!(batch.graph_ids(), [0, 0, 0, 2]);
        let rows: Vec<&[u32]> = (0..4).map(|node| batch.graph().neighbors(node)).collect();
        assert_eq!(rows, [&[2, 2][..], &[0], &[1], &[3]]);
    }

    #[test]
    fn a_batch_of_one_is_the_graph() {
        let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
        let batch = GraphBatch::from(graph.clone());
        assert_eq!(batch.graph().pattern(), graph.pattern());
        let joined = GraphBatch::new(&[&graph]).unwrap();
        assert_eq!((joined.graph().pattern(), joined.offsets()), (graph.pattern(), &[0, 3][..]));
    }

    #[test]
    fn nothing_is_refused() {
        assert_eq!(GraphBatch::new(&[]).unwrap_err(), GraphError::NoGraphs);
    }

    #[test]
    fn induced_batches_keep_graphs_and_order() {
        let part = batch().induced(&[2, 0]);
        assert_eq!(part.offsets(), [0, 2, 2, 2]);
        assert_eq!((part.graph().neighbors(0), part.graph().neighbors(1)), (&[][..], &[0, 0][..]));
        assert_eq!(batch().induced(&[]).offsets(), [0; 4]);
    }

    #[rstest]
    #[case::order(&[3, 0])]
    #[case::range(&[0, 4])]
    #[should_panic(expected = "out of range or follows a node of a later graph")]
    fn nodes_out_of_order_are_refused(#[case] nodes: &[u32]) {
        batch().induced(nodes);
    }
}
