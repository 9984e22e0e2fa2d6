//! Seeded power-law graphs for timing.

use std::{
    str::FromStr,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use rayon::prelude::*;
use sparsek::{io::memory, sparse::Pattern};

use super::{error::DatasetError, node_dataset::NodeDataset, noise::Noise};
use crate::{
    graph::{Graph, MAX_SIZE},
    random::mix,
};

/// Power-law graph: before a shuffle, node i of n has expected degree proportional to
/// `(i + n / shift)^-power`. Degrees span a factor `(shift + 1)^power`; degree d has frequency
/// `d^(-1 - 1 / power)`.
///
/// Edge ends are independent: edges may repeat, loops occur twice, nodes may be isolated.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerLawConfig {
    /// Name.
    pub name: String,
    /// Nodes.
    pub nodes: usize,
    /// Directed edges, rounded down to even.
    pub edges: usize,
    /// Degree decay, in (0, 1).
    pub power: f64,
    /// Hub strength; ≥ 1.
    pub shift: f64,
    /// Features, classes and seed.
    pub noise: Noise,
}

impl PowerLawConfig {
    /// Reddit: 232,965 nodes, 114.6 million edges.
    pub fn reddit_size() -> Self {
        Self::sized("reddit-size", [232_965, 114_600_000], 0.6, 2_000.0)
    }

    /// ogbn-products: 2,449,029 nodes, 123.7 million edges.
    pub fn products_size() -> Self {
        Self::sized("products-size", [2_449_029, 123_700_000], 0.75, 20_000.0)
    }

    /// Flickr: 89,250 nodes, 899,756 edges.
    pub fn flickr_size() -> Self {
        let noise = Noise { features: 500, classes: 7, ..Noise::default() };
        Self { noise, ..Self::sized("flickr-size", [89_250, 899_756], 0.6, 20_000.0) }
    }

    /// Yelp: 716,847 nodes, 13,954,818 edges, one class a node.
    pub fn yelp_size() -> Self {
        let noise = Noise { features: 300, classes: 100, ..Noise::default() };
        Self { noise, ..Self::sized("yelp-size", [716_847, 13_954_818], 0.6, 20_000.0) }
    }

    fn sized(name: &str, [nodes, edges]: [usize; 2], power: f64, shift: f64) -> Self {
        Self { name: name.to_string(), nodes, edges, power, shift, noise: Noise::default() }
    }

    /// Divides nodes and edges; panics for 0.
    pub fn divided(self, parts: usize) -> Self {
        Self {
            name: format!("{}/{parts}", self.name),
            nodes: (self.nodes / parts).max(2),
            edges: self.edges / parts / 2 * 2,
            ..self
        }
    }

    /// Sets the seed.
    pub fn with_seed(self, seed: u64) -> Self {
        let noise = Noise { seed, ..self.noise };
        Self { noise, ..self }
    }

    fn check(&self) -> Result<(), DatasetError> {
        let sizes = (2..=MAX_SIZE).contains(&self.nodes) && self.edges <= MAX_SIZE;
        let shape =
            self.power > 0.0 && self.power < 1.0 && (1.0..f64::INFINITY).contains(&self.shift);
        match sizes && shape {
            true => Ok(()),
            false => Err(DatasetError::Invalid(format!(
                "{}: {} nodes, {} edges, power {}, shift {}",
                self.name, self.nodes, self.edges, self.power, self.shift
            ))),
        }
    }

    fn bytes(&self) -> u128 {
        memory::product(&[self.nodes, 32]).saturating_add(memory::product(&[self.edges, 8]))
    }

