//! A convolution per relation.
use std::collections::BTreeMap;

use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor},
};

use super::{
    aggregator::Aggregator,
    gcn::{GcnConv, GcnConvConfig},
    gin::{GinConv, GinConvConfig},
    graph_conv::{GraphConv, GraphConvConfig},
    jumping_knowledge::JumpingKnowledge,
    sage::{SageConv, SageConvConfig},
};
use crate::graph::{HeteroGraph, Relation};

/// Rows of each node type: [nodes of the type, width of the type].
pub type NodeFeatures = BTreeMap<String, Tensor<2>>;

/// Convolution of a relation.
#[derive(Config, Debug, PartialEq)]
pub enum RelationConvConfig {
    /// [`SageConv`].
    Sage(SageConvConfig),
    /// [`GraphConv`].
    Graph(GraphConvConfig),
    /// [`GinConv`].
    Gin(GinConvConfig),
    /// [`GcnConv`], within a node type only.
    Gcn(GcnConvConfig),
}

impl From<SageConvConfig> for RelationConvConfig {
    fn from(config: SageConvConfig) -> Self {
        Self::Sage(config)
    }
}

impl From<GraphConvConfig> for RelationConvConfig {
    fn from(config: GraphConvConfig) -> Self {
        Self::Graph(config)
    }
}

impl From<GinConvConfig> for RelationConvConfig {
    fn from(config: GinConvConfig) -> Self {
        Self::Gin(config)
    }
}

impl From<GcnConvConfig> for RelationConvConfig {
    fn from(config: GcnConvConfig) -> Self {
        Self::Gcn(config)
    }
}

impl RelationConvConfig {
    fn init(&self, relation: &Relation, device: &Device) -> RelationConv {
        match self {
            Self::Sage(config) => RelationConv::Sage(config.init(device)),
            Self::Graph(config) => RelationConv::Graph(config.init(device)),
            Self::Gin(config) => RelationConv::Gin(config.init(device)),
            Self::Gcn(config) => {
                assert!(relation.is_within(), "GcnConv needs one node type, not {relation}");
                RelationConv::Gcn(config.init(device))
            }
        }
    }
}

/// Configuration of [`HeteroConv`], with PyG's default.
#[derive(Config, Debug, PartialEq)]
pub struct HeteroConvConfig {
    /// Convolution of each relation, as [`with_relation`](Self::with_relation) adds them.
    #[config(default = "Vec::new()")]
    pub convolutions: Vec<(Relation, RelationConvConfig)>,
    /// Combination of the results for a node type.
    #[config(default = "Aggregator::Sum")]
    pub aggregator: Aggregator,
}

impl HeteroConvConfig {
    /// Adds a relation.
    pub fn with_relation(
        mut self,
        relation: impl Into<Relation>,
        convolution: impl Into<RelationConvConfig>,
    ) -> Self {
        self.convolutions.push((relation.into(), convolution.into()));
        self
    }

    /// Initializes the convolutions; panics for a relation listed twice, or a [`GcnConv`] between
    /// different node types.
    pub fn init(&self, device: &Device) -> HeteroConv {
        let mut relations = Vec::new();
        let mut convolutions = Vec::new();
        for (relation, config) in &self.convolutions {
            assert!(!relations.contains(relation), "HeteroConv: {relation} is listed twice");
            relations.push(relation.clone());
            convolutions.push(config.init(relation, device));
        }
        HeteroConv { convolutions, relations, aggregator: self.aggregator }
    }
}

