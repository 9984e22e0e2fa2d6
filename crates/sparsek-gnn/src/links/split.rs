use burn::config::Config;
use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use super::{error::LinkError, negative::negative_sampling};
use crate::graph::Graph;

/// Configures [`random_link_split`]; PyG's defaults.
#[derive(Config, Debug, PartialEq)]
pub struct LinkSplitConfig {
    /// Validation share, rounded down.
    #[config(default = 0.1)]
    pub val: f64,
    /// Test share, rounded down.
    #[config(default = 0.2)]
    pub test: f64,
    /// Keeps both directions together; needs symmetry.
    #[config(default = false)]
    pub undirected: bool,
    /// Negatives per positive, rounded down.
    #[config(default = 1.0)]
    pub negatives: f64,
    /// Training negatives; else sample them each epoch.
    #[config(default = true)]
    pub train_negatives: bool,
    /// Seed.
    #[config(default = 0)]
    pub seed: u64,
}

/// Pairs, and edges visible when scoring.
#[derive(Clone, Debug)]
pub struct LinkSet {
    /// All nodes, visible edges.
    pub graph: Graph,
    /// (source, target) edges; undirected: lower node first.
    pub positives: Vec<(u32, u32)>,
    /// Non-edges of the whole graph.
    pub negatives: Vec<(u32, u32)>,
}

/// Result of [`random_link_split`].
#[derive(Clone, Debug)]
pub struct LinkSplit {
    /// Sees its positives.
    pub train: LinkSet,
    /// Sees the training positives.
    pub val: LinkSet,
    /// Sees the other sets' positives.
    pub test: LinkSet,
}

