//! Seeded graphs with a few nodes of many edges, as large as those that speed is measured on.
use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};
use rand_distr::{Distribution, StandardNormal};

use super::{DatasetError, Labels, NodeDataset, NodeDatasetParts};
use crate::{Graph, graph::MAX_SIZE};

/// How unequal nodes are: the r-th gets edges in proportion to r^-0.4, so that degrees fall off as d^-3.5.
const EXPONENT: f64 = 0.4;

/// Parameters of a power-law graph.
///
/// Both ends of each edge are drawn independently, nodes in a random order; loops and repetitions are dropped, and every edge goes in
/// both directions. Features are normal noise and classes are drawn evenly: there is speed to be measured, nothing to be learned.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerLawConfig {
    /// What to call it.
    pub name: String,
    /// Nodes.
    pub nodes: usize,
    /// Directed edges, about: repetitions are missing.
    pub edges: usize,
    /// Features per node.
    pub features: usize,
    /// Classes.
    pub classes: usize,
    /// The only source of randomness. Default 0.
    pub seed: u64,
}

impl PowerLawConfig {
    /// As many nodes and edges as Reddit's: 232,965 and 114.6 million, with 100 features and 47 classes.
    pub fn reddit_size() -> Self {
        Self::sized("reddit-size", 232_965, 114_615_892)
    }

    /// As many nodes and edges as those of ogbn-products: 2,449,029 and 123.7 million, with 100 features and 47 classes.
    pub fn products_size() -> Self {
        Self::sized("products-size", 2_449_029, 123_718_280)
    }

    fn sized(name: &str, nodes: usize, edges: usize) -> Self {
        Self {
            name: name.to_string(),
            nodes,
            edges,
            features: 100,
            classes: 47,
            seed: 0,
        }
    }

    /// Sets the seed.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

/// Draws a power-law graph; the same configuration gives the same dataset everywhere.
///
/// # Errors
/// [`DatasetError::Invalid`] when there are fewer than 5 nodes, no features or classes, or too many edges.
///
/// Cost: O(nodes · features + edges), a sort of every row, and 24 bytes of memory for each edge meanwhile.
///
/// ```
/// use sparsek_gnn::datasets::power_law::{PowerLawConfig, power_law};
///
/// let config = PowerLawConfig { nodes: 2000, edges: 40_000, ..PowerLawConfig::reddit_size() };
/// let data = power_law(&config).unwrap();
/// let most = data.graph().in_degrees().into_iter().max().unwrap();
/// assert!(data.graph().is_symmetric() && most > 200);
/// ```
pub fn power_law(config: &PowerLawConfig) -> Result<NodeDataset, DatasetError> {
    let PowerLawConfig {
        nodes,
        edges,
        features: width,
        classes,
        ..
    } = *config;
    if !(5..=MAX_SIZE).contains(&nodes) || edges > MAX_SIZE || width == 0 || classes == 0 {
        let reason = format!("{nodes} nodes, {edges} edges, {width} features, {classes} classes");
        return Err(DatasetError::Invalid(format!("power law: {reason}")));
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(config.seed);
    let mut order: Vec<u32> = (0..nodes as u32).collect();
    order.shuffle(&mut rng);
    let mut end = || {
        let rank = rng.random::<f64>().powf(1.0 / (1.0 - EXPONENT)) * nodes as f64;
        order[(rank as usize).min(nodes - 1)]
    };
    let pairs = (0..edges / 2).map(|_| (end(), end()));
    let graph = Graph::from_edges(nodes, pairs.filter(|(a, b)| a != b))
        .map_err(|error| DatasetError::Invalid(error.to_string()))?
        .symmetrised();
    let features = (0..nodes * width).map(|_| StandardNormal.sample(&mut rng));
    let features: Vec<f32> = features.collect();
    let labels = (0..nodes).map(|_| rng.random_range(0..classes as u32));
    let labels = Labels::Classes(labels.collect());
    order.shuffle(&mut rng);
    let test = order.split_off(nodes * 4 / 5);
    let val = order.split_off(nodes * 3 / 5);
    NodeDataset::new(NodeDatasetParts {
        name: config.name.clone(),
        graph,
        features,
        feature_width: width,
        labels,
        classes,
        train: order,
        val,
        test,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_fall_off_and_seeds_decide() {
        let config = PowerLawConfig {
            nodes: 5000,
            edges: 100_000,
            features: 3,
            classes: 4,
            ..PowerLawConfig::products_size()
        };
        let data = power_law(&config).unwrap();
        let graph = data.graph();
        assert!(graph.is_symmetric());
        assert!(
            (85_000..=100_000).contains(&graph.edges()),
            "{}",
            graph.edges()
        );
        let mut degrees = graph.in_degrees();
        degrees.sort_unstable();
        // The first of r^-0.4 has 5000^0.4 · 0.6 = 18 times the mean.
        assert!((200..600).contains(&degrees[4999]) && degrees[2500] < 20);
        assert_eq!(
            (data.train().len(), data.val().len(), data.test().len()),
            (3000, 1000, 1000)
        );
        let again = power_law(&config).unwrap();
        assert_eq!(again.graph().pattern(), graph.pattern());
        assert_eq!(again.features(), data.features());
        let other = power_law(&config.with_seed(1)).unwrap();
        assert_ne!(other.graph().pattern(), graph.pattern());
    }

    #[test]
    fn bad_parameters_are_refused() {
        let none = |config: PowerLawConfig| power_law(&config).is_err();
        assert!(none(PowerLawConfig {
            nodes: 4,
            ..PowerLawConfig::reddit_size()
        }));
        assert!(none(PowerLawConfig {
            edges: usize::MAX,
            ..PowerLawConfig::reddit_size()
        }));
    }
}
