use std::sync::{Arc, Mutex, OnceLock};

use burn::{config::Config, tensor::Device};
use sparsek::sparse::{Adjacency, Pattern};

use super::bipartite::{BipartiteGraph, Constants};

/// Immutable directed graph in CSR form; clones share everything.
///
/// Edge `(source, target)`, as PyG's `edge_index`, is column `source` of row `target`. Repeated
/// edges count repeatedly. The first use on a device uploads pattern and transpose for the graph's
/// life.
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
    pub(super) loop_features: OnceLock<BipartiteGraph>,
    /// `None` without loops.
    pub(super) loopless: OnceLock<Option<Graph>>,
    pub(super) devices: Mutex<Vec<DeviceCache>>,
}

pub(super) struct Looped {
    /// `None` if unchanged.
    pub(super) graph: Option<Graph>,
    /// Old position per edge; for added loops, edge count + node.
    pub(super) sources: Arc<Vec<u32>>,
}

pub(super) struct DeviceCache {
    pub(super) device: Device,
    pub(super) outgoing: Option<Adjacency>,
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

/// Factor `c(i,j)` of messages j → i, 0 where infinite; `d(i)` sums weights into i.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// `1 / √(d(i) d(j))`, as PyG.
    Both,
    /// `1 / d'(j)`; `d'` sums weights out.
    Left,
    /// `1 / d(i)`: the mean.
    Right,
    /// `1`.
    None,
}

impl Graph {
    pub(super) fn from_pattern(pattern: Pattern) -> Self {
        Self::from_bipartite(pattern.into())
    }

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

    /// Node count.
    pub fn nodes(&self) -> usize {
        self.pattern().rows()
    }

    /// Edge count.
    pub fn edges(&self) -> usize {
        self.pattern().nnz()
    }

    /// CSR pattern.
    pub fn pattern(&self) -> &Pattern {
        self.inner.edges.pattern()
    }

    /// Edges as bipartite graph.
    pub fn bipartite(&self) -> &BipartiteGraph {
        &self.inner.edges
    }

    /// Sources of edges into `node`.
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

/// Shares the device copies.
impl From<Graph> for BipartiteGraph {
    fn from(graph: Graph) -> Self {
        graph.inner.edges.clone()
    }
}
