use std::collections::BTreeMap;

use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor},
};

use super::{
    aggregator::Aggregator,
    gat::{GatConv, GatConvConfig},
    gat_v2::{GatV2Conv, GatV2ConvConfig},
    gcn::{GcnConv, GcnConvConfig},
    gin::{GinConv, GinConvConfig},
    graph_conv::{GraphConv, GraphConvConfig},
    jumping_knowledge::JumpingKnowledge,
    sage::{SageConv, SageConvConfig},
    transformer::{TransformerConv, TransformerConvConfig},
};
use crate::graph::{BipartiteGraph, Graph, HeteroGraph, Relation};

/// Features per node type.
pub type NodeFeatures = BTreeMap<String, Tensor<2>>;

/// Edge features per relation; [edges, 1] weights for [`GraphConv`] and [`GcnConv`].
pub type EdgeFeatures = BTreeMap<Relation, Tensor<2>>;

/// Relation's convolution.
#[derive(Config, Debug, PartialEq)]
pub enum RelationConvConfig {
    /// [`SageConv`].
    Sage(SageConvConfig),
    /// [`GraphConv`].
    Graph(GraphConvConfig),
    /// [`GinConv`].
    Gin(GinConvConfig),
    /// [`GatConv`]; between types without self-loops.
    Gat(GatConvConfig),
    /// [`GatV2Conv`], likewise.
    GatV2(GatV2ConvConfig),
    /// [`TransformerConv`].
    Transformer(TransformerConvConfig),
    /// [`GcnConv`], within a type.
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

impl From<GatConvConfig> for RelationConvConfig {
    fn from(config: GatConvConfig) -> Self {
        Self::Gat(config)
    }
}

impl From<GatV2ConvConfig> for RelationConvConfig {
    fn from(config: GatV2ConvConfig) -> Self {
        Self::GatV2(config)
    }
}

impl From<TransformerConvConfig> for RelationConvConfig {
    fn from(config: TransformerConvConfig) -> Self {
        Self::Transformer(config)
    }
}

impl From<GcnConvConfig> for RelationConvConfig {
    fn from(config: GcnConvConfig) -> Self {
        Self::Gcn(config)
    }
}

impl RelationConvConfig {
    fn init(&self, relation: &Relation, device: &Device) -> RelationConv {
        let check = |name: &str, holds: bool| {
            assert!(holds || relation.is_within(), "{relation} has two node types: {name}");
        };
        match self {
            Self::Sage(config) => RelationConv::Sage(config.init(device)),
            Self::Graph(config) => RelationConv::Graph(config.init(device)),
            Self::Gin(config) => RelationConv::Gin(config.init(device)),
            Self::Gat(config) => {
                check("GatConv needs `self_loops` off", !config.self_loops);
                RelationConv::Gat(config.init(device))
            }
            Self::GatV2(config) => {
                check("GatV2Conv needs `self_loops` off", !config.self_loops);
                RelationConv::GatV2(config.init(device))
            }
            Self::Transformer(config) => RelationConv::Transformer(config.init(device)),
            Self::Gcn(config) => {
                check("GcnConv needs one", false);
                RelationConv::Gcn(config.init(device))
            }
        }
    }
}

/// Configures [`HeteroConv`].
#[derive(Config, Debug, PartialEq)]
pub struct HeteroConvConfig {
    /// Set by [`with_relation`](Self::with_relation).
    #[config(default = "Vec::new()")]
    pub convolutions: Vec<(Relation, RelationConvConfig)>,
    /// Combines results per type.
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

    /// Initializes the convolutions; panics for repeated relations, and between types for
    /// [`GcnConv`] and self-loops.
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

/// PyG's `HeteroConv` (Schlichtkrull et al., 2018):
/// `y_t[i] = agg_{r=(s,·,t)} f_r(x_s, x_t)[i]`, relation r from type s to t.
///
/// Skips relations that the graph lacks; omits types without results.
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
    Gat(GatConv),
    GatV2(GatV2Conv),
    Transformer(TransformerConv),
    Gcn(GcnConv),
}

impl HeteroConv {
    /// Takes features of all node types in convolutions; panics without.
    pub fn forward(&self, graph: &HeteroGraph, x: &NodeFeatures) -> NodeFeatures {
        self.forward_with_edges(graph, x, &EdgeFeatures::new())
    }

