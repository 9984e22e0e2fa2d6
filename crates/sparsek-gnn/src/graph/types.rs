//! The graph and its cached data.
use std::sync::{Arc, Mutex, OnceLock};

use burn::{
    config::Config,
    tensor::{DType, Device, Tensor},
};
use sparsek::sparse::{Adjacency, Pattern};

/// Most nodes and edges of a graph: ids are 32 bits wide, and devices index with `i32`.
pub const MAX_SIZE: usize = sparsek::sparse::MAX_ENTRIES;

/// An immutable directed graph in CSR form; a clone shares everything.
///
/// Node `i` aggregates from row `i` of the pattern. An edge `(source, target)` carries a message
/// from `source` to `target`, as PyG's `edge_index`: column `source` of row `target`. Repeated
/// edges count as often as they occur; [`Graph::symmetrized`] removes them. Self-loops are ordinary
/// edges.
///
/// The first aggregation on a device uploads the pattern and its transpose for the graph's life.
///
/// ```
/// use sparsek_gnn::Graph;
///
/// let path = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// assert_eq!(path.in_degrees(), [0, 1, 1]);
/// assert_eq!(path.out_degrees(), [1, 1, 0]);
/// assert!(!path.is_symmetric() && path.symmetrized().is_symmetric());
/// assert_eq!(path.with_self_loops().edges(), 5);
/// ```
#[derive(Clone)]
pub struct Graph {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) pattern: Pattern,
    pub(super) symmetric: OnceLock<bool>,
    pub(super) looped: OnceLock<Looped>,
    pub(super) devices: Mutex<Vec<DeviceCache>>,
}

/// A graph with self-loops, and the sources of its edges.
pub(super) struct Looped {
    /// `None` when the graph itself has one loop at every node.
    pub(super) graph: Option<Graph>,
    /// Per edge: its old position, or the old number of edges plus the node for an added loop.
    pub(super) sources: Arc<Vec<u32>>,
}

/// Cached data of one device.
pub(super) struct DeviceCache {
    pub(super) device: Device,
    pub(super) adjacency: Adjacency,
    /// Sums edges by source node.
    pub(super) outgoing: Option<Adjacency>,
    /// Maps weights of edges and added loops to the graph with self-loops.
    pub(super) looped: Option<Adjacency>,
    pub(super) constants: Vec<(Constant, DType, Tensor<1>)>,
}

/// Key of a cached factor.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Constant {
    Mean,
    Targets { norm: Norm, loops: f64 },
    Sources { norm: Norm, loops: f64 },
    Loops { weight: f64 },
}

/// Factor `c(i, j)` of a message from `j` to `i`. `d(i)` is the summed weight of the edges into
/// `i`. An infinite factor becomes 0.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// `1 / √(d(i) d(j))`: Kipf and Welling, 2017, as in PyG.
    Both,
    /// `1 / d'(j)`, where `d'` sums edges out of `j`: what a node sends sums to 1.
    Left,
    /// `1 / d(i)`: the mean of what a node receives.
    Right,
    /// 1.
    None,
}

impl Graph {
    pub(super) fn from_pattern(pattern: Pattern) -> Self {
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

    /// Number of directed edges.
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
    pub fn neighbors(&self, node: usize) -> &[u32] {
        let indptr = self.inner.pattern.indptr();
        &self.inner.pattern.indices()[indptr[node] as usize..indptr[node + 1] as usize]
    }

    /// Row lengths: how many nodes each node aggregates from.
    pub fn in_degrees(&self) -> Vec<u32> {
        self.inner
            .pattern
            .indptr()
            .windows(2)
            .map(|w| w[1] - w[0])
            .collect()
    }

    /// Column lengths: how many nodes aggregate from each node.
    pub fn out_degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.nodes()];
        for &source in self.inner.pattern.indices() {
            degrees[source as usize] += 1;
        }
        degrees
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
