//! ```text
//! row i: candidates j of i, without its neighbors       counted: free(i)
//! draw:  `count` different ranks below Σ free(i)        Floyd's sampling
//! rank → row by prefix sums → column by binary search over the neighbors
//! ```
//!
//! No rejection, so dense graphs cost no more. Memory: O(nodes + edges + count).

use std::collections::HashSet;

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};
use sparsek::io::memory;

use super::error::LinkError;
use crate::graph::{Graph, MAX_SIZE};

/// Draws exactly `count` different non-edges (source, target), uniformly in random order by seed:
/// PyG's sparse `negative_sampling`.
///
/// Excludes loops. `undirected` excludes reverse edges and lists pairs once, lower node first.
///
/// O(nodes + edges + count log nodes), plus row sorts. Errors for too few non-edges, and above
/// [`MAX_SIZE`] or the [`sparsek::io::memory`] limit.
///
/// ```
/// use sparsek_gnn::{Graph, links::{LinkError, negative_sampling}};
///
/// let path = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let mut pairs = negative_sampling(&path, 4, false, 7).unwrap();
/// pairs.sort();
/// assert_eq!(pairs, [(0, 2), (1, 0), (2, 0), (2, 1)]);
/// assert_eq!(negative_sampling(&path, 1, true, 7).unwrap(), [(0, 2)]);
/// let error = negative_sampling(&path, 2, true, 7).unwrap_err();
/// assert_eq!(error, LinkError::TooFewNonEdges { requested: 2, available: 1 });
/// ```
pub fn negative_sampling(
    graph: &Graph,
    count: usize,
    undirected: bool,
    seed: u64,
) -> Result<Vec<(u32, u32)>, LinkError> {
    if count > MAX_SIZE {
        return Err(LinkError::TooManyPairs { pairs: count });
    }
    let free = match undirected {
        true => NonEdges::new(&graph.symmetrized(), true),
        false => NonEdges::new(graph, false),
    };
    let available = free.total();
    if count as u64 > available {
        return Err(LinkError::TooFewNonEdges { requested: count, available });
    }
    // Rank, pair, and slot of a hash set ≥ 7/16 full.
    memory::check(format_args!("{count} negative pairs"), memory::product(&[count, 40]))?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut drawn = HashSet::with_capacity(count);
    let mut ranks = Vec::with_capacity(count);
    for last in available - count as u64..available {
        let rank = rng.random_range(0..=last);
        let rank = if drawn.insert(rank) { rank } else { last };
        drawn.insert(rank);
        ranks.push(rank);
    }
    ranks.shuffle(&mut rng);
    Ok(ranks.into_iter().map(|rank| free.pair(rank)).collect())
}

/// Ordered by target (undirected: lower node), then other node.
struct NonEdges {
    nodes: usize,
    undirected: bool,
    /// Ascending neighbors and itself; undirected: higher neighbors.
    taken: Vec<u32>,
    offsets: Vec<usize>,
    /// Pairs before each row, then all.
    before: Vec<u64>,
}

impl NonEdges {
    fn new(graph: &Graph, undirected: bool) -> Self {
        let nodes = graph.nodes();
        let (mut taken, mut offsets, mut before) = (Vec::new(), vec![0], vec![0]);
        for node in 0..nodes {
            let first = if undirected { node + 1 } else { 0 };
            let neighbors = graph.neighbors(node).iter().copied();
            let mut row: Vec<u32> = neighbors.filter(|&other| other as usize >= first).collect();
            row.extend((!undirected).then_some(node as u32));
            row.sort_unstable();
            row.dedup();
            before.push(before[node] + (nodes - first - row.len()) as u64);
            taken.append(&mut row);
            offsets.push(taken.len());
        }
        Self { nodes, undirected, taken, offsets, before }
    }

    fn total(&self) -> u64 {
        self.before[self.nodes]
    }

