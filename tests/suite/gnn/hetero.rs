//! Layers between node types against PyG's numbers: tests/pyg/hetero.json, which
//! tests/pyg/hetero.py writes.

use std::sync::LazyLock;

use burn::tensor::{Device, Tensor};
use serde_json::Value;
use sparsek_gnn::{
    Graph,
    graph::{BipartiteGraph, HeteroGraph, Relation},
    nn::{
        Aggregator, EdgeFeatures, GatConvConfig, GatV2ConvConfig, GcnConvConfig, GinConvConfig,
        GinMlpConfig, GraphConv, GraphConvConfig, HeteroConv, HeteroConvConfig, NodeFeatures,
        RelationConvConfig, RgcnConv, RgcnConvConfig, SageConv, SageConvConfig,
        TransformerConvConfig,
    },
};
use sparsek_tests::{backend::Backend, panics::expect_panic, runner::Cases};

use super::fixture::{File, Fixture, Forward, featured, lists, parse};

const OUT: usize = 3;
const USER: usize = 4;
const ITEM: usize = 3;
const TAG: usize = 4;

const RATES: (&str, &str, &str) = ("user", "rates", "item");
const KNOWS: (&str, &str, &str) = ("user", "knows", "user");

static FILE: File = LazyLock::new(|| parse(include_str!("../../pyg/hetero.json")));

/// Name, nodes and width of each node type.
static TYPES: LazyLock<Vec<(String, usize, usize)>> = LazyLock::new(|| {
    let types = FILE["types"].as_array().expect("a list").iter();
    let size = |value: &Value| value.as_u64().expect("a number") as usize;
    let read = |each: &Value| (text(&each[0]), size(&each[1]), size(&each[2]));
    types.map(read).collect()
});

static GRAPH: LazyLock<HeteroGraph> = LazyLock::new(|| {
    let types = TYPES.iter().map(|(name, nodes, _)| (name.as_str(), *nodes));
    let graph = HeteroGraph::new(types).expect("types differ");
    let relations = FILE["relations"].as_array().expect("a list").iter();
    relations.fold(graph, |graph, each| {
        let relation = (text(&each[0]), text(&each[1]), text(&each[2]));
        let pairs = lists(&each[3]).into_iter().map(|pair| (pair[0] as u32, pair[1] as u32));
        graph.with_edges(relation, pairs).expect("edges of the types")
    })
});

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_string()
}

fn rates() -> &'static BipartiteGraph {
    GRAPH.edges(&RATES.into()).expect("a relation of the file")
}

/// The rows of each node type, of its width.
fn features(x: Tensor<2>) -> NodeFeatures {
    let mut first = 0;
    let parts = TYPES.iter().map(|(name, nodes, width)| {
        let part = x.clone().narrow(0, first, *nodes).narrow(1, 0, *width);
        first += nodes;
        (name.clone(), part)
    });
    parts.collect()
}

/// Users and items.
fn pair(x: Tensor<2>) -> [Tensor<2>; 2] {
    let parts = features(x);
    ["user", "item"].map(|name| parts[name].clone())
}

pub fn add(cases: &mut Cases, backend: &Backend) {
    let mut fixture = Fixture::new(cases, backend, &FILE, "pyg/hetero");
    sage(&mut fixture);
    graph_conv(&mut fixture);
    fixture.add(
        "gin/mlp",
        |device| {
            let mlp = GinMlpConfig::new(ITEM, 5, OUT);
            GinConvConfig::new().with_eps(0.5).with_mlp(Some(mlp)).init(device)
        },
        |layer, _, x, _| {
            let [users, items] = pair(x);
            layer.forward_bipartite(rates(), users.narrow(1, 0, ITEM), items)
        },
    );
    hetero(&mut fixture);
    attention(&mut fixture);
    relational(&mut fixture);
    mixed_features(&mut fixture);
    weighted(&mut fixture);
    fixture.finish();
    cases.check_shared(backend, "tensor/gnn/hetero/absent", absent);
    cases.check_shared(backend, "tensor/gnn/hetero/refusals", refusals);
}

