//! Seeded stochastic block models.

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};
use rand_distr::{Distribution, StandardNormal};
use sparsek::io::memory;

use super::{
    error::DatasetError,
    labels::Labels,
    node_dataset::{NodeDataset, NodeDatasetParts},
};
use crate::graph::{Graph, MAX_SIZE};

/// Stochastic block model; block sizes differ by ≤ 1.
///
/// Each of about `nodes · degree / 2` edges joins a node to its own block with probability
/// `homophily`, else to another. Drops loops and repetitions. Features are standard normal noise
/// plus a random direction of length `signal` per block.
#[derive(Clone, Debug, PartialEq)]
pub struct SbmConfig {
    /// Nodes.
    pub nodes: usize,
    /// Classes. Default 8.
    pub blocks: usize,
    /// Mean degree. Default 16.
    pub degree: f64,
    /// Share of edges within blocks. Default 0.6.
    pub homophily: f64,
    /// Features per node. Default 32.
    pub features: usize,
    /// Length of block directions. Default 1.5.
    pub signal: f64,
    /// Training share; half the rest validates. Default 0.5.
    pub train: f64,
    /// Default 0.
    pub seed: u64,
}

impl SbmConfig {
    /// Defaults for `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes,
            blocks: 8,
            degree: 16.0,
            homophily: 0.6,
            features: 32,
            signal: 1.5,
            train: 0.5,
            seed: 0,
        }
    }

    /// Sets the blocks.
    pub fn with_blocks(self, blocks: usize) -> Self {
        Self { blocks, ..self }
    }

    /// Sets the degree.
    pub fn with_degree(self, degree: f64) -> Self {
        Self { degree, ..self }
    }

    /// Sets the seed.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    fn check(&self) -> Result<(), DatasetError> {
        let invalid = |reason: String| Err(DatasetError::Invalid(format!("block model: {reason}")));
        let edges = self.nodes as f64 * self.degree;
        if self.blocks < 2 || self.nodes / 4 < self.blocks {
            return invalid(format!(
                "{} nodes in {} blocks; at least 2 blocks of 4 are needed",
                self.nodes, self.blocks
            ));
        }
        if self.nodes > MAX_SIZE || !(edges >= 0.0 && edges <= MAX_SIZE as f64) {
            return invalid(format!(
                "{} nodes of degree {}; at most {MAX_SIZE} edges",
                self.nodes, self.degree
            ));
        }
        let inside = self.train > 0.0 && self.train < 1.0;
        if !inside || !(0.0..=1.0).contains(&self.homophily) {
            return invalid(format!(
                "homophily {} or training part {} is not a probability",
                self.homophily, self.train
            ));
        }
        if self.features == 0 || !self.signal.is_finite() {
            return invalid(format!("{} features of signal {}", self.features, self.signal));
        }
        self.check_memory()
    }

    fn draws(&self) -> usize {
        (self.nodes as f64 * self.degree / 2.0).round() as usize
    }

    fn check_memory(&self) -> Result<(), DatasetError> {
        let features = memory::product(&[self.features, size_of::<f32>()]);
        let bytes = (features.saturating_add(48)).saturating_mul(self.nodes as u128);
        let blocks = (features.saturating_add(24)).saturating_mul(self.blocks as u128);
        let edges = memory::product(&[self.draws(), 32]);
        let asked = format_args!(
            "a block model of {} nodes of degree {} with {} features",
            self.nodes, self.degree, self.features
        );
        let bytes = bytes.saturating_add(blocks).saturating_add(edges);
        Ok(memory::check(asked, bytes)?)
    }
}

