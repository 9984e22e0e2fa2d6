//! Parts of a graph to train on, for graphs that do not fit in a device's memory: sampled neighbourhoods, and partitions.
use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use crate::Graph;

/// Some nodes of a graph, and edges between them.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Node `i` of the batch is this one of the graph; the nodes that the batch is for come first.
    pub nodes: Vec<u32>,
    /// The edges that are there.
    pub graph: Graph,
}

/// Samples what a few nodes depend on: of each node's neighbours at most so many, hop by hop.
///
/// The first hop takes, for each of the given nodes, `fanouts[0]` different ones of the edges into it, all where there are no more;
/// the second hop those of the nodes that the first has found, and so on. A model of as many layers may be applied to
/// the batch's graph; rows of the given nodes are its answer, exact where fanouts are at least the degrees.
///
/// Hamilton, Ying and Leskovec, *Inductive Representation Learning on Large Graphs*, NeurIPS 2017; every node is expanded once, as
/// in PyG's `NeighborLoader`.
///
/// ```
/// use sparsek_gnn::{Graph, sampling::NeighbourSampler};
///
/// let star = Graph::from_edges(5, (1..5).map(|leaf| (leaf, 0))).unwrap();
/// let batch = NeighbourSampler::new(&star, vec![2, 2]).sample(&[0], 7);
/// assert_eq!((batch.nodes[0], batch.nodes.len(), batch.graph.edges()), (0, 3, 2));
/// ```
#[derive(Debug)]
pub struct NeighbourSampler<'a> {
    graph: &'a Graph,
    fanouts: Vec<usize>,
    /// Where in the batch each node is; `u32::MAX` between calls.
    place: Vec<u32>,
}

impl<'a> NeighbourSampler<'a> {
    /// Of a graph, with a fanout for each hop.
    pub fn new(graph: &'a Graph, fanouts: Vec<usize>) -> Self {
        let place = vec![u32::MAX; graph.nodes()];
        Self {
            graph,
            fanouts,
            place,
        }
    }

    /// The batch of some nodes. The seed alone decides what is sampled.
    ///
    /// # Panics
    /// When a node is listed twice, or is not one of the graph's.
    pub fn sample(&mut self, nodes: &[u32], seed: u64) -> Batch {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut found = Vec::with_capacity(nodes.len());
        for &node in nodes {
            assert!(
                self.place[node as usize] == u32::MAX,
                "node {node} is listed twice"
            );
            self.place[node as usize] = found.len() as u32;
            found.push(node);
        }
        let mut rows: Vec<Vec<u32>> = Vec::new();
        for &fanout in &self.fanouts {
            for at in rows.len()..found.len() {
                let neighbours = self.graph.neighbours(found[at] as usize);
                let chosen = choose(neighbours, fanout, &mut rng);
                let mut row: Vec<u32> = chosen
                    .into_iter()
                    .map(|node| {
                        let place = &mut self.place[node as usize];
                        if *place == u32::MAX {
                            *place = found.len() as u32;
                            found.push(node);
                        }
                        *place
                    })
                    .collect();
                row.sort_unstable();
                rows.push(row);
            }
        }
        rows.resize(found.len(), Vec::new());
        for &node in &found {
            self.place[node as usize] = u32::MAX;
        }
        Batch {
            nodes: found,
            graph: Graph::from_rows(rows.into_iter()),
        }
    }
}

/// So many of a list, at different places; all where there are no more. Floyd's sampling.
fn choose(list: &[u32], count: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<u32> {
    if list.len() <= count {
        return list.to_vec();
    }
    let mut places: Vec<usize> = Vec::with_capacity(count);
    for last in list.len() - count..list.len() {
        let place = rng.random_range(0..=last);
        let taken = places.contains(&place);
        places.push(if taken { last } else { place });
    }
    places.into_iter().map(|place| list[place]).collect()
}

/// How nodes are put in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// At random.
    Random,
    /// In breadth-first order from random nodes, so that neighbours tend to be together.
    Clusters,
}

/// The nodes of a graph in parts of about one size; every node is in one part.
///
/// A batch is the graph induced by some of the parts: Chiang et al., *Cluster-GCN*, KDD 2019. Clusters are pieces of a breadth-first
/// order, not those of METIS.
///
/// ```
/// use sparsek_gnn::{Graph, sampling::{Parting, Partition}};
///
/// let ring = Graph::from_edges(100, (0..100).map(|i| (i, (i + 1) % 100))).unwrap().symmetrised();
/// let clusters = Partition::new(&ring, 4, Parting::Clusters, 0);
/// let batch = clusters.batch(&ring, &[0, 1]);
/// assert_eq!(batch.nodes.len(), 50);
/// assert!(batch.graph.edges() >= 90);
/// ```
#[derive(Clone, Debug)]
pub struct Partition {
    parts: Vec<Vec<u32>>,
}

