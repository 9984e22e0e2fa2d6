//! Layers against PyG's numbers: tests/pyg/layers.json, which tests/pyg/layers.py writes.

use std::sync::LazyLock;

use burn::{nn::Relu, tensor::Tensor};
use sparsek_gnn::{
    Graph,
    nn::{
        Aggregator, AppnpConvConfig, ChebConvConfig, GatConvConfig, GatV2ConvConfig, GcnConvConfig,
        GinConvConfig, GinMlpConfig, GraphConvConfig, GraphNormConfig, JumpingKnowledge, PairNorm,
        PnaAggregator, PnaConvConfig, PnaScaler, SageConvConfig, SgConvConfig,
        TransformerConvConfig,
    },
};
use sparsek_tests::{backend::Backend, runner::Cases};

use super::fixture::{File, Fixture, Forward, featured, lists, parse};

const IN: usize = 4;
const OUT: usize = 3;

static FILE: File = LazyLock::new(|| parse(include_str!("../../pyg/layers.json")));

pub fn add(cases: &mut Cases, backend: &Backend) {
    let mut list = List { fixture: Fixture::new(cases, backend, &FILE, "pyg") };
    list.messages();
    list.convolutions();
    list.attention();
    list.propagation();
    list.norms();
    list.transformer();
    list.pna();
    list.edge_features();
    list.fixture.finish();
}

struct List<'a> {
    fixture: Fixture<'a>,
}

