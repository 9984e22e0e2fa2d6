use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use super::types::Batch;
use crate::graph::Graph;

/// Partition method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionMethod {
    /// Random.
    Random,
    /// Breadth-first: keeps neighbors together.
    Clusters,
}

/// Disjoint parts, equal in size up to one node. Clusters cut a breadth-first order, unlike METIS
/// in Cluster-GCN (Chiang et al., 2019).
///
/// ```
/// use sparsek_gnn::{Graph, sampling::{PartitionMethod, Partition}};
///
/// let ring = Graph::from_edges(100, (0..100).map(|i| (i, (i + 1) % 100))).unwrap().symmetrized();
/// let clusters = Partition::new(&ring, 4, PartitionMethod::Clusters, 0);
/// let batch = clusters.batch(&ring, &[0, 1]);
/// assert_eq!(batch.nodes.len(), 50);
/// assert!(batch.graph.edges() >= 90);
/// ```
#[derive(Clone, Debug)]
pub struct Partition {
    parts: Vec<Vec<u32>>,
}

impl Partition {
    /// Cuts by `seed`. Panics when `parts` is 0.
    pub fn new(graph: &Graph, parts: usize, method: PartitionMethod, seed: u64) -> Self {
        assert!(parts > 0, "there must be a part");
        let mut order: Vec<u32> = (0..graph.nodes() as u32).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        if method == PartitionMethod::Clusters {
            order = breadth_first(graph, &order);
        }
        // Nodes × parts may overflow.
        let place = |at: usize| (order.len() as u128 * at as u128 / parts as u128) as usize;
        let part = |at| order[place(at)..place(at + 1)].to_vec();
        Self { parts: (0..parts).map(part).collect() }
    }

    /// Part count.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Induces a graph from parts. Panics when repeated or out of range.
    pub fn batch(&self, graph: &Graph, parts: &[usize]) -> Batch {
        let nodes: Vec<u32> = parts.iter().flat_map(|&part| &self.parts[part]).copied().collect();
        let graph = graph.induced(&nodes);
        Batch { seeds: nodes.len(), nodes, graph }
    }
}

fn breadth_first(graph: &Graph, starts: &[u32]) -> Vec<u32> {
    let mut seen = vec![false; graph.nodes()];
    let mut order: Vec<u32> = Vec::with_capacity(graph.nodes());
    for &start in starts {
        let mut next = order.len();
        if !std::mem::replace(&mut seen[start as usize], true) {
            order.push(start);
        }
        while next < order.len() {
            for &node in graph.neighbors(order[next] as usize) {
                if !std::mem::replace(&mut seen[node as usize], true) {
                    order.push(node);
                }
            }
            next += 1;
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::sampling::types::random_graph;

    #[rstest]
    fn more_parts_than_nodes_leave_some_empty(#[from(random_graph)] graph: Graph) {
        let partition = Partition::new(&graph, 1000, PartitionMethod::Random, 0);
        let nodes: usize = partition.parts.iter().map(Vec::len).sum();
        assert_eq!((partition.parts(), nodes), (1000, 100));
    }

    #[rstest]
    fn parts_hold_every_node_once(
        #[from(random_graph)] graph: Graph,
        #[values(PartitionMethod::Random, PartitionMethod::Clusters)] method: PartitionMethod,
    ) {
        let partition = Partition::new(&graph, 7, method, 5);
        let whole = partition.batch(&graph, &[0, 1, 2, 3, 4, 5, 6]);
        let mut nodes = whole.nodes.clone();
        nodes.sort_unstable();
        assert_eq!(nodes, (0..100).collect::<Vec<u32>>());
        assert_eq!(whole.graph.edges(), graph.edges());
        let sizes = partition.parts.iter().map(Vec::len);
        assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
    }
}
