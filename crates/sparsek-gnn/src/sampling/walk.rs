use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use rayon::prelude::*;

use super::types::Batch;
use crate::{graph::Graph, random};

const TRIES: usize = 16;

/// Weights lie within its inverse and itself.
const MAX_WEIGHT: f64 = 1e150;

/// Walks a graph at random, as `torch_cluster.random_walk`, against the edges; walk
/// [`Graph::reversed`] to follow them.
///
/// Repeated edges count repeatedly. A node without neighbors repeats to the end. Runs in parallel;
/// results depend on the seed alone.
///
/// ```
/// use sparsek_gnn::{Graph, sampling::RandomWalk};
///
/// let ring = Graph::from_edges(5, (0..5).map(|i| (i, (i + 1) % 5))).unwrap();
/// let walks = RandomWalk::new(&ring, 3).walks(&[0, 2], 7);
/// assert_eq!(walks, [0, 4, 3, 2, 2, 1, 0, 4]);
/// let batch = RandomWalk::new(&ring, 1).subgraph(&[0, 1], 7);
/// assert_eq!((batch.nodes, batch.seeds, batch.graph.edges()), (vec![0, 1, 4], 2, 2));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RandomWalk<'a> {
    graph: &'a Graph,
    length: usize,
    bias: Option<Bias>,
}

/// The greater of `near` and `far` is 1.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bias {
    back: f64,
    near: f64,
    far: f64,
    /// Whether neighbors ascend.
    sorted: bool,
}

impl<'a> RandomWalk<'a> {
    /// Takes `length` uniform steps.
    pub fn new(graph: &'a Graph, length: usize) -> Self {
        Self { graph, length, bias: None }
    }

    /// Biases steps as node2vec (Grover and Leskovec, 2016): weight `1 / p` back, 1 to the previous
    /// node's neighbors, else `1 / q`. Fastest with ascending neighbors. Panics unless `p` and `q`
    /// are positive and finite.
    pub fn with_bias(self, p: f64, q: f64) -> Self {
        let valid = [p, q].iter().all(|x| x.is_finite() && *x > 0.0);
        assert!(valid, "p and q must be positive and finite, not {p} and {q}");
        let [back, far] = [p, q].map(|x| (1.0 / x).clamp(1.0 / MAX_WEIGHT, MAX_WEIGHT));
        let unit = far.max(1.0);
        let rows = (0..self.graph.nodes()).into_par_iter();
        let bias = Bias {
            back: back / unit,
            near: 1.0 / unit,
            far: far / unit,
            sorted: rows.all(|node| self.graph.neighbors(node).is_sorted()),
        };
        Self { bias: Some(bias), ..self }
    }

    /// Walks from each start: `[starts, length + 1]` node ids, start first. Panics for starts out
    /// of range.
    pub fn walks(&self, starts: &[u32], seed: u64) -> Vec<u32> {
        let width = self.length + 1;
        let mut walks = vec![0; starts.len() * width];
        let seed = random::mix(seed);
        let each = walks.par_chunks_mut(width).zip(starts).enumerate();
        each.for_each(|(at, (walk, &start))| {
            let seed = random::nth(seed, at as u64);
            self.walk(walk, start, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        });
        walks
    }

    /// Induces the graph of visited nodes, starts first, as GraphSAINT's walk sampler (Zeng et al.,
    /// 2020). Panics for starts out of range.
    pub fn subgraph(&self, starts: &[u32], seed: u64) -> Batch {
        let mut seen = vec![false; self.graph.nodes()];
        let walks = self.walks(starts, seed);
        let mut nodes = Vec::new();
        let mut visit = |node: u32| {
            if !std::mem::replace(&mut seen[node as usize], true) {
                nodes.push(node);
            }
            nodes.len()
        };
        let seeds = starts.iter().map(|&start| visit(start)).last().unwrap_or(0);
        walks.into_iter().for_each(|node| {
            visit(node);
        });
        let graph = self.graph.induced(&nodes);
        Batch { nodes, seeds, graph }
    }

    fn walk(&self, walk: &mut [u32], start: u32, rng: &mut Xoshiro256PlusPlus) {
        walk[0] = start;
        let mut before = None;
        for at in 1..walk.len() {
            let node = walk[at - 1];
            let neighbors = self.graph.neighbors(node as usize);
            if neighbors.is_empty() {
                walk[at..].fill(node);
                return;
            }
            walk[at] = match (before, &self.bias) {
                (Some(before), Some(bias)) => bias.draw(self.graph, neighbors, before, rng),
                _ => neighbors[rng.random_range(0..neighbors.len())],
            };
            before = Some(node);
        }
    }
}

impl Bias {
    /// Rejection sampling; return weights above 1 are separate proposals. Sums weights after
    /// `max(neighbors, TRIES)` tries.
    fn draw(
        &self,
        graph: &Graph,
        neighbors: &[u32],
        before: u32,
        rng: &mut Xoshiro256PlusPlus,
    ) -> u32 {
        let row = graph.neighbors(before as usize);
        let is_near = |node: u32| match self.sorted {
            true => row.binary_search(&node).is_ok(),
            false => row.contains(&node),
        };
        let weight = |node: u32| match node {
            _ if node == before => self.back,
            _ if is_near(node) => self.near,
            _ => self.far,
        };
        let returns = match self.back > 1.0 {
            true => (self.back - 1.0) * self.count(neighbors, before) as f64,
            false => 0.0,
        };
        let share = returns / (returns + neighbors.len() as f64);
        for _ in 0..neighbors.len().max(TRIES) {
            if returns > 0.0 && random::unit(rng.random()) < share {
                return before;
            }
            let node = neighbors[rng.random_range(0..neighbors.len())];
            if random::unit(rng.random()) < weight(node) {
                return node;
            }
        }
        let sums = neighbors.iter().scan(0.0, |sum, &node| {
            *sum += weight(node);
            Some(*sum)
        });
        let sums: Vec<f64> = sums.collect();
        let drawn = random::unit(rng.random()) * sums[sums.len() - 1];
        // Rounding may reach the last sum.
        neighbors[sums.partition_point(|&sum| sum <= drawn).min(sums.len() - 1)]
    }