fn sage(fixture: &mut Fixture) {
    fn config(aggregator: Aggregator) -> SageConvConfig {
        let config = SageConvConfig::new(USER, OUT).with_d_target(Some(ITEM));
        config.with_aggregator(aggregator)
    }
    let forward: Forward<SageConv> = |layer, _, x, _| {
        let [users, items] = pair(x);
        layer.forward_bipartite(rates(), users, items)
    };
    fixture.add("sage/mean", |device| config(Aggregator::Mean).init(device), forward);
    fixture.add("sage/sum", |device| config(Aggregator::Sum).init(device), forward);
    fixture.add("sage/max", |device| config(Aggregator::Max).init(device), forward);
    fixture.add("sage/min", |device| config(Aggregator::Min).init(device), forward);
    fixture.add(
        "sage/project-normalize",
        |device| {
            let config = config(Aggregator::Mean).with_project(true).with_normalize(true);
            config.with_root_weight(false).init(device)
        },
        forward,
    );
}

fn graph_conv(fixture: &mut Fixture) {
    fn config(aggregator: Aggregator) -> GraphConvConfig {
        let config = GraphConvConfig::new(USER, OUT).with_d_target(Some(ITEM));
        config.with_aggregator(aggregator)
    }
    let forward: Forward<GraphConv> = |layer, _, x, _| {
        let [users, items] = pair(x);
        layer.forward_bipartite(rates(), users, items)
    };
    fixture.add("graph-conv/sum", |device| config(Aggregator::Sum).init(device), forward);
    fixture.add("graph-conv/mean", |device| config(Aggregator::Mean).init(device), forward);
    fixture.add("graph-conv/max", |device| config(Aggregator::Max).init(device), forward);
    fixture.add("graph-conv/min", |device| config(Aggregator::Min).init(device), forward);
}

/// From widths of sources and targets.
fn between(d_source: usize, d_target: usize) -> SageConvConfig {
    SageConvConfig::new(d_source, OUT).with_d_target(Some(d_target))
}

fn sages(aggregator: Aggregator) -> HeteroConvConfig {
    HeteroConvConfig::new()
        .with_aggregator(aggregator)
        .with_relation(RATES, between(USER, ITEM))
        .with_relation(("item", "rated", "user"), between(ITEM, USER))
        .with_relation(("tag", "marks", "item"), between(TAG, ITEM))
        .with_relation(KNOWS, SageConvConfig::new(USER, OUT))
}

/// Results of all node types, below each other.
fn joined(layer: &HeteroConv, _: &Graph, x: Tensor<2>, _: Tensor<1>) -> Tensor<2> {
    join(layer.forward(&GRAPH, &features(x)))
}

fn join(y: NodeFeatures) -> Tensor<2> {
    let parts = TYPES.iter().filter_map(|(name, ..)| y.get(name).cloned());
    Tensor::cat(parts.collect(), 0)
}

fn hetero(fixture: &mut Fixture) {
    let forward: Forward<HeteroConv> = joined;
    fixture.add("hetero/default", |device| sages(Aggregator::Sum).init(device), forward);
    fixture.add("hetero/mean", |device| sages(Aggregator::Mean).init(device), forward);
    fixture.add("hetero/max", |device| sages(Aggregator::Max).init(device), forward);
    fixture.add("hetero/min", |device| sages(Aggregator::Min).init(device), forward);
    fixture.add(
        "hetero/mixed",
        |device| {
            let graph_conv = GraphConvConfig::new(USER, OUT).with_d_target(Some(ITEM));
            HeteroConvConfig::new()
                .with_relation(RATES, graph_conv)
                .with_relation(KNOWS, GcnConvConfig::new(USER, OUT))
                .with_relation(("tag", "marks", "item"), between(TAG, ITEM))
                .init(device)
        },
        forward,
    );
}

