//! Graphs made of a graph.
use std::sync::Arc;

use sparsek::sparse::Pattern;

use super::{Graph, GraphError, MAX_SIZE};

/// A graph with self-loops, and where its edges come from.
pub(super) struct Looped {
    /// None where the graph has them already.
    graph: Option<Graph>,
    /// For each edge the one it was, or the number of edges there were plus the node, of a new loop.
    pub sources: Arc<Vec<u32>>,
}

impl Graph {
    /// The same graph with exactly one edge from every node to itself; made once, and shared.
    ///
    /// # Panics
    /// When the result would have more than [`MAX_SIZE`] edges.
    pub fn with_self_loops(&self) -> Self {
        self.looped().graph.clone().unwrap_or_else(|| self.clone())
    }

    /// Whether a node has an edge to itself.
    pub(crate) fn has_self_loops(&self) -> bool {
        self.looped().sources.len() < self.edges() + self.nodes()
    }

    /// As [`Graph::with_self_loops`]. Of several loops of one node the last stays, as in PyG.
    pub(super) fn looped(&self) -> &Looped {
        self.inner.looped.get_or_init(|| {
            let mut sources = Vec::with_capacity(self.edges() + self.nodes());
            let graph = self.rebuild(|node| {
                let first = self.inner.pattern.indptr()[node as usize];
                let mut own = (self.edges() + node as usize) as u32;
                let mut row: Vec<(u32, u32)> = Vec::new();
                for (entry, &other) in (first..).zip(self.neighbours(node as usize)) {
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

    /// The graph with every edge in both directions, each pair once.
    ///
    /// # Panics
    /// When the result would have more than [`MAX_SIZE`] edges.
    pub fn symmetrised(&self) -> Self {
        self.try_symmetrised()
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`Graph::symmetrised`].
    ///
    /// # Errors
    /// [`GraphError::TooManyEdges`] when the result would have more than [`MAX_SIZE`].
    pub(crate) fn try_symmetrised(&self) -> Result<Self, GraphError> {
        let reversed = self.reversed();
        let row = |node: u32| {
            let mut row = [
                self.neighbours(node as usize),
                reversed.neighbours(node as usize),
            ]
            .concat();
            row.sort_unstable();
            row.dedup();
            row
        };
        let result = Self::try_from_rows((0..self.nodes() as u32).map(row))?;
        let _ = result.inner.symmetric.set(true);
        Ok(result)
    }

    /// The graph with every edge turned round.
    pub fn reversed(&self) -> Self {
        Self::from_pattern(self.inner.pattern.transpose().0)
    }

    /// The graph of some nodes and of the edges between them: node `i` of the result is `nodes[i]`.
    ///
    /// Cost: O(nodes of both and the edges into the chosen ones), and a sort of every row.
    ///
    /// # Panics
    /// When a node is listed twice, or is not one of the graph's.
    ///
    /// ```
    /// use sparsek_gnn::Graph;
    ///
    /// let path = Graph::from_edges(4, [(0, 1), (1, 2), (2, 3)]).unwrap();
    /// let part = path.induced(&[2, 1]);
    /// assert_eq!((part.edges(), part.neighbours(0)), (1, &[1][..]));
    /// ```
    pub fn induced(&self, nodes: &[u32]) -> Self {
        let mut place = vec![u32::MAX; self.nodes()];
        for (at, &node) in (0u32..).zip(nodes) {
            let slot = &mut place[node as usize];
            assert!(*slot == u32::MAX, "node {node} is listed twice");
            *slot = at;
        }
        let rows = nodes.iter().map(|&node| {
            let row = self.neighbours(node as usize).iter();
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

    /// Of what each node aggregates from.
    ///
    /// # Panics
    /// When there are more than [`MAX_SIZE`] edges, or an id is no row.
    pub(crate) fn from_rows(rows: impl Iterator<Item = Vec<u32>>) -> Self {
        Self::try_from_rows(rows).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_from_rows(rows: impl Iterator<Item = Vec<u32>>) -> Result<Self, GraphError> {
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

    /// Whether every edge occurs as often as its reverse; computed once.
    pub fn is_symmetric(&self) -> bool {
        *self.inner.symmetric.get_or_init(|| {
            let reversed = self.reversed();
            let sorted = |graph: &Self, node| {
                let mut row = graph.neighbours(node).to_vec();
                row.sort_unstable();
                row
            };
            (0..self.nodes()).all(|node| {
                self.neighbours(node).len() == reversed.neighbours(node).len()
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
        let symmetric = graph.symmetrised();
        assert!(symmetric.is_symmetric());
        assert_eq!(symmetric.neighbours(0), [1]);
        assert_eq!(symmetric.neighbours(1), [0]);
        assert_eq!(symmetric.neighbours(2), [2]);
        assert_eq!(symmetric.with_self_loops().with_self_loops().edges(), 5);
        assert_eq!(graph.reversed().neighbours(0), [1, 1]);
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
