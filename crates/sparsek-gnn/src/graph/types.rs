use std::sync::{Arc, Mutex, OnceLock};

use burn::{config::Config, tensor::Device};
use sparsek::sparse::{Adjacency, Pattern};

use super::bipartite::{BipartiteGraph, Constants};

/// An immutable directed graph in CSR form; clones share everything.
///
/// An edge `(source, target)` is column `source` of row `target`, a message as in PyG's
/// `edge_index`. Repeated edges count repeatedly; self-loops are ordinary. The first aggregation on
/// a device uploads pattern and transpose for the graph's life.
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
    pub(super) edges: BipartiteGraph,
    pub(super) symmetric: OnceLock<bool>,
    pub(super) looped: OnceLock<Looped>,
    /// From edges to those of the looped graph.
    pub(super) loop_features: OnceLock<BipartiteGraph>,
    /// `None` when no node has a loop.
    pub(super) loopless: OnceLock<Option<Graph>>,
    pub(super) devices: Mutex<Vec<DeviceCache>>,
}

pub(super) struct Looped {
    /// `None` when each node has one loop already.
    pub(super) graph: Option<Graph>,
    /// Old position per edge, or the old edge count plus the node for added loops.
    pub(super) sources: Arc<Vec<u32>>,
}

pub(super) struct DeviceCache {
    pub(super) device: Device,
    /// Sums edges by source.
    pub(super) outgoing: Option<Adjacency>,
    /// Maps weights of edges and loops.
    pub(super) looped: Option<Adjacency>,
    pub(super) constants: Constants<Constant>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Constant {
    Targets { norm: Norm, loops: f64 },
    Sources { norm: Norm, loops: f64 },
    Loops { weight: f64 },
    OutRoots,
}

/// Factor `c(i, j)` of messages from `j` to `i`; `d(i)` sums weights into `i`. Infinite factors
/// become 0.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// `1 / √(d(i) d(j))`: Kipf and Welling, 2017, as PyG.
    Both,
    /// `1 / d'(j)`, where `d'` sums weights out of `j`.
    Left,
    /// `1 / d(i)`: the mean.
    Right,
    /// 1.
    None,
}

impl Graph {
    pub(super) fn from_pattern(pattern: Pattern) -> Self {
        Self::from_bipartite(pattern.into())
    }

    /// As many targets as sources.
    pub(super) fn from_bipartite(edges: BipartiteGraph) -> Self {
        Self {
            inner: Arc::new(Inner {
                edges,
                symmetric: OnceLock::new(),
                looped: OnceLock::new(),
                loop_features: OnceLock::new(),
                loopless: OnceLock::new(),
                devices: Mutex::default(),
            }),
        }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.pattern().rows()
    }

    /// Number of directed edges.
    pub fn edges(&self) -> usize {
        self.pattern().nnz()
    }

    /// CSR pattern.
    pub fn pattern(&self) -> &Pattern {
        self.inner.edges.pattern()
    }

    /// The edges, with the nodes as sources and as targets.
    pub fn bipartite(&self) -> &BipartiteGraph {
        &self.inner.edges
    }

    /// Sources of messages to `node`; panics when out of range.
    pub fn neighbors(&self, node: usize) -> &[u32] {
        self.pattern().row(node)
    }

    /// Row lengths.
    pub fn in_degrees(&self) -> Vec<u32> {
        self.inner.edges.in_degrees()
    }

    /// Column lengths.
    pub fn out_degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.nodes()];
        for &source in self.pattern().indices() {
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

/// Sources and targets are the nodes; shares the device copies.
impl From<Graph> for BipartiteGraph {
    fn from(graph: Graph) -> Self {
        graph.inner.edges.clone()
    }
}