fn attention(fixture: &mut Fixture) {
    fn gat() -> GatConvConfig {
        let config = GatConvConfig::new(USER, OUT).with_d_target(Some(ITEM));
        config.with_self_loops(false)
    }
    fn gat_v2() -> GatV2ConvConfig {
        let config = GatV2ConvConfig::new(USER, OUT).with_d_target(Some(ITEM));
        config.with_self_loops(false)
    }
    fn transformer() -> TransformerConvConfig {
        TransformerConvConfig::new(USER, OUT).with_d_target(Some(ITEM))
    }
    fn both(
        rates: impl Into<RelationConvConfig>,
        knows: impl Into<RelationConvConfig>,
    ) -> HeteroConvConfig {
        HeteroConvConfig::new().with_relation(RATES, rates).with_relation(KNOWS, knows)
    }
    fixture.add(
        "gat",
        |device| gat().with_heads(2).init(device),
        |layer, _, x, _| {
            let [users, items] = pair(x);
            layer.forward_bipartite(rates(), users, items)
        },
    );
    fixture.add(
        "gat/edges",
        |device| gat().with_heads(2).with_d_edge(Some(2)).init(device),
        |layer, _, x, weights| {
            let [users, items] = pair(x);
            layer.forward_bipartite_with_edges(rates(), users, items, featured(weights))
        },
    );
    fixture.add(
        "hetero/gat",
        |device| both(gat(), GatConvConfig::new(USER, OUT)).init(device),
        joined,
    );
    fixture.add(
        "gat-v2",
        |device| gat_v2().with_heads(2).init(device),
        |layer, _, x, _| {
            let [users, items] = pair(x);
            layer.forward_bipartite(rates(), users, items)
        },
    );
    fixture.add(
        "gat-v2/edges",
        |device| gat_v2().with_heads(2).with_d_edge(Some(2)).init(device),
        |layer, _, x, weights| {
            let [users, items] = pair(x);
            layer.forward_bipartite_with_edges(rates(), users, items, featured(weights))
        },
    );
    fixture.add(
        "hetero/gat-v2",
        |device| both(gat_v2(), GatV2ConvConfig::new(USER, OUT)).init(device),
        joined,
    );
    fixture.add(
        "transformer",
        |device| transformer().with_heads(2).init(device),
        |layer, _, x, _| {
            let [users, items] = pair(x);
            layer.forward_bipartite(rates(), users, items)
        },
    );
    fixture.add(
        "transformer/edges",
        |device| transformer().with_heads(2).with_d_edge(Some(2)).init(device),
        |layer, _, x, weights| {
            let [users, items] = pair(x);
            layer.forward_bipartite_with_edges(rates(), users, items, featured(weights))
        },
    );
    fixture.add(
        "hetero/transformer",
        |device| both(transformer(), TransformerConvConfig::new(USER, OUT)).init(device),
        joined,
    );
}

fn mixed_features(fixture: &mut Fixture) {
    fixture.add(
        "hetero/edges",
        |device| {
            let gat = GatConvConfig::new(USER, OUT).with_d_target(Some(ITEM));
            let gat_v2 = GatV2ConvConfig::new(USER, OUT).with_d_edge(Some(2));
            let transformer = TransformerConvConfig::new(TAG, OUT).with_d_target(Some(ITEM));
            HeteroConvConfig::new()
                .with_relation(RATES, gat.with_self_loops(false).with_d_edge(Some(2)))
                .with_relation(("tag", "marks", "item"), transformer)
                .with_relation(KNOWS, gat_v2)
                .init(device)
        },
        |layer, _, x, weights| {
            let knows = GRAPH.edges(&KNOWS.into()).expect("a relation of the file").edges();
            let edges = EdgeFeatures::from([
                (RATES.into(), featured(weights.clone())),
                (KNOWS.into(), featured(weights.narrow(0, 0, knows))),
            ]);
            join(layer.forward_with_edges(&GRAPH, &features(x), &edges))
        },
    );
}

fn weighted(fixture: &mut Fixture) {
    fixture.add(
        "hetero/weights",
        |device| {
            let graph_conv = GraphConvConfig::new(USER, OUT).with_d_target(Some(ITEM));
            HeteroConvConfig::new()
                .with_relation(RATES, graph_conv)
                .with_relation(("tag", "marks", "item"), between(TAG, ITEM))
                .with_relation(KNOWS, GcnConvConfig::new(USER, OUT))
                .init(device)
        },
        |layer, _, x, weights| {
            let knows = GRAPH.edges(&KNOWS.into()).expect("a relation of the file").edges();
            let weights: Tensor<2> = weights.unsqueeze_dim(1);
            let edges = EdgeFeatures::from([
                (RATES.into(), weights.clone()),
                // Without their gradient, which PyTorch also gives to the loop that does not count.
                (KNOWS.into(), weights.narrow(0, 0, knows).detach()),
            ]);
            join(layer.forward_with_edges(&GRAPH, &features(x), &edges))
        },
    );
}