/// Splits edges at random, by seed: PyG's `RandomLinkSplit`.
///
/// Sets share neither positives nor negatives ([`negative_sampling`]). Repeated edges count once.
/// Undirected graphs keep both directions.
///
/// O(nodes + edges log edges). Errors for bad ratios, no training edges, asymmetric undirected
/// graphs, or too few non-edges.
///
/// ```
/// use sparsek_gnn::{Graph, links::{LinkSplitConfig, random_link_split}};
///
/// let ring = Graph::from_edges(20, (0..20).map(|i| (i, (i + 1) % 20))).unwrap().symmetrized();
/// let config = LinkSplitConfig::new().with_undirected(true).with_seed(3);
/// let split = random_link_split(&ring, &config).unwrap();
/// let sizes = [&split.train, &split.val, &split.test].map(|set| set.positives.len());
/// assert_eq!(sizes, [14, 2, 4]);
/// assert_eq!((split.val.graph.edges(), split.test.graph.edges()), (28, 32));
/// assert!(split.test.graph.is_symmetric());
/// ```
pub fn random_link_split(graph: &Graph, config: &LinkSplitConfig) -> Result<LinkSplit, LinkError> {
    check(config)?;
    let undirected = config.undirected;
    if undirected && !graph.is_symmetric() {
        return Err(LinkError::NotSymmetric);
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(config.seed);
    let mut edges = distinct(graph, undirected);
    edges.shuffle(&mut rng);
    let share = |ratio: f64| (ratio * edges.len() as f64) as usize;
    let (val, test) = (share(config.val), share(config.test));
    let train = match edges.len().checked_sub(val + test) {
        None | Some(0) => return Err(LinkError::NoTrainingEdges { edges: edges.len() }),
        Some(train) => train,
    };
    let counts = [if config.train_negatives { train } else { 0 }, val, test];
    let counts = counts.map(|positives| (config.negatives * positives as f64) as usize);
    let count = counts.iter().fold(0usize, |sum, &count| sum.saturating_add(count));
    let mut negatives = negative_sampling(graph, count, undirected, rng.random())?;

    let joined = |edges: &[(u32, u32)]| {
        let reverse = edges.iter().filter(|(s, t)| undirected && s != t).map(|&(s, t)| (t, s));
        let all = edges.iter().copied().chain(reverse);
        Graph::from_edges(graph.nodes(), all).expect("edges of a graph")
    };
    let seen = joined(&edges[..train]);
    let with_val = joined(&edges[..train + val]);
    let mut set = |graph: Graph, positives: &[(u32, u32)], count: usize| LinkSet {
        graph,
        positives: positives.to_vec(),
        negatives: negatives.split_off(negatives.len() - count),
    };
    Ok(LinkSplit {
        train: set(seen.clone(), &edges[..train], counts[0]),
        val: set(seen, &edges[train..train + val], counts[1]),
        test: set(with_val, &edges[train + val..], counts[2]),
    })
}

fn check(config: &LinkSplitConfig) -> Result<(), LinkError> {
    for (name, ratio) in [("validation share", config.val), ("test share", config.test)] {
        if !(0.0..1.0).contains(&ratio) {
            return Err(LinkError::Ratio { name, ratio, expected: "in [0, 1)" });
        }
    }
    let (name, ratio) = ("negative pairs per positive", config.negatives);
    match ratio >= 0.0 {
        true => Ok(()),
        false => Err(LinkError::Ratio { name, ratio, expected: "at least 0" }),
    }
}

fn distinct(graph: &Graph, undirected: bool) -> Vec<(u32, u32)> {
    let pairs = graph.pairs().map(|(target, source)| (source as u32, target as u32));
    let mut edges: Vec<_> = pairs.filter(|(s, t)| !undirected || s <= t).collect();
    edges.sort_unstable_by_key(|&(source, target)| (target, source));
    edges.dedup();
    edges
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rstest::rstest;

    use super::*;

    fn graph(undirected: bool) -> Graph {
        let mut edges: Vec<(u32, u32)> = (0..90).map(|i| (i * 7 % 40, i * i % 37)).collect();
        edges.extend((0..20).map(|i| (i, 3)));
        edges.extend([(5, 5), (5, 6), (5, 6)]);
        let graph = Graph::from_edges(40, edges).unwrap();
        if undirected { graph.symmetrized() } else { graph }
    }

    fn edges(graph: &Graph) -> HashSet<(u32, u32)> {
        graph.pairs().map(|(target, source)| (source as u32, target as u32)).collect()
    }

    #[rstest]
    fn sets_are_disjoint_and_complete(#[values(false, true)] undirected: bool) {
        let graph = graph(undirected);
        let config = LinkSplitConfig::new().with_undirected(undirected).with_negatives(1.5);
        let split = random_link_split(&graph, &config.with_seed(5)).unwrap();
        let sets = [&split.train, &split.val, &split.test];
        let all: Vec<_> = sets.iter().flat_map(|set| set.positives.clone()).collect();
        let count = distinct(&graph, undirected).len();
        let [train, val, test] = sets.map(|set| set.positives.len());
        assert_eq!((val, test, train), (count / 10, count / 5, count - count / 10 - count / 5));

        let both = |pairs: &[(u32, u32)]| -> HashSet<(u32, u32)> {
            let reverse = pairs.iter().filter(|_| undirected).map(|&(s, t)| (t, s));
            pairs.iter().copied().chain(reverse).collect()
        };
        assert_eq!((both(&all), all.iter().collect::<HashSet<_>>().len()), (edges(&graph), count));
        assert_eq!(edges(&split.train.graph), both(&split.train.positives));
        assert_eq!(split.val.graph.pattern(), split.train.graph.pattern());
        assert_eq!(edges(&split.test.graph), both(&all[..train + val]));
        assert_eq!(split.test.graph.edges(), edges(&split.test.graph).len());
        assert!(!undirected || split.test.graph.is_symmetric());

        let counts = sets.map(|set| set.negatives.len());
        assert_eq!(counts, [train, val, test].map(|positives| positives * 3 / 2));
        let negatives: Vec<_> = sets.iter().flat_map(|set| set.negatives.clone()).collect();
        assert_eq!(negatives.iter().collect::<HashSet<_>>().len(), negatives.len());
        assert!(both(&negatives).is_disjoint(&edges(&graph)));
        assert!(negatives.iter().all(|&(s, t)| s != t && (!undirected || s < t)));
    }

    #[test]
    fn the_seed_decides() {
        let of = |seed| {
            let split = random_link_split(&graph(false), &LinkSplitConfig::new().with_seed(seed));
            let LinkSplit { val, test, .. } = split.unwrap();
            (val.positives, val.negatives, test.positives)
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1).0, of(2).0);
        assert_ne!(of(1).1, of(2).1);
    }

    #[test]
    fn training_sets_may_go_without_negatives() {
        let config = LinkSplitConfig::new().with_train_negatives(false);
        let split = random_link_split(&graph(false), &config).unwrap();
        assert!(split.train.negatives.is_empty() && !split.val.negatives.is_empty());
    }

    #[rstest]
    #[case::val(LinkSplitConfig::new().with_val(-0.1), "validation share -0.1 is not in [0, 1)")]
    #[case::test(LinkSplitConfig::new().with_test(f64::NAN), "test share NaN is not in [0, 1)")]
    #[case::negatives(
        LinkSplitConfig::new().with_negatives(-1.0),
        "negative pairs per positive -1 is not at least 0"
    )]
    #[case::all(
        LinkSplitConfig::new().with_val(0.5).with_test(0.5),
        "none of 4 edges is left for training"
    )]
    #[case::undirected(
        LinkSplitConfig::new().with_undirected(true),
        "an undirected split needs a symmetric graph"
    )]
    #[case::dense(
        LinkSplitConfig::new().with_negatives(9.0),
        "36 negative pairs, but only 16 pairs have no edge"
    )]
    fn bad_requests_are_refused(#[case] config: LinkSplitConfig, #[case] expected: &str) {
        let path = Graph::from_edges(5, (0..4).map(|i| (i, i + 1))).unwrap();
        let error = random_link_split(&path, &config).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