    /// Generates a symmetric pattern with ascending columns, independent of threads. Costs
    /// `O(nodes + edges)` draws, row sorts, 8 bytes per edge.
    pub fn pattern(&self) -> Result<Pattern, DatasetError> {
        self.check()?;
        memory::check(&self.name, self.bytes())?;
        let (nodes, seed) = (self.nodes, self.noise.seed);
        let mut order: Vec<u32> = (0..nodes as u32).collect();
        for i in (1..nodes).rev() {
            order.swap(i, (mix(seed ^ (i as u64) << 32) % (i as u64 + 1)) as usize);
        }
        let ends = |edge: usize| {
            let draw = |which: u64| {
                let bits = mix(seed.wrapping_add(1 + 2 * edge as u64 + which));
                order[self.node((bits >> 11) as f64 / (1u64 << 53) as f64)] as usize
            };
            [draw(0), draw(1)]
        };
        let zeros = |count: usize| -> Vec<AtomicU32> {
            let zero = |_| AtomicU32::new(0);
            (0..count).into_par_iter().map(zero).collect()
        };
        let counts = zeros(nodes);
        let pairs = self.edges / 2;
        (0..pairs).into_par_iter().for_each(|edge| {
            for end in ends(edge) {
                counts[end].fetch_add(1, Relaxed);
            }
        });
        let mut indptr = vec![0];
        let mut total = 0;
        for count in &counts {
            let degree = count.swap(total, Relaxed);
            total += degree;
            indptr.push(total);
        }
        let indices = zeros(total as usize);
        (0..pairs).into_par_iter().for_each(|edge| {
            let [a, b] = ends(edge);
            for (from, to) in [(a, b), (b, a)] {
                let place = counts[from].fetch_add(1, Relaxed) as usize;
                indices[place].store(to as u32, Relaxed);
            }
        });
        // Sorted rows do not depend on scheduling.
        let mut indices: Vec<u32> = indices.into_iter().map(AtomicU32::into_inner).collect();
        let mut rows = Vec::with_capacity(nodes);
        let mut rest = indices.as_mut_slice();
        for row in indptr.windows(2) {
            let (own, others) = rest.split_at_mut((row[1] - row[0]) as usize);
            rows.push(own);
            rest = others;
        }
        rows.into_par_iter().for_each(|row| row.sort_unstable());
        let pattern = Pattern::new(nodes, nodes, indptr, indices);
        Ok(pattern.expect("rows of nodes are a pattern"))
    }

    fn node(&self, share: f64) -> usize {
        let nodes = self.nodes as f64;
        let first = nodes / self.shift;
        let exponent = 1.0 - self.power;
        let [low, high] = [first.powf(exponent), (nodes + first).powf(exponent)];
        let at = (low + share * (high - low)).powf(1.0 / exponent) - first;
        (at as usize).min(self.nodes - 1)
    }
}

impl FromStr for PowerLawConfig {
    type Err = DatasetError;

    /// Parses sizes such as `reddit-size/100`.
    fn from_str(text: &str) -> Result<Self, DatasetError> {
        let (name, parts) = text
            .split_once('/')
            .map_or((text, Some(1)), |(name, parts)| (name, parts.parse().ok()));
        let sizes =
            [Self::flickr_size(), Self::yelp_size(), Self::reddit_size(), Self::products_size()];
        let found = sizes.into_iter().find(|size| size.name == name);
        match (found, parts) {
            (Some(size), Some(1)) => Ok(size),
            (Some(size), Some(parts)) if parts > 0 => Ok(size.divided(parts)),
            _ => Err(DatasetError::Invalid(format!(
                "{text}: expected flickr-size, yelp-size, reddit-size, products-size, or a part \
                 such as reddit-size/100"
            ))),
        }
    }
}