    fn pair(&self, rank: u64) -> (u32, u32) {
        let row = self.before.partition_point(|&before| before <= rank) - 1;
        let first = if self.undirected { row + 1 } else { 0 };
        let place = (rank - self.before[row]) as usize;
        let taken = &self.taken[self.offsets[row]..self.offsets[row + 1]];
        // The taken[t] - first - t free candidates below taken[t] never decrease with t.
        let (mut low, mut high) = (0, taken.len());
        while low < high {
            let middle = (low + high) / 2;
            match taken[middle] as usize - first - middle <= place {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let (row, other) = (row as u32, (first + place + low) as u32);
        if self.undirected { (row, other) } else { (other, row) }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn graph() -> Graph {
        let mut edges: Vec<(u32, u32)> = (0..30).map(|i| (i * 7 % 9, i * i % 8)).collect();
        edges.extend((0..12).map(|source| (source, 3)));
        edges.extend([(5, 5), (5, 5), (11, 10)]);
        Graph::from_edges(12, edges).unwrap()
    }

    fn free(graph: &Graph, undirected: bool) -> Vec<(u32, u32)> {
        let edge = |s: u32, t: u32| graph.neighbors(t as usize).contains(&s);
        let all = (0..12).flat_map(|s| (0..12).map(move |t| (s, t)));
        match undirected {
            false => all.filter(|&(s, t)| s != t && !edge(s, t)).collect(),
            true => all.filter(|&(s, t)| s < t && !edge(s, t) && !edge(t, s)).collect(),
        }
    }

    #[rstest]
    fn all_pairs_without_an_edge_are_found(#[values(false, true)] undirected: bool) {
        let graph = graph();
        let expected = free(&graph, undirected);
        let mut found = negative_sampling(&graph, expected.len(), undirected, 3).unwrap();
        found.sort_unstable();
        assert_eq!(found, expected);
        let error = negative_sampling(&graph, expected.len() + 1, undirected, 3).unwrap_err();
        let (requested, available) = (expected.len() + 1, expected.len() as u64);
        assert_eq!(error, LinkError::TooFewNonEdges { requested, available });
    }

    #[rstest]
    fn every_pair_is_drawn_as_often_in_every_place(#[values(false, true)] undirected: bool) {
        let graph = graph();
        let expected = free(&graph, undirected);
        let (draws, each) = (4000, 5);
        let mut counts = vec![[0u32; 2]; expected.len()];
        for seed in 0..draws {
            let pairs = negative_sampling(&graph, each, undirected, seed).unwrap();
            for (place, pair) in pairs.iter().enumerate() {
                let at = expected.binary_search(pair).unwrap();
                counts[at][usize::from(place == 0)] += 1;
            }
        }
        for (kind, places) in [(0, each as f64 - 1.0), (1, 1.0)] {
            let mean = draws as f64 * places / expected.len() as f64;
            for count in &counts {
                let off = (f64::from(count[kind]) - mean).abs();
                assert!(off < 5.0 * mean.sqrt(), "{count:?}, expected {mean}");
            }
        }
    }

    #[test]
    fn the_seed_decides() {
        let graph = graph();
        let of = |seed| negative_sampling(&graph, 20, false, seed).unwrap();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_eq!(negative_sampling(&graph, 0, false, 1).unwrap(), []);
    }

    #[test]
    fn requests_are_bounded() {
        let graph = Graph::from_edges(1 << 16, []).unwrap();
        let error = negative_sampling(&graph, MAX_SIZE + 1, false, 0).unwrap_err();
        assert_eq!(error, LinkError::TooManyPairs { pairs: MAX_SIZE + 1 });
    }

    #[test]
    fn graphs_without_pairs_have_none() {
        let none = Graph::from_edges(0, []).unwrap();
        let error = negative_sampling(&none, 1, false, 0).unwrap_err();
        assert_eq!(error, LinkError::TooFewNonEdges { requested: 1, available: 0 });
    }
}
