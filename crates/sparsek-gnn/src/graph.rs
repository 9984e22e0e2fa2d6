//! An immutable directed graph, shared by reference counting, with its device copies cached beside it.
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use burn::tensor::{Device, Tensor, TensorData};
use sparsek::sparse::{Adjacency, Csr, Pattern, PatternError};

/// Most nodes and most edges that a graph may have: ids and offsets are 32 bits wide, and devices index with `i32`.
pub const MAX_SIZE: usize = i32::MAX as usize;

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
    /// The CSR arrays are not a pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

/// An immutable directed graph in CSR form; a clone shares everything.
///
/// Row `i` of the pattern lists the nodes that `i` aggregates from. An edge `(source, target)` carries a message from
/// `source` to `target`, so it is stored as column `source` of row `target`, as `edge_index` is read in PyG. Edges may
/// repeat, and then count as often as they occur; [`Graph::symmetrised`] removes repetitions.
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
    devices: Mutex<Vec<OnDevice>>,
}

/// What is kept per device. Tensors here are outside autodiff, where they act as constants.
struct OnDevice {
    device: Device,
    adjacency: Adjacency,
    mean: Option<Tensor<2>>,
    gcn: Option<Tensor<1>>,
}

impl Graph {
    /// Builds a graph of `nodes` nodes from (source, target) edges, in any order.
    ///
    /// # Errors
    /// [`GraphError`] when an id is not below `nodes`, or when there are more than [`MAX_SIZE`] nodes or edges.
    ///
    /// Cost: O(nodes + edges), and a sort of every row.
    pub fn from_edges(
        nodes: usize,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Self, GraphError> {
        check_nodes(nodes)?;
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
        Ok(Self::from_pattern(Pattern::new(
            nodes, nodes, indptr, indices,
        )?))
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
        let (rows, cols) = (neighbors.rows(), neighbors.cols());
        match rows == cols {
            true => Ok(Self::from_pattern(neighbors.pattern().as_ref().clone())),
            false => Err(GraphError::NotSquare { rows, cols }),
        }
    }

    fn from_pattern(pattern: Pattern) -> Self {
        Self {
            inner: Arc::new(Inner {
                pattern,
                symmetric: OnceLock::new(),
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

    /// The same graph with exactly one edge from every node to itself.
    ///
    /// # Panics
    /// When the result would have more than [`MAX_SIZE`] edges.
    pub fn with_self_loops(&self) -> Self {
        let own = |node: u32| {
            self.neighbours(node as usize)
                .iter()
                .copied()
                .filter(move |&n| n != node)
        };
        self.rebuild(|node| {
            let mut row: Vec<u32> = own(node).chain([node]).collect();
            row.sort_unstable();
            row
        })
    }

    /// The graph with every edge in both directions, each pair once.
    ///
    /// # Panics
    /// When the result would have more than [`MAX_SIZE`] edges.
    pub fn symmetrised(&self) -> Self {
        let reversed = Self::from_pattern(self.inner.pattern.transpose().0);
        let result = self.rebuild(|node| {
            let mut row = [
                self.neighbours(node as usize),
                reversed.neighbours(node as usize),
            ]
            .concat();
            row.sort_unstable();
            row.dedup();
            row
        });
        let _ = result.inner.symmetric.set(true);
        result
    }

    fn rebuild(&self, mut row: impl FnMut(u32) -> Vec<u32>) -> Self {
        let mut indptr = Vec::with_capacity(self.nodes() + 1);
        let mut indices = Vec::with_capacity(self.edges());
        indptr.push(0);
        for node in 0..self.nodes() as u32 {
            indices.append(&mut row(node));
            assert!(
                indices.len() <= MAX_SIZE,
                "the graph would have more than {MAX_SIZE} edges"
            );
            indptr.push(indices.len() as u32);
        }
        let pattern = Pattern::new(self.nodes(), self.nodes(), indptr, indices);
        Self::from_pattern(pattern.expect("rows of valid ids are a pattern"))
    }

    /// Whether every edge occurs as often as its reverse; computed once.
    pub fn is_symmetric(&self) -> bool {
        *self.inner.symmetric.get_or_init(|| {
            let reversed = Self::from_pattern(self.inner.pattern.transpose().0);
            (0..self.nodes()).all(|node| {
                let (mut a, mut b) = (
                    self.neighbours(node).to_vec(),
                    reversed.neighbours(node).to_vec(),
                );
                a.len() == b.len() && {
                    a.sort_unstable();
                    b.sort_unstable();
                    a == b
                }
            })
        })
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

    /// The factors that turn sums into means: 1 / in-degree, and 0 for a node without incoming edges.
    pub fn mean_norm(&self) -> Vec<f32> {
        self.in_degrees()
            .into_iter()
            .map(|d| if d == 0 { 0.0 } else { 1.0 / d as f32 })
            .collect()
    }

    /// The symmetric normalisation of GCN: in-degree^(-1/2), and 0 where that would be infinite.
    ///
    /// Kipf and Welling, 2017, whose degrees include the self-loop: call it on [`Graph::with_self_loops`].
    pub fn gcn_norm(&self) -> Vec<f32> {
        self.in_degrees()
            .into_iter()
            .map(|d| if d == 0 { 0.0 } else { 1.0 / (d as f32).sqrt() })
            .collect()
    }

    /// The pattern and its transpose on the device, uploaded on first use; autodiff of the device plays no part.
    pub fn adjacency(&self, device: &Device) -> Adjacency {
        self.on_device(device, |slot| slot.adjacency.clone())
    }

    /// [`Graph::mean_norm`] as a constant tensor [nodes, 1] on the device, made on first use.
    pub fn mean_norm_on(&self, device: &Device) -> Tensor<2> {
        self.on_device(device, |slot| {
            let make = || {
                Tensor::from_data(
                    TensorData::new(self.mean_norm(), [self.nodes(), 1]),
                    &slot.device,
                )
            };
            slot.mean.get_or_insert_with(make).clone()
        })
    }

    /// The edge weights norm(i) · norm(j) of GCN, `[edges]` in CSR order, constant on the device, made on first use.
    pub fn gcn_weights_on(&self, device: &Device) -> Tensor<1> {
        self.on_device(device, |slot| {
            let make = || {
                let norm = self.gcn_norm();
                let weights: Vec<f32> = (0..self.nodes())
                    .flat_map(|i| self.neighbours(i).iter().map(move |&j| (i, j as usize)))
                    .map(|(i, j)| norm[i] * norm[j])
                    .collect();
                Tensor::from_data(TensorData::new(weights, [self.edges()]), &slot.device)
            };
            slot.gcn.get_or_insert_with(make).clone()
        })
    }

    fn on_device<T>(&self, device: &Device, get: impl FnOnce(&mut OnDevice) -> T) -> T {
        let device = device.clone().without_autodiff();
        let mut slots = self
            .inner
            .devices
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let found = slots.iter().position(|slot| slot.device == device);
        let at = found.unwrap_or_else(|| {
            let adjacency = Adjacency::new(&self.inner.pattern, &device);
            slots.push(OnDevice {
                device,
                adjacency,
                mean: None,
                gcn: None,
            });
            slots.len() - 1
        });
        get(&mut slots[at])
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
        assert_eq!(graph.gcn_norm()[1], 0.0);
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

    #[test]
    fn derived_graphs() {
        let graph = Graph::from_edges(3, [(0, 1), (0, 1), (2, 2)]).unwrap();
        let symmetric = graph.symmetrised();
        assert!(symmetric.is_symmetric());
        assert_eq!(symmetric.neighbours(0), [1]);
        assert_eq!(symmetric.neighbours(1), [0]);
        assert_eq!(symmetric.neighbours(2), [2]);
        assert_eq!(symmetric.with_self_loops().with_self_loops().edges(), 5);
    }
}