/// Samples a block model, reproducibly. Costs `O(nodes · features + edges)` and row sorts.
///
/// ```
/// use sparsek_gnn::datasets::sbm::{SbmConfig, block_model};
///
/// let data = block_model(&SbmConfig::new(1000).with_seed(7)).unwrap();
/// assert_eq!((data.nodes(), data.classes(), data.feature_width()), (1000, 8, 32));
/// assert!(data.graph().is_symmetric());
/// ```
pub fn block_model(config: &SbmConfig) -> Result<NodeDataset, DatasetError> {
    config.check()?;
    let SbmConfig { nodes, blocks, features: width, .. } = *config;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(config.seed);

    let mut labels: Vec<u32> = (0..nodes).map(|node| (node % blocks) as u32).collect();
    labels.shuffle(&mut rng);
    let mut block_nodes = vec![Vec::new(); blocks];
    for (node, &label) in labels.iter().enumerate() {
        block_nodes[label as usize].push(node as u32);
    }

    let undirected = config.draws();
    let mut edges = Vec::with_capacity(undirected);
    for _ in 0..undirected {
        let a = rng.random_range(0..nodes);
        let own = labels[a] as usize;
        let block = match rng.random_bool(config.homophily) {
            true => own,
            false => (own + rng.random_range(1..blocks)) % blocks,
        };
        let b = block_nodes[block][rng.random_range(0..block_nodes[block].len())];
        if b as usize != a {
            edges.push((a as u32, b));
        }
    }
    let graph = Graph::from_edges(nodes, edges)
        .map_err(|error| DatasetError::Invalid(error.to_string()))?;

    let normal = |rng: &mut Xoshiro256PlusPlus| -> f32 { StandardNormal.sample(rng) };
    let mut centers = Vec::with_capacity(blocks * width);
    for _ in 0..blocks {
        let direction: Vec<f32> = (0..width).map(|_| normal(&mut rng)).collect();
        let length = direction.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        centers.extend(direction.iter().map(|x| x / length * config.signal as f32));
    }
    let mut features = Vec::with_capacity(nodes * width);
    for &label in &labels {
        let center = &centers[label as usize * width..][..width];
        features.extend(center.iter().map(|x| x + normal(&mut rng)));
    }

    let mut order: Vec<u32> = (0..nodes as u32).collect();
    order.shuffle(&mut rng);
    let train = ((nodes as f64 * config.train) as usize).clamp(1, nodes - 2);
    let val = ((nodes - train) / 2).max(1);
    NodeDataset::new(NodeDatasetParts {
        name: format!("sbm-{nodes}"),
        graph: graph.symmetrized(),
        features,
        feature_width: width,
        labels: Labels::Classes(labels),
        classes: blocks,
        test: order.split_off(train + val),
        val: order.split_off(train),
        train: order,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_model_is_what_it_says() {
        let config = SbmConfig::new(4000).with_seed(3);
        let data = block_model(&config).unwrap();
        let again = block_model(&config).unwrap();
        assert_eq!(data.features(), again.features());
        assert_eq!(data.graph().pattern(), again.graph().pattern());
        assert_ne!(data.labels(), block_model(&config.with_seed(4)).unwrap().labels());

        let degree = data.graph().edges() as f64 / 4000.0;
        assert!((15.0..=16.0).contains(&degree), "{degree}");
        let labels = data.labels().classes().unwrap();
        let within = |i: usize| {
            data.graph().neighbors(i).iter().filter(|&&j| labels[i] == labels[j as usize]).count()
        };
        let homophily = (0..4000).map(within).sum::<usize>() as f64 / data.graph().edges() as f64;
        assert!((0.55..0.65).contains(&homophily), "{homophily}");
        assert_eq!((data.train().len(), data.val().len(), data.test().len()), (2000, 1000, 1000));
    }

    #[rstest]
    #[case::nodes(SbmConfig::new(3))]
    #[case::degree(SbmConfig::new(1000).with_degree(f64::NAN))]
    #[case::degree(SbmConfig::new(1000).with_degree(1e12))]
    #[case::blocks(SbmConfig::new(1000).with_blocks(0))]
    #[case::blocks(SbmConfig::new(1000).with_blocks(usize::MAX))]
    #[case::nodes(SbmConfig::new(usize::MAX).with_degree(0.0))]
    fn bad_parameters_are_refused(#[case] config: SbmConfig) {
        assert!(block_model(&config).is_err());
    }

    #[rstest]
    #[case(usize::MAX, 16.0)]
    #[case(1 << 40, 0.0)]
    fn what_does_not_fit_in_memory_is_refused_before_it_is_drawn(
        #[case] features: usize,
        #[case] degree: f64,
    ) {
        let config = SbmConfig { features, ..SbmConfig::new(1000).with_degree(degree) };
        let error = block_model(&config).unwrap_err();
        assert!(matches!(error, DatasetError::TooLarge(_)), "{error}");
        let message = error.to_string();
        for word in ["block model of 1000 nodes", "at most", "SPARSEK_MAX_MEMORY"] {
            assert!(message.contains(word), "{message}");
        }
    }
}