impl Partition {
    /// Cuts the graph into so many parts, of which the seed decides.
    ///
    /// # Panics
    /// When there are no parts.
    pub fn new(graph: &Graph, parts: usize, parting: Parting, seed: u64) -> Self {
        assert!(parts > 0, "there must be a part");
        let mut order: Vec<u32> = (0..graph.nodes() as u32).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        if parting == Parting::Clusters {
            order = breadth_first(graph, &order);
        }
        // Wide, as the product of nodes and parts may not fit in a word.
        let place = |at: usize| (order.len() as u128 * at as u128 / parts as u128) as usize;
        let part = |at| order[place(at)..place(at + 1)].to_vec();
        Self {
            parts: (0..parts).map(part).collect(),
        }
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The graph induced by some parts.
    ///
    /// # Panics
    /// When a part is listed twice, or is not there.
    pub fn batch(&self, graph: &Graph, parts: &[usize]) -> Batch {
        let nodes: Vec<u32> = parts
            .iter()
            .flat_map(|&part| &self.parts[part])
            .copied()
            .collect();
        let graph = graph.induced(&nodes);
        Batch { nodes, graph }
    }
}

/// All nodes, those near each other together; a new start, in the given order, wherever a component ends.
fn breadth_first(graph: &Graph, starts: &[u32]) -> Vec<u32> {
    let mut seen = vec![false; graph.nodes()];
    let mut order: Vec<u32> = Vec::with_capacity(graph.nodes());
    for &start in starts {
        let mut next = order.len();
        if !std::mem::replace(&mut seen[start as usize], true) {
            order.push(start);
        }
        while next < order.len() {
            for &node in graph.neighbours(order[next] as usize) {
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
    use super::*;

    #[test]
    fn more_parts_than_nodes_leave_some_empty() {
        let graph = graph();
        let partition = Partition::new(&graph, 1000, Parting::Random, 0);
        let nodes: usize = partition.parts.iter().map(Vec::len).sum();
        assert_eq!((partition.parts(), nodes), (1000, 100));
        // Fanouts above every degree take all neighbors.
        let batch = NeighbourSampler::new(&graph, vec![usize::MAX]).sample(&[5], 0);
        assert_eq!(batch.graph.edges(), graph.neighbours(5).len());
    }

    fn graph() -> Graph {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let edges: Vec<(u32, u32)> = (0..900)
            .map(|_| (rng.random_range(0..100), rng.random_range(0..100)))
            .collect();
        Graph::from_edges(100, edges).unwrap()
    }

    #[test]
    fn samples_are_edges_of_the_graph() {
        let graph = graph();
        let mut sampler = NeighbourSampler::new(&graph, vec![3, 2]);
        let batch = sampler.sample(&[7, 50, 3], 1);
        assert_eq!(batch.nodes[..3], [7, 50, 3]);
        let mut all = batch.nodes.clone();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), batch.nodes.len());
        for (at, &node) in batch.nodes.iter().enumerate() {
            let degree = batch.graph.neighbours(at).len();
            assert!(at >= 3 || degree == graph.neighbours(node as usize).len().min(3));
            for &other in batch.graph.neighbours(at) {
                let other = batch.nodes[other as usize];
                assert!(graph.neighbours(node as usize).contains(&other));
            }
        }
        let again = sampler.sample(&[7, 50, 3], 1);
        assert_eq!(
            (again.nodes, again.graph.pattern()),
            (batch.nodes, batch.graph.pattern())
        );
        assert_ne!(
            sampler.sample(&[7, 50, 3], 2).graph.pattern(),
            batch.graph.pattern()
        );
    }

    #[test]
    fn wide_samples_are_whole_neighbourhoods() {
        let graph = graph();
        let batch = NeighbourSampler::new(&graph, vec![1000]).sample(&[9, 4], 0);
        for (at, node) in [(0, 9), (1, 4)] {
            let row = batch.graph.neighbours(at).iter();
            let mut row: Vec<u32> = row.map(|&other| batch.nodes[other as usize]).collect();
            row.sort_unstable();
            assert_eq!(row, graph.neighbours(node));
        }
    }

    #[test]
    fn every_edge_is_sampled_as_often() {
        let star = Graph::from_edges(11, (1..11).map(|leaf| (leaf, 0))).unwrap();
        let mut sampler = NeighbourSampler::new(&star, vec![3]);
        let mut counts = [0; 11];
        for seed in 0..4000 {
            sampler
                .sample(&[0], seed)
                .nodes
                .iter()
                .for_each(|&node| counts[node as usize] += 1);
        }
        // 1200 expected, standard deviation 29.
        assert!(
            counts[1..].iter().all(|count| (1050..1350).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn parts_hold_every_node_once() {
        let graph = graph();
        for parting in [Parting::Random, Parting::Clusters] {
            let partition = Partition::new(&graph, 7, parting, 5);
            let whole = partition.batch(&graph, &[0, 1, 2, 3, 4, 5, 6]);
            let mut nodes = whole.nodes.clone();
            nodes.sort_unstable();
            assert_eq!(nodes, (0..100).collect::<Vec<u32>>());
            assert_eq!(whole.graph.edges(), graph.edges());
            let sizes = partition.parts.iter().map(Vec::len);
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
    }
}
