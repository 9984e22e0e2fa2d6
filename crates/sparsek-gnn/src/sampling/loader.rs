//! ```text
//! order:    the seed nodes, shuffled by the epoch's seed
//! batch i:  chunk i of the order, sampled with the epoch's seed + i
//! ```

use std::{iter::FusedIterator, sync::Arc};

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use super::{
    ahead::{Ahead, Plan, default_workers},
    neighbor::sample,
    types::Batch,
};
use crate::graph::Graph;

/// Samples [`Batch`]es by worker threads, as PyG's `NeighborLoader`; see
/// [`NeighborSampler`](super::NeighborSampler).
///
/// Defaults: all nodes as seeds, batches of 128 in order, a worker per core up to 4, 2 batches
/// ahead each. Equal epoch seeds give equal batches for any number of workers. Memory: 4 bytes per
/// node and worker, and the batches ahead.
///
/// ```
/// use sparsek_gnn::{Graph, sampling::NeighborLoader};
///
/// let ring = Graph::from_edges(100, (0..100).map(|i| (i, (i + 1) % 100))).unwrap();
/// let loader = NeighborLoader::new(&ring, vec![2, 2]).with_batch_size(40).with_shuffle(true);
/// assert_eq!(loader.batches(), 3);
/// let mut seeds = Vec::new();
/// for batch in loader.epoch(7) {
///     assert_eq!(batch.graph.nodes(), batch.nodes.len());
///     seeds.extend_from_slice(&batch.nodes[..batch.seeds]);
/// }
/// seeds.sort();
/// assert_eq!(seeds, (0..100).collect::<Vec<u32>>());
/// ```
#[derive(Clone, Debug)]
pub struct NeighborLoader {
    graph: Graph,
    fanouts: Arc<[usize]>,
    nodes: Option<Arc<[u32]>>,
    batch_size: usize,
    shuffle: bool,
    drop_last: bool,
    workers: usize,
    prefetch: usize,
}

impl NeighborLoader {
    /// One fanout per hop.
    pub fn new(graph: &Graph, fanouts: Vec<usize>) -> Self {
        Self {
            graph: graph.clone(),
            fanouts: fanouts.into(),
            nodes: None,
            batch_size: 128,
            shuffle: false,
            drop_last: false,
            workers: default_workers(),
            prefetch: 2,
        }
    }

    /// Sets the seed nodes, PyG's `input_nodes`. Panics when repeated or out of range.
    pub fn with_nodes(self, nodes: Vec<u32>) -> Self {
        let mut seen = vec![false; self.graph.nodes()];
        for &node in &nodes {
            assert!((node as usize) < seen.len(), "node {node} is not below {}", seen.len());
            let again = std::mem::replace(&mut seen[node as usize], true);
            assert!(!again, "node {node} is listed twice");
        }
        Self { nodes: Some(nodes.into()), ..self }
    }

    /// Sets the seed nodes per batch. Panics when 0.
    pub fn with_batch_size(self, batch_size: usize) -> Self {
        assert!(batch_size > 0, "batches must have a node");
        Self { batch_size, ..self }
    }

    /// Shuffles the seed nodes in each epoch, by its seed.
    pub fn with_shuffle(self, shuffle: bool) -> Self {
        Self { shuffle, ..self }
    }

    /// Drops an incomplete last batch.
    pub fn with_drop_last(self, drop_last: bool) -> Self {
        Self { drop_last, ..self }
    }

    /// Sets the threads; with 0 the iterator samples.
    pub fn with_workers(self, workers: usize) -> Self {
        Self { workers, ..self }
    }

    /// Sets the batches ahead per worker. Panics when 0.
    pub fn with_prefetch(self, prefetch: usize) -> Self {
        assert!(prefetch > 0, "workers must sample a batch ahead");
        Self { prefetch, ..self }
    }

    /// Batches per epoch.
    pub fn batches(&self) -> usize {
        let nodes = self.nodes.as_ref().map_or(self.graph.nodes(), |nodes| nodes.len());
        match self.drop_last {
            true => nodes / self.batch_size,
            false => nodes.div_ceil(self.batch_size),
        }
    }

    /// Starts workers; dropping the iterator stops them. Samples batch `i` with `seed + i`. A
    /// worker's panic resumes in `next`.
    pub fn epoch(&self, seed: u64) -> NeighborBatches {
        let mut order = match &self.nodes {
            Some(nodes) => nodes.to_vec(),
            None => (0..self.graph.nodes() as u32).collect(),
        };
        if self.shuffle {
            order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        }
        let plan = EpochPlan {
            graph: self.graph.clone(),
            fanouts: self.fanouts.clone(),
            order,
            batch_size: self.batch_size,
            seed,
        };
        NeighborBatches(Ahead::new(plan, self.batches(), self.workers, self.prefetch))
    }
}

struct EpochPlan {
    graph: Graph,
    fanouts: Arc<[usize]>,
    order: Vec<u32>,
    batch_size: usize,
    seed: u64,
}

impl Plan for EpochPlan {
    type Item = Batch;
    type Scratch = Vec<u32>;

    fn scratch(&self) -> Vec<u32> {
        vec![u32::MAX; self.graph.nodes()]
    }

    fn item(&self, at: usize, place: &mut Vec<u32>) -> Batch {
        let first = at * self.batch_size;
        let end = self.order.len().min(first.saturating_add(self.batch_size));
        let nodes = &self.order[first..end];
        sample(&self.graph, &self.fanouts, place, nodes, self.seed.wrapping_add(at as u64))
    }
}