/// Generates a graph with noise, reproducibly.
///
/// ```
/// use sparsek_gnn::datasets::power_law::{PowerLawConfig, power_law};
///
/// let data = power_law(&PowerLawConfig::reddit_size().divided(1000)).unwrap();
/// assert_eq!((data.nodes(), data.graph().edges()), (232, 114_600));
/// assert!(data.graph().is_symmetric());
/// ```
pub fn power_law(config: &PowerLawConfig) -> Result<NodeDataset, DatasetError> {
    let bytes = config.noise.bytes(config.nodes);
    memory::check(&config.name, bytes.saturating_add(config.bytes()))?;
    let graph = Graph::try_from(config.pattern()?);
    config.noise.dataset(&config.name, graph.expect("the pattern is square"))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use rstest::rstest;

    use super::*;

    fn small() -> PowerLawConfig {
        PowerLawConfig { nodes: 5000, edges: 100_000, ..PowerLawConfig::products_size() }
    }

    fn digest(numbers: &[u32]) -> u64 {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }

    #[rstest]
    fn degrees_are_those_expected(
        #[values(0..10, 10..100, 100..1000, 1000..5000)] ranks: Range<usize>,
    ) {
        let config = small();
        let pattern = config.pattern().unwrap();
        assert_eq!(pattern.nnz(), 100_000);
        let mut degrees: Vec<u32> =
            pattern.indptr().windows(2).map(|ends| ends[1] - ends[0]).collect();
        degrees.sort_unstable_by_key(|&degree| std::cmp::Reverse(degree));
        let weight = |i: f64| (i + 5000.0 / config.shift).powf(-config.power);
        let sum: f64 = (0..5000).map(|i| weight(f64::from(i) + 0.5)).sum();
        let found: u32 = degrees[ranks.clone()].iter().sum();
        let part: f64 = ranks.map(|i| weight(i as f64 + 0.5)).sum();
        let expected = 100_000.0 * part / sum;
        let off = (f64::from(found) / expected - 1.0).abs();
        assert!(off < 0.1, "{found} edges, {expected} expected");
    }

    #[test]
    fn rows_are_symmetric_sorted_and_may_repeat() {
        let pattern = small().pattern().unwrap();
        assert_eq!(pattern.transpose().0, pattern);
        let rows = || (0..5000).map(|row| pattern.row(row));
        assert!(rows().all(<[u32]>::is_sorted));
        assert!(rows().any(|row| row.windows(2).any(|pair| pair[0] == pair[1])));
        let loops =
            (0..5000).map(|row| pattern.row(row).iter().filter(|&&to| to as usize == row).count());
        assert!(loops.clone().sum::<usize>() > 0 && loops.clone().all(|own| own.is_multiple_of(2)));
    }

    #[test]
    fn seeds_decide_and_graphs_stay_what_they_were() {
        let pattern = small().pattern().unwrap();
        assert_eq!(small().pattern().unwrap(), pattern);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(one.install(|| small().pattern().unwrap()), pattern);
        assert_ne!(small().with_seed(1).pattern().unwrap(), pattern);
        // Benchmark records refer to these.
        let config: PowerLawConfig = "products-size/1000".parse().unwrap();
        let pattern = config.pattern().unwrap();
        let found = [pattern.indptr(), pattern.indices()].map(digest);
        assert_eq!(found, [0x6d7c_9ff2_5998_6580, 0xfec1_1f92_f343_9a60]);
    }

    #[test]
    fn a_dataset_by_name() {
        let data = power_law(&"reddit-size/1000".parse().unwrap()).unwrap();
        assert_eq!(data.name(), "reddit-size/1000");
        assert_eq!([data.feature_width(), data.classes()], [100, 47]);
    }

    #[rstest]
    fn other_names_are_refused(
        #[values("reddit", "reddit-size/0", "reddit-size/x", "products-size/")] name: &str,
    ) {
        assert!(name.parse::<PowerLawConfig>().is_err());
    }

    #[rstest]
    #[case::nodes(|config: &mut PowerLawConfig| config.nodes = 1)]
    #[case::edges(|config: &mut PowerLawConfig| config.edges = usize::MAX)]
    #[case::power(|config: &mut PowerLawConfig| config.power = 1.0)]
    #[case::power(|config: &mut PowerLawConfig| config.power = f64::NAN)]
    #[case::shift(|config: &mut PowerLawConfig| config.shift = 0.5)]
    #[case::shift(|config: &mut PowerLawConfig| config.shift = f64::INFINITY)]
    fn bad_parameters_are_refused(#[case] change: fn(&mut PowerLawConfig)) {
        let mut config = small();
        change(&mut config);
        assert!(config.pattern().is_err());
    }

    #[test]
    fn what_does_not_fit_in_memory_is_refused_before_it_is_drawn() {
        let mut config = small();
        config.noise.features = 1 << 50;
        let error = power_law(&config).unwrap_err();
        assert!(matches!(error, DatasetError::TooLarge(_)), "{error}");
        assert!(error.to_string().contains("products-size"), "{error}");
    }
}
