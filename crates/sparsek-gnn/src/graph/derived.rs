use std::sync::Arc;

use super::{
    error::GraphError,
    types::{Graph, Looped},
};
use crate::random;

impl Graph {
    /// Gives each node one loop; cached. Panics above [`MAX_SIZE`](super::MAX_SIZE) edges.
    pub fn with_self_loops(&self) -> Self {
        self.looped().graph.clone().unwrap_or_else(|| self.clone())
    }

    /// Drops all loops; cached.
    pub fn without_self_loops(&self) -> Self {
        let made = self.inner.loopless.get_or_init(|| {
            let has = self.pairs().any(|(target, source)| target == source);
            let row = |node: u32| {
                let others = self.neighbors(node as usize).iter();
                others.copied().filter(|&other| other != node).collect()
            };
            has.then(|| self.rebuild(row))
        });
        made.clone().unwrap_or_else(|| self.clone())
    }

    /// DropEdge (Rong et al., 2020), PyG's `dropout_edge`: drops edges at random, by seed.
    /// `undirected` treats all edges between two nodes alike.
    ///
    /// Panics for a probability outside [0, 1].
    ///
    /// ```
    /// use sparsek_gnn::Graph;
    ///
    /// let graph = Graph::from_edges(100, (0..99).map(|i| (i, i + 1))).unwrap().symmetrized();
    /// let kept = graph.drop_edges(0.5, true, 3);
    /// assert!(kept.is_symmetric() && kept.edges() > 50 && kept.edges() < 150);
    /// ```
    pub fn drop_edges(&self, probability: f64, undirected: bool, seed: u64) -> Self {
        assert!((0.0..=1.0).contains(&probability), "drop_edges: {probability} is no probability");
        let state = random::mix(seed);
        let mut edge = 0u64;
        self.rebuild(|node| {
            let kept = self.neighbors(node as usize).iter().copied().filter(|&other| {
                let number = match undirected {
                    true => u64::from(node.min(other)) << 32 | u64::from(node.max(other)),
                    false => edge,
                };
                edge += 1;
                random::unit(random::nth(state, number)) >= probability
            });
            kept.collect()
        })
    }

    pub(crate) fn has_self_loops(&self) -> bool {
        self.looped().sources.len() < self.edges() + self.nodes()
    }

    /// Keeps a node's last loop, as PyG.
    pub(super) fn looped(&self) -> &Looped {
        self.inner.looped.get_or_init(|| {
            let mut sources = Vec::with_capacity(self.edges() + self.nodes());
            let graph = self.rebuild(|node| {
                let first = self.pattern().indptr()[node as usize];
                let mut own = (self.edges() + node as usize) as u32;
                let mut row: Vec<(u32, u32)> = Vec::new();
                for (entry, &other) in (first..).zip(self.neighbors(node as usize)) {
                    if other == node {
                        own = entry;
                    } else {
                        row.push((other, entry));
                    }
                }
                row.push((node, own));
                row.sort_by_key(|&(other, _)| other);
                sources.extend(row.iter().map(|&(_, entry)| entry));
                row.into_iter().map(|(other, _)| other).collect()
            });
            Looped {
                graph: (graph.pattern() != self.pattern()).then_some(graph),
                sources: Arc::new(sources),
            }
        })
    }