/// Batches of [`NeighborLoader::epoch`].
pub struct NeighborBatches(Ahead<EpochPlan>);

impl Iterator for NeighborBatches {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for NeighborBatches {}

impl FusedIterator for NeighborBatches {}

impl std::fmt::Debug for NeighborBatches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NeighborBatches")
            .field("next", &self.0.position())
            .field("left", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use rstest::rstest;

    use super::*;
    use crate::sampling::{NeighborSampler, types::random_graph};

    fn parts(batches: impl IntoIterator<Item = Batch>) -> Vec<(Vec<u32>, usize, Vec<u32>)> {
        let part = |batch: Batch| {
            let edges = batch.graph.pattern().indices().to_vec();
            (batch.nodes, batch.seeds, edges)
        };
        batches.into_iter().map(part).collect()
    }

    #[rstest]
    fn batches_are_those_of_the_sampler_for_any_number_of_workers(
        #[from(random_graph)] graph: Graph,
        #[values(0, 1, 2, 3, 50)] workers: usize,
        #[values(1, 3)] prefetch: usize,
        #[values(false, true)] shuffle: bool,
    ) {
        let seed = u64::MAX - 1;
        let nodes: Vec<u32> = (0..100).rev().step_by(3).collect();
        let loader = NeighborLoader::new(&graph, vec![3, 2])
            .with_nodes(nodes.clone())
            .with_batch_size(4)
            .with_shuffle(shuffle)
            .with_workers(workers)
            .with_prefetch(prefetch);
        let mut order = nodes.clone();
        if shuffle {
            order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
            assert_ne!(order, nodes);
        }
        let mut sampler = NeighborSampler::new(&graph, vec![3, 2]);
        let sampled = (0..).zip(order.chunks(4));
        let sampled = sampled.map(|(at, seeds)| sampler.sample(seeds, seed.wrapping_add(at)));
        let sampled = parts(sampled);
        assert_eq!(parts(loader.epoch(seed)), sampled);
        assert_eq!(loader.batches(), sampled.len());
        assert_eq!(sampled.last().map(|(_, seeds, _)| *seeds), Some(2));
    }

    #[rstest]
    #[case(false, 7)]
    #[case(true, 6)]
    fn a_last_batch_of_fewer_nodes_may_be_dropped(
        #[from(random_graph)] graph: Graph,
        #[case] drop_last: bool,
        #[case] batches: usize,
    ) {
        let loader = NeighborLoader::new(&graph, vec![1]).with_batch_size(15);
        let loader = loader.with_drop_last(drop_last);
        let mut epoch = loader.epoch(0);
        assert_eq!((loader.batches(), epoch.len()), (batches, batches));
        let seeds: Vec<usize> = epoch.by_ref().map(|batch| batch.seeds).collect();
        assert_eq!(seeds.len(), batches);
        assert_eq!(seeds.contains(&10), !drop_last);
        assert!(epoch.next().is_none() && epoch.next().is_none());
    }

    #[rstest]
    fn no_seed_nodes_make_no_batches(#[from(random_graph)] graph: Graph) {
        assert!(NeighborLoader::new(&graph, vec![1]).with_nodes(vec![]).epoch(0).next().is_none());
        let one = NeighborLoader::new(&graph, vec![1]).with_batch_size(usize::MAX);
        assert_eq!(one.epoch(0).map(|batch| batch.seeds).collect::<Vec<_>>(), [100]);
    }

    #[rstest]
    fn workers_stop_when_the_iterator_is_dropped(
        #[from(random_graph)] graph: Graph,
        #[values(0, 1, 20)] read: usize,
    ) {
        let loader = NeighborLoader::new(&graph, vec![5, 5]).with_batch_size(1).with_workers(3);
        let fanouts = loader.fanouts.clone();
        let mut epoch = loader.epoch(3);
        assert_eq!(epoch.by_ref().take(read).count(), read);
        drop(epoch);
        assert_eq!(Arc::strong_count(&fanouts), 2);
    }

    #[rstest]
    fn a_panic_of_a_worker_resumes_in_the_reader(
        #[from(random_graph)] graph: Graph,
        #[values(0, 1, 2)] workers: usize,
    ) {
        let mut loader =
            NeighborLoader::new(&graph, vec![1]).with_batch_size(2).with_workers(workers);
        loader.nodes = Some(vec![0, 1, 2, 3, 4, 4, 5].into());
        let mut epoch = loader.epoch(0);
        assert_eq!(epoch.by_ref().take(2).count(), 2);
        let panic = catch_unwind(AssertUnwindSafe(|| epoch.next())).unwrap_err();
        assert!(panic.downcast_ref::<String>().unwrap().contains("node 4 is listed twice"));
    }

    #[rstest]
    #[case(vec![1, 1], "node 1 is listed twice")]
    #[case(vec![100], "node 100 is not below 100")]
    fn bad_seed_nodes_panic_at_once(
        #[from(random_graph)] graph: Graph,
        #[case] nodes: Vec<u32>,
        #[case] word: &str,
    ) {
        let made = || NeighborLoader::new(&graph, vec![1]).with_nodes(nodes);
        let panic = catch_unwind(AssertUnwindSafe(made)).unwrap_err();
        assert!(panic.downcast_ref::<String>().unwrap().contains(word));
    }
}