/// PyG's `HeteroConv`: `y_t[i] = agg_{r = (s, ·, t)} f_r(x_s, x_t)[i]`, where `f_r` is the
/// convolution of relation r, from nodes of type s to nodes of type t.
///
/// Combines the results of relations into the same type by sum, mean, maximum or minimum. Of equal
/// results, the first gets the gradient. Skips relations that the graph lacks; types without a
/// convolution into them are absent from the result. Deterministic, with gradients. Schlichtkrull
/// et al., ESWC 2018.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{
///     graph::HeteroGraph,
///     nn::{HeteroConvConfig, NodeFeatures, SageConvConfig},
/// };
///
/// let device = Device::flex();
/// let graph = HeteroGraph::new([("author", 2), ("paper", 3)])
///     .and_then(|graph| graph.with_edges(("author", "writes", "paper"), [(0, 0), (1, 2)]))
///     .and_then(|graph| graph.with_edges(("paper", "cites", "paper"), [(0, 1), (2, 1)]))
///     .unwrap();
/// // From 4 features of authors and 5 of papers to 6.
/// let writes = SageConvConfig::new(4, 6).with_d_target(Some(5));
/// let layer = HeteroConvConfig::new()
///     .with_relation(("author", "writes", "paper"), writes)
///     .with_relation(("paper", "cites", "paper"), SageConvConfig::new(5, 6))
///     .init(&device);
/// let x = NodeFeatures::from([
///     ("author".to_string(), Tensor::ones([2, 4], &device)),
///     ("paper".to_string(), Tensor::ones([3, 5], &device)),
/// ]);
/// assert_eq!(layer.forward(&graph, &x)["paper"].dims(), [3, 6]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct HeteroConv {
    convolutions: Vec<RelationConv>,
    #[module(skip)]
    relations: Vec<Relation>,
    #[module(skip)]
    aggregator: Aggregator,
}

#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "one for each relation")]
enum RelationConv {
    Sage(SageConv),
    Graph(GraphConv),
    Gin(GinConv),
    Gcn(GcnConv),
}

impl HeteroConv {
    /// Takes features of all node types of the convolutions; panics if one is absent or has another
    /// size.
    pub fn forward(&self, graph: &HeteroGraph, x: &NodeFeatures) -> NodeFeatures {
        let of = |name: &String| match x.get(name) {
            Some(features) => features.clone(),
            None => panic!("HeteroConv: there are no features of `{name}`"),
        };
        let mut results: BTreeMap<&String, Vec<Tensor<2>>> = BTreeMap::new();
        for (relation, convolution) in self.relations.iter().zip(&self.convolutions) {
            let y = match (graph.within(relation), graph.edges(relation), convolution) {
                (Some(graph), _, RelationConv::Gcn(conv)) => {
                    conv.forward(graph, of(&relation.source))
                }
                (_, Some(edges), convolution) => {
                    let (sources, targets) = (of(&relation.source), of(&relation.target));
                    match convolution {
                        RelationConv::Sage(conv) => conv.forward_bipartite(edges, sources, targets),
                        RelationConv::Graph(conv) => {
                            conv.forward_bipartite(edges, sources, targets)
                        }
                        RelationConv::Gin(conv) => conv.forward_bipartite(edges, sources, targets),
                        RelationConv::Gcn(_) => unreachable!("init refuses it between types"),
                    }
                }
                (_, None, _) => continue,
            };
            results.entry(&relation.target).or_default().push(y);
        }
        let combined = results.into_iter().map(|(name, results)| {
            let y = combine(self.aggregator, results);
            (name.clone(), y)
        });
        combined.collect()
    }
}

/// Elementwise, of one result or more.
fn combine(aggregator: Aggregator, results: Vec<Tensor<2>>) -> Tensor<2> {
    let count = results.len() as f64;
    let sum = |results: Vec<Tensor<2>>| {
        let mut results = results.into_iter();
        let first = results.next().expect("a type with a result");
        results.fold(first, |sum, y| sum + y)
    };
    match aggregator {
        Aggregator::Sum => sum(results),
        Aggregator::Mean => sum(results) / count,
        Aggregator::Max => JumpingKnowledge::Max.forward(results),
        Aggregator::Min => {
            let negated = results.into_iter().map(Tensor::neg).collect();
            JumpingKnowledge::Max.forward(negated).neg()
        }
    }
}