    /// Stores each pair once, in both directions. Panics above [`MAX_SIZE`](super::MAX_SIZE) edges.
    pub fn symmetrized(&self) -> Self {
        self.try_symmetrized().unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn try_symmetrized(&self) -> Result<Self, GraphError> {
        let reversed = self.reversed();
        let row = |node: u32| {
            let mut row =
                [self.neighbors(node as usize), reversed.neighbors(node as usize)].concat();
            row.sort_unstable();
            row.dedup();
            row
        };
        let result = Self::try_from_rows((0..self.nodes() as u32).map(row))?;
        let _ = result.inner.symmetric.set(true);
        Ok(result)
    }

    /// Reverses every edge.
    pub fn reversed(&self) -> Self {
        Self::from_pattern(self.pattern().transpose().0)
    }

    /// Keeps `nodes`, in order, and edges between them; panics for repeats and bad ids.
    ///
    /// O(nodes of both graphs + edges into `nodes`), plus row sorts.
    ///
    /// ```
    /// use sparsek_gnn::Graph;
    ///
    /// let path = Graph::from_edges(4, [(0, 1), (1, 2), (2, 3)]).unwrap();
    /// let part = path.induced(&[2, 1]);
    /// assert_eq!((part.edges(), part.neighbors(0)), (1, &[1][..]));
    /// ```
    pub fn induced(&self, nodes: &[u32]) -> Self {
        let mut place = vec![u32::MAX; self.nodes()];
        for (at, &node) in (0u32..).zip(nodes) {
            let slot = &mut place[node as usize];
            assert!(*slot == u32::MAX, "node {node} is listed twice");
            *slot = at;
        }
        let rows = nodes.iter().map(|&node| {
            let row = self.neighbors(node as usize).iter();
            let mut row: Vec<u32> = row.map(|&other| place[other as usize]).collect();
            row.retain(|&other| other != u32::MAX);
            row.sort_unstable();
            row
        });
        Self::from_rows(rows)
    }

    fn rebuild(&self, row: impl FnMut(u32) -> Vec<u32>) -> Self {
        Self::from_rows((0..self.nodes() as u32).map(row))
    }

    /// Whether reverse edges occur equally often; cached.
    pub fn is_symmetric(&self) -> bool {
        *self.inner.symmetric.get_or_init(|| {
            let reversed = self.reversed();
            let sorted = |graph: &Self, node| {
                let mut row = graph.neighbors(node).to_vec();
                row.sort_unstable();
                row
            };
            (0..self.nodes()).all(|node| {
                self.neighbors(node).len() == reversed.neighbors(node).len()
                    && sorted(self, node) == sorted(&reversed, node)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_graphs() {
        let graph = Graph::from_edges(3, [(0, 1), (0, 1), (2, 2)]).unwrap();
        let symmetric = graph.symmetrized();
        assert!(symmetric.is_symmetric());
        assert_eq!(symmetric.neighbors(0), [1]);
        assert_eq!(symmetric.neighbors(1), [0]);
        assert_eq!(symmetric.neighbors(2), [2]);
        assert_eq!(symmetric.with_self_loops().with_self_loops().edges(), 5);
        assert_eq!(graph.reversed().neighbors(0), [1, 1]);
    }

    #[test]
    fn loops_are_dropped_once() {
        let graph = Graph::from_edges(3, [(0, 1), (1, 1), (1, 1), (2, 0)]).unwrap();
        let without = graph.without_self_loops();
        assert_eq!((without.neighbors(0), without.neighbors(1)), (&[2][..], &[0][..]));
        assert_eq!(without.without_self_loops().edges(), 2);
    }

    #[test]
    fn as_many_edges_are_dropped_as_asked() {
        let ring = Graph::from_edges(20_000, (0..20_000).map(|i| (i, (i + 1) % 20_000))).unwrap();
        for graph in [ring.clone(), ring.symmetrized()] {
            let undirected = graph.is_symmetric();
            let draws = graph.edges() as f64 / if undirected { 2.0 } else { 1.0 };
            let kept = graph.drop_edges(0.3, undirected, 5);
            let share = kept.edges() as f64 / graph.edges() as f64;
            assert!((share - 0.7).abs() < 5.0 * (0.21 / draws).sqrt(), "{share}");
            let subset = (0..graph.nodes())
                .all(|node| kept.neighbors(node).iter().all(|j| graph.neighbors(node).contains(j)));
            assert!(subset && kept.is_symmetric() == undirected);
            assert_eq!(kept.pattern(), graph.drop_edges(0.3, undirected, 5).pattern());
            assert_ne!(kept.pattern(), graph.drop_edges(0.3, undirected, 6).pattern());
            assert_eq!(graph.drop_edges(0.0, undirected, 1).pattern(), graph.pattern());
            assert_eq!(graph.drop_edges(1.0, undirected, 1).edges(), 0);
        }
    }

    #[test]
    fn loops_say_where_they_come_from() {
        let graph = Graph::from_csr(3, vec![0, 3, 4, 4], vec![2, 0, 0, 0]).unwrap();
        let looped = graph.with_self_loops();
        assert_eq!(looped.pattern().indices(), [0, 2, 0, 1, 2]);
        assert_eq!(*graph.looped().sources, [2, 0, 3, 5, 6]);
        assert_eq!(*looped.looped().sources, [0, 1, 2, 3, 4]);
        assert!(looped.looped().graph.is_none());
    }
}