impl List<'_> {
    fn messages(&mut self) {
        fn weighted(graph: &Graph, x: Tensor<2>, weights: Tensor<1>) -> Tensor<2> {
            graph.messages(&x.device()).gather(x) * weights.unsqueeze_dim(1)
        }
        let scatters: [(&'static str, Forward<Relu>); 5] = [
            ("scatter/sum", |_, graph, x, w| {
                graph.messages(&x.device()).scatter_sum(weighted(graph, x, w))
            }),
            ("scatter/mean", |_, graph, x, w| {
                graph.messages(&x.device()).scatter_mean(weighted(graph, x, w))
            }),
            ("scatter/max", |_, graph, x, w| {
                graph.messages(&x.device()).scatter_max(weighted(graph, x, w))
            }),
            ("scatter/min", |_, graph, x, w| {
                graph.messages(&x.device()).scatter_min(weighted(graph, x, w))
            }),
            ("softmax", |_, graph, x, w| {
                graph.messages(&x.device()).edge_softmax(weighted(graph, x, w))
            }),
        ];
        for (name, forward) in scatters {
            self.fixture.add(name, |_| Relu::new(), forward);
        }
    }

    fn convolutions(&mut self) {
        self.fixture.add(
            "gcn/default",
            |device| GcnConvConfig::new(IN, OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "gcn/improved-weighted",
            |device| GcnConvConfig::new(IN, OUT).with_improved(true).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        fn sage(aggregator: Aggregator) -> SageConvConfig {
            SageConvConfig::new(IN, OUT).with_aggregator(aggregator)
        }
        self.fixture.add(
            "sage/mean",
            |device| sage(Aggregator::Mean).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "sage/sum",
            |device| sage(Aggregator::Sum).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "sage/max",
            |device| sage(Aggregator::Max).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "sage/project-normalize",
            |device| {
                let config = sage(Aggregator::Mean).with_project(true);
                config.with_normalize(true).init(device)
            },
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "gin/mlp",
            |device| {
                let mlp = GinMlpConfig::new(IN, 5, OUT);
                GinConvConfig::new().with_train_eps(true).with_mlp(Some(mlp)).init(device)
            },
            |layer, graph, x, _| layer.forward(graph, x),
        );
    }

    fn attention(&mut self) {
        self.fixture.add(
            "gat/default",
            |device| GatConvConfig::new(IN, OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "gat/heads",
            |device| GatConvConfig::new(IN, OUT).with_heads(3).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "gat/mean",
            |device| {
                let config = GatConvConfig::new(IN, OUT).with_heads(2).with_negative_slope(0.5);
                config.with_concat(false).with_self_loops(false).with_bias(false).init(device)
            },
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "gat-v2/default",
            |device| GatV2ConvConfig::new(IN, OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "gat-v2/heads",
            |device| GatV2ConvConfig::new(IN, OUT).with_heads(3).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "gat-v2/mean-shared",
            |device| {
                let config = GatV2ConvConfig::new(IN, OUT).with_heads(2).with_share_weights(true);
                config.with_concat(false).with_self_loops(false).with_bias(false).init(device)
            },
            |layer, graph, x, _| layer.forward(graph, x),
        );
    }

    fn propagation(&mut self) {
        self.fixture.add(
            "sg/default",
            |device| SgConvConfig::new(IN, OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "sg/hops-weighted",
            |device| SgConvConfig::new(IN, OUT).with_hops(3).with_bias(false).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        self.fixture.add(
            "appnp/default",
            |device| AppnpConvConfig::new(4, 0.1).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "appnp/weighted",
            |device| AppnpConvConfig::new(2, 0.3).with_self_loops(false).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        self.fixture.add(
            "graph-conv/default",
            |device| GraphConvConfig::new(IN, OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        fn graph_conv(aggregator: Aggregator) -> GraphConvConfig {
            GraphConvConfig::new(IN, OUT).with_aggregator(aggregator)
        }
        self.fixture.add(
            "graph-conv/sum-weighted",
            |device| graph_conv(Aggregator::Sum).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        self.fixture.add(
            "graph-conv/mean-weighted",
            |device| graph_conv(Aggregator::Mean).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        self.fixture.add(
            "graph-conv/max-weighted",
            |device| graph_conv(Aggregator::Max).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        self.fixture.add(
            "cheb/one-term",
            |device| ChebConvConfig::new(IN, OUT, 1).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "cheb/four-terms",
            |device| ChebConvConfig::new(IN, OUT, 4).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
    }

    fn transformer(&mut self) {
        self.fixture.add(
            "transformer/default",
            |device| TransformerConvConfig::new(IN, OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "transformer/heads",
            |device| TransformerConvConfig::new(IN, OUT).with_heads(3).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "transformer/mean",
            |device| {
                let config = TransformerConvConfig::new(IN, OUT).with_heads(2);
                config.with_concat(false).with_root_weight(false).with_bias(false).init(device)
            },
            |layer, graph, x, _| layer.forward(graph, x),
        );
    }

    fn pna(&mut self) {
        /// The suite's graph: its nodes of each in-degree.
        fn config(d_output: usize) -> PnaConvConfig {
            let nodes = FILE["nodes"].as_u64().expect("a number") as usize;
            let pairs = lists(&FILE["edges"]).into_iter();
            let pairs = pairs.map(|pair| (pair[0] as u32, pair[1] as u32));
            let graph = Graph::from_edges(nodes, pairs).expect("ids are in range");
            PnaConvConfig::new(IN, d_output, PnaConvConfig::degree_histogram([&graph]))
        }
        self.fixture.add(
            "pna/default",
            |device| config(OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "pna/every",
            |device| {
                use PnaAggregator::{Max, Mean, Min, Std, Sum, Var};
                use PnaScaler::{Amplification, Attenuation, Identity, InverseLinear, Linear};
                config(OUT)
                    .with_aggregators(vec![Sum, Mean, Min, Max, Var, Std])
                    .with_scalers(vec![Identity, Amplification, Attenuation, Linear, InverseLinear])
                    .init(device)
            },
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "pna/towers-divided",
            |device| {
                let config = config(4).with_towers(2).with_divide_input(true);
                config.with_pre_layers(2).with_post_layers(2).init(device)
            },
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.fixture.add(
            "pna/edges",
            |device| config(OUT).with_towers(3).with_d_edge(Some(2)).init(device),
            |layer, graph, x, weights| layer.forward_with_edges(graph, x, featured(weights)),
        );
    }

    fn edge_features(&mut self) {
        self.fixture.add(
            "gat/edges",
            |device| GatConvConfig::new(IN, OUT).with_heads(3).with_d_edge(Some(2)).init(device),
            |layer, graph, x, weights| layer.forward_with_edges(graph, x, featured(weights)),
        );
        self.fixture.add(
            "gat/edges-mean",
            |device| {
                let config = GatConvConfig::new(IN, OUT).with_heads(2).with_d_edge(Some(2));
                config.with_concat(false).with_self_loops(false).with_bias(false).init(device)
            },
            |layer, graph, x, weights| layer.forward_with_edges(graph, x, featured(weights)),
        );
        self.fixture.add(
            "gat-v2/edges",
            |device| GatV2ConvConfig::new(IN, OUT).with_heads(3).with_d_edge(Some(2)).init(device),
            |layer, graph, x, weights| layer.forward_with_edges(graph, x, featured(weights)),
        );
        self.fixture.add(
            "gat-v2/edges-mean",
            |device| {
                let config = GatV2ConvConfig::new(IN, OUT).with_heads(2).with_d_edge(Some(2));
                config.with_concat(false).with_self_loops(false).with_bias(false).init(device)
            },
            |layer, graph, x, weights| layer.forward_with_edges(graph, x, featured(weights)),
        );
        self.fixture.add(
            "transformer/edges",
            |device| {
                let config = TransformerConvConfig::new(IN, OUT).with_heads(3);
                config.with_d_edge(Some(2)).init(device)
            },
            |layer, graph, x, weights| layer.forward_with_edges(graph, x, featured(weights)),
        );
        self.fixture.add(
            "transformer/edges-mean",
            |device| {
                let config = TransformerConvConfig::new(IN, OUT).with_heads(2).with_concat(false);
                config.with_root_weight(false).with_bias(false).with_d_edge(Some(2)).init(device)
            },
            |layer, graph, x, weights| layer.forward_with_edges(graph, x, featured(weights)),
        );
    }

    fn norms(&mut self) {
        self.fixture.add(
            "graph-norm",
            |device| GraphNormConfig::new(IN).init(device),
            |layer, _, x, _| layer.forward(x),
        );
        let without_parameters: [(&'static str, Forward<Relu>); 4] = [
            ("pair-norm/default", |_, _, x, _| PairNorm::new().forward(x)),
            ("pair-norm/individually", |_, _, x, _| {
                PairNorm::new().with_individually(true).with_scale(2.0).forward(x)
            }),
            ("jumping-knowledge/cat", |_, _, x, _| {
                JumpingKnowledge::Cat.forward(vec![x.clone(), x.clone().square(), x.neg()])
            }),
            ("jumping-knowledge/max", |_, _, x, _| {
                JumpingKnowledge::Max.forward(vec![x.clone(), x.clone().square(), x.neg()])
            }),
        ];
        for (name, forward) in without_parameters {
            self.fixture.add(name, |_| Relu::new(), forward);
        }
    }
}
