use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};

use super::types::Batch;
use crate::graph::Graph;

/// Samples what seed nodes depend on (Hamilton et al., 2017).
///
/// Hop `h` takes ≤ `fanouts[h]` different incoming edges per node of the hop before, expanding
/// nodes once. A model with a layer per fanout is exact in the seed rows when fanouts reach all
/// degrees.
///
/// ```
/// use sparsek_gnn::{Graph, sampling::NeighborSampler};
///
/// let star = Graph::from_edges(5, (1..5).map(|leaf| (leaf, 0))).unwrap();
/// let batch = NeighborSampler::new(&star, vec![2, 2]).sample(&[0], 7);
/// assert_eq!((batch.nodes[0], batch.nodes.len(), batch.graph.edges()), (0, 3, 2));
/// ```
#[derive(Debug)]
pub struct NeighborSampler<'a> {
    graph: &'a Graph,
    fanouts: Vec<usize>,
    /// `u32::MAX` between calls.
    place: Vec<u32>,
}

impl<'a> NeighborSampler<'a> {
    /// One fanout per hop.
    pub fn new(graph: &'a Graph, fanouts: Vec<usize>) -> Self {
        let place = vec![u32::MAX; graph.nodes()];
        Self { graph, fanouts, place }
    }

    /// Samples for `nodes`, which come first. Panics when repeated or out of range.
    pub fn sample(&mut self, nodes: &[u32], seed: u64) -> Batch {
        sample(self.graph, &self.fanouts, &mut self.place, nodes, seed)
    }
}

/// `place` is all `u32::MAX` before and after.
pub(super) fn sample(
    graph: &Graph,
    fanouts: &[usize],
    place: &mut [u32],
    nodes: &[u32],
    seed: u64,
) -> Batch {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut found = Vec::with_capacity(nodes.len());
    for &node in nodes {
        assert!(place[node as usize] == u32::MAX, "node {node} is listed twice");
        place[node as usize] = found.len() as u32;
        found.push(node);
    }
    let mut rows: Vec<Vec<u32>> = Vec::new();
    for &fanout in fanouts {
        for at in rows.len()..found.len() {
            let neighbors = graph.neighbors(found[at] as usize);
            let chosen = choose(neighbors, fanout, &mut rng);
            let mut row: Vec<u32> = chosen
                .into_iter()
                .map(|node| {
                    let place = &mut place[node as usize];
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
        place[node as usize] = u32::MAX;
    }
    Batch { nodes: found, seeds: nodes.len(), graph: Graph::from_rows(rows.into_iter()) }
}

/// Floyd's sampling.
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::sampling::types::random_graph;

    #[rstest]
    fn fanouts_above_every_degree_take_all_neighbors(#[from(random_graph)] graph: Graph) {
        let batch = NeighborSampler::new(&graph, vec![usize::MAX]).sample(&[5], 0);
        assert_eq!(batch.graph.edges(), graph.neighbors(5).len());
    }

    #[rstest]
    fn samples_are_edges_of_the_graph(#[from(random_graph)] graph: Graph) {
        let mut sampler = NeighborSampler::new(&graph, vec![3, 2]);
        let batch = sampler.sample(&[7, 50, 3], 1);
        assert_eq!(batch.nodes[..3], [7, 50, 3]);
        let mut all = batch.nodes.clone();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), batch.nodes.len());
        for (at, &node) in batch.nodes.iter().enumerate() {
            let degree = batch.graph.neighbors(at).len();
            assert!(at >= 3 || degree == graph.neighbors(node as usize).len().min(3));
            for &other in batch.graph.neighbors(at) {
                let other = batch.nodes[other as usize];
                assert!(graph.neighbors(node as usize).contains(&other));
            }
        }
        let again = sampler.sample(&[7, 50, 3], 1);
        assert_eq!((again.nodes, again.graph.pattern()), (batch.nodes, batch.graph.pattern()));
        assert_ne!(sampler.sample(&[7, 50, 3], 2).graph.pattern(), batch.graph.pattern());
    }

    #[rstest]
    fn wide_samples_are_whole_neighborhoods(#[from(random_graph)] graph: Graph) {
        let batch = NeighborSampler::new(&graph, vec![1000]).sample(&[9, 4], 0);
        for (at, node) in [(0, 9), (1, 4)] {
            let row = batch.graph.neighbors(at).iter();
            let mut row: Vec<u32> = row.map(|&other| batch.nodes[other as usize]).collect();
            row.sort_unstable();
            assert_eq!(row, graph.neighbors(node));
        }
    }

    #[test]
    fn every_edge_is_sampled_as_often() {
        let star = Graph::from_edges(11, (1..11).map(|leaf| (leaf, 0))).unwrap();
        let mut sampler = NeighborSampler::new(&star, vec![3]);
        let mut counts = [0; 11];
        for seed in 0..4000 {
            sampler.sample(&[0], seed).nodes.iter().for_each(|&node| counts[node as usize] += 1);
        }
        assert!(counts[1..].iter().all(|count| (1050..1350).contains(count)), "{counts:?}");
    }
}