fn relational(fixture: &mut Fixture) {
    static GRAPHS: LazyLock<Vec<Graph>> = LazyLock::new(|| {
        let nodes = FILE["nodes"].as_u64().expect("a number") as usize;
        let typed = FILE["typed"].as_array().expect("a list").iter();
        let graph = |list| {
            let pairs = lists(list).into_iter().map(|pair| (pair[0] as u32, pair[1] as u32));
            Graph::from_edges(nodes, pairs).expect("ids are in range")
        };
        typed.map(graph).collect()
    });
    fn config() -> RgcnConvConfig {
        RgcnConvConfig::new(USER, OUT, 3)
    }
    let forward: Forward<RgcnConv> = |layer, _, x, _| layer.forward(&GRAPHS, x);
    fixture.add("rgcn/default", |device| config().init(device), forward);
    fixture.add(
        "rgcn/bases",
        |device| config().with_bases(Some(2)).with_aggregator(Aggregator::Sum).init(device),
        forward,
    );
    fixture.add(
        "rgcn/plain",
        |device| {
            let config = config().with_root_weight(false).with_bias(false);
            config.with_aggregator(Aggregator::Max).init(device)
        },
        forward,
    );
    fixture.add("rgcn/bias", |device| config().with_root_weight(false).init(device), forward);
}

fn ones(device: &Device) -> NodeFeatures {
    features(Tensor::ones([TYPES.iter().map(|(_, nodes, _)| nodes).sum(), USER], device))
}

/// Relations that a graph lacks are skipped, and types without a convolution have no result.
fn absent(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    let types = TYPES.iter().map(|(name, nodes, _)| (name.as_str(), *nodes));
    let graph = HeteroGraph::new(types).map_err(|error| error.to_string())?;
    let rates = rates().clone();
    let graph = graph.with_relation(RATES, rates);
    let graph = graph.map_err(|error| error.to_string())?;
    let layer = sages(Aggregator::Sum).init(device);
    let y = layer.forward(&graph, &ones(device));
    match y.keys().map(String::as_str).collect::<Vec<_>>()[..] {
        ["item"] => Ok(()),
        ref names => Err(format!("results for {names:?}")),
    }
}

/// The panic of `body` says this.
fn panics(text: &str, body: impl FnOnce()) -> Result<(), String> {
    let message = expect_panic(body)?;
    match message.contains(text) {
        true => Ok(()),
        false => Err(format!("`{message}` does not contain `{text}`")),
    }
}

fn refusals(backend: &Backend) -> Result<(), String> {
    let device = backend.device.clone();
    let rates = Relation::from(RATES);
    let config = HeteroConvConfig::new().with_relation(rates.clone(), between(USER, ITEM));
    let twice = config.clone().with_relation(rates.clone(), between(USER, ITEM));
    panics("(user, rates, item) is listed twice", || drop(twice.init(&device)))?;
    let gcn = HeteroConvConfig::new().with_relation(rates, GcnConvConfig::new(USER, OUT));
    panics("(user, rates, item) has two node types: GcnConv needs one", || {
        drop(gcn.init(&device))
    })?;
    let layer = config.init(&device);
    let mut x = ones(&device);
    x.remove("user");
    panics("no features of `user`", || drop(layer.forward(&GRAPH, &x)))?;
    let mut x = ones(&device);
    x.insert("item".to_string(), Tensor::ones([1, ITEM], &device));
    panics("SageConv: 1 rows for 4 targets", || drop(layer.forward(&GRAPH, &x)))?;
    let edges = EdgeFeatures::from([(RATES.into(), Tensor::ones([10, 2], &device))]);
    panics("takes no edge features", || {
        drop(layer.forward_with_edges(&GRAPH, &ones(&device), &edges))
    })?;
    let graph_conv = GraphConvConfig::new(USER, OUT).with_d_target(Some(ITEM));
    let layer = HeteroConvConfig::new().with_relation(RATES, graph_conv).init(&device);
    panics("one weight per edge, not 2 features", || {
        drop(layer.forward_with_edges(&GRAPH, &ones(&device), &edges))
    })?;
    match Graph::try_from(self::rates().clone()) {
        Err(error) if error.to_string().contains("4 × 5") => Ok(()),
        other => Err(format!("a graph of a rectangle: {other:?}")),
    }
}