    fn count(&self, neighbors: &[u32], node: u32) -> usize {
        match self.sorted {
            true => {
                let below = neighbors.partition_point(|&other| other < node);
                neighbors[below..].partition_point(|&other| other == node)
            }
            false => neighbors.iter().filter(|&&other| other == node).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::sampling::types::random_graph;

    const STARTS: [u32; 5] = [7, 50, 7, 0, 99];

    #[rstest]
    #[case::uniform(None)]
    #[case::local(Some((0.25, 4.0)))]
    #[case::outward(Some((4.0, 0.25)))]
    #[case::extreme(Some((1e300, 1e-300)))]
    #[case::extreme(Some((f64::MIN_POSITIVE, f64::MAX)))]
    fn every_step_is_an_edge(#[from(random_graph)] graph: Graph, #[case] bias: Option<(f64, f64)>) {
        let mut walk = RandomWalk::new(&graph, 40);
        if let Some((p, q)) = bias {
            walk = walk.with_bias(p, q);
        }
        let walks = walk.walks(&STARTS, 1);
        assert_eq!(walks.len(), STARTS.len() * 41);
        for (walk, start) in walks.chunks_exact(41).zip(STARTS) {
            assert_eq!(walk[0], start);
            for &[node, next] in walk.array_windows() {
                assert!(graph.neighbors(node as usize).contains(&next));
            }
        }
        assert_ne!(walks[..41], walks[82..123]);
        assert_eq!(walk.walks(&STARTS, 1), walks);
        assert_eq!(walk.walks(&STARTS[..2], 1), walks[..82]);
        assert_ne!(walk.walks(&STARTS, 2), walks);
    }

    #[test]
    fn nodes_without_neighbors_repeat() {
        let path = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
        assert_eq!(RandomWalk::new(&path, 3).walks(&[2, 0], 0), [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(RandomWalk::new(&path, 0).walks(&[2, 0], 0), [2, 0]);
        assert!(RandomWalk::new(&path, 3).walks(&[], 0).is_empty());
    }

    #[rstest]
    #[case::first_order(1.0, 1.0)]
    #[case::local(0.5, 4.0)]
    #[case::outward(4.0, 0.5)]
    #[case::often_summed(100.0, 0.001)]
    #[case::often_summed(1000.0, 1000.0)]
    #[case::often_back(0.05, 20.0)]
    fn second_steps_have_the_weights_of_node2vec(
        #[case] p: f64,
        #[case] q: f64,
        #[values(false, true)] sorted: bool,
    ) {
        let graph = Graph::from_edges(4, [(0, 1), (1, 2), (0, 2), (0, 3)]).unwrap().symmetrized();
        let graph = match sorted {
            true => graph,
            false => {
                let rows = (0..4).map(|node| graph.neighbors(node).iter().rev().copied().collect());
                Graph::from_rows(rows)
            }
        };
        let walks = RandomWalk::new(&graph, 2).with_bias(p, q).walks(&[1; 20_000], 5);
        let mut counts = [0f64; 4];
        for walk in walks.chunks_exact(3).filter(|walk| walk[1] == 0) {
            counts[walk[2] as usize] += 1.0;
        }
        let count: f64 = counts.iter().sum();
        assert!((9_600.0..10_400.0).contains(&count), "{count}");
        let weights = [0.0, 1.0 / p, 1.0, 1.0 / q];
        let sum: f64 = weights.iter().sum();
        for (found, weight) in counts.into_iter().zip(weights) {
            let expected = count * weight / sum;
            assert!((found - expected).abs() <= 5.0 * expected.sqrt(), "{counts:?}");
        }
    }

    #[test]
    fn uniform_steps_reach_neighbors_as_often() {
        let graph = Graph::from_edges(4, [(1, 0), (2, 0), (3, 0), (3, 0)]).unwrap();
        let walks = RandomWalk::new(&graph, 1).walks(&[0; 8000], 3);
        let mut counts = [0; 4];
        walks.chunks_exact(2).for_each(|walk| counts[walk[1] as usize] += 1);
        let near = |count: i32, expected: i32| (count - expected).abs() < 230;
        assert!(near(counts[1], 2000) && near(counts[2], 2000) && near(counts[3], 4000));
    }

    #[rstest]
    fn subgraphs_are_induced_by_the_visited_nodes(#[from(random_graph)] graph: Graph) {
        let walk = RandomWalk::new(&graph, 4);
        let batch = walk.subgraph(&STARTS, 9);
        assert_eq!((&batch.nodes[..4], batch.seeds), (&[7, 50, 0, 99][..], 4));
        let mut visited = walk.walks(&STARTS, 9);
        visited.sort_unstable();
        visited.dedup();
        let mut nodes = batch.nodes.clone();
        nodes.sort_unstable();
        assert_eq!(nodes, visited);
        assert_eq!(batch.graph.pattern(), graph.induced(&batch.nodes).pattern());
        assert_eq!(walk.subgraph(&[], 9).nodes.len(), 0);
    }

    #[rstest]
    #[should_panic(expected = "positive and finite")]
    fn bad_biases_panic(
        #[from(random_graph)] graph: Graph,
        #[values(0.0, -1.0, f64::NAN, f64::INFINITY)] p: f64,
    ) {
        let _ = RandomWalk::new(&graph, 1).with_bias(p, 1.0);
    }
}