    /// [`forward`](Self::forward) with features of any relations; panics if a convolution takes
    /// none.
    pub fn forward_with_edges(
        &self,
        graph: &HeteroGraph,
        x: &NodeFeatures,
        features: &EdgeFeatures,
    ) -> NodeFeatures {
        let of = |name: &String| match x.get(name) {
            Some(features) => features.clone(),
            None => panic!("HeteroConv: there are no features of `{name}`"),
        };
        let mut results: BTreeMap<&String, Vec<Tensor<2>>> = BTreeMap::new();
        for (relation, convolution) in self.relations.iter().zip(&self.convolutions) {
            let features = features.get(relation).cloned();
            let y = if let Some(graph) = graph.within(relation) {
                convolution.within(graph, of(&relation.source), features)
            } else if let Some(edges) = graph.edges(relation) {
                let ends = [of(&relation.source), of(&relation.target)];
                convolution.between(edges, ends, features)
            } else {
                continue;
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

impl RelationConv {
    fn within(&self, graph: &Graph, x: Tensor<2>, features: Option<Tensor<2>>) -> Tensor<2> {
        match (self, features) {
            (Self::Sage(conv), None) => conv.forward(graph, x),
            (Self::Graph(conv), None) => conv.forward(graph, x),
            (Self::Graph(conv), Some(e)) => conv.forward_weighted(graph, x, weights(e)),
            (Self::Gin(conv), None) => conv.forward(graph, x),
            (Self::Gcn(conv), None) => conv.forward(graph, x),
            (Self::Gcn(conv), Some(e)) => conv.forward_weighted(graph, x, weights(e)),
            (Self::Gat(conv), None) => conv.forward(graph, x),
            (Self::Gat(conv), Some(e)) => conv.forward_with_edges(graph, x, e),
            (Self::GatV2(conv), None) => conv.forward(graph, x),
            (Self::GatV2(conv), Some(e)) => conv.forward_with_edges(graph, x, e),
            (Self::Transformer(conv), None) => conv.forward(graph, x),
            (Self::Transformer(conv), Some(e)) => conv.forward_with_edges(graph, x, e),
            (_, Some(_)) => no_features(),
        }
    }

    fn between(
        &self,
        edges: &BipartiteGraph,
        ends: [Tensor<2>; 2],
        features: Option<Tensor<2>>,
    ) -> Tensor<2> {
        let [s, t] = ends;
        match (self, features) {
            (Self::Sage(conv), None) => conv.forward_bipartite(edges, s, t),
            (Self::Graph(conv), None) => conv.forward_bipartite(edges, s, t),
            (Self::Graph(conv), Some(e)) => {
                conv.forward_bipartite_weighted(edges, s, t, weights(e))
            }
            (Self::Gin(conv), None) => conv.forward_bipartite(edges, s, t),
            (Self::Gcn(_), _) => unreachable!("init refuses it between node types"),
            (Self::Gat(conv), None) => conv.forward_bipartite(edges, s, t),
            (Self::Gat(conv), Some(e)) => conv.forward_bipartite_with_edges(edges, s, t, e),
            (Self::GatV2(conv), None) => conv.forward_bipartite(edges, s, t),
            (Self::GatV2(conv), Some(e)) => conv.forward_bipartite_with_edges(edges, s, t, e),
            (Self::Transformer(conv), None) => conv.forward_bipartite(edges, s, t),
            (Self::Transformer(conv), Some(e)) => conv.forward_bipartite_with_edges(edges, s, t, e),
            (_, Some(_)) => no_features(),
        }
    }
}

fn weights(features: Tensor<2>) -> Tensor<1> {
    let [edges, width] = features.dims();
    assert!(
        width == 1,
        "HeteroConv: a convolution takes one weight per edge, not {width} features"
    );
    features.reshape([edges])
}

fn no_features() -> ! {
    panic!("HeteroConv: a convolution takes no edge features");
}

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
