//! Layers against PyG's numbers: tests/pyg/layers.json, which tests/pyg/layers.py writes.

use std::sync::LazyLock;

use burn::{
    module::Module,
    nn::Relu,
    tensor::{DType, Device, Tensor},
};
use serde_json::Value;
use sparsek_gnn::{
    Graph,
    nn::{
        Aggregator, AppnpConvConfig, ChebConvConfig, GatConvConfig, GatV2ConvConfig, GcnConvConfig,
        GinConvConfig, GinMlpConfig, GraphConvConfig, GraphNormConfig, JumpingKnowledge, PairNorm,
        SageConvConfig, SgConvConfig,
    },
};
use sparsek_tests::{
    backend::{Backend, Kind},
    runner::Cases,
};

use super::subject::{Pass, fill, same};

const IN: usize = 4;
const OUT: usize = 3;

static FILE: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../pyg/layers.json")).expect("the file is JSON")
});

type Forward<M> = fn(&M, &Graph, Tensor<2>, Tensor<1>) -> Tensor<2>;

pub fn add(cases: &mut Cases, backend: &Backend) {
    let mut list = List { cases, backend, names: Vec::new() };
    list.messages();
    list.convolutions();
    list.attention();
    list.propagation();
    list.norms();
    let tested = list.names;
    cases.check(backend, "tensor/gnn/pyg/all", move |_| {
        let cases = FILE["cases"].as_array().expect("a list").iter();
        let names: Vec<&str> = cases.filter_map(|case| case["name"].as_str()).collect();
        match names == tested {
            true => Ok(()),
            false => Err(format!("the file has {names:?}, the suite {tested:?}")),
        }
    });
}

struct List<'a> {
    cases: &'a mut Cases,
    backend: &'a Backend,
    names: Vec<&'static str>,
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
            self.add(name, |_| Relu::new(), forward);
        }
    }

    fn convolutions(&mut self) {
        self.add(
            "gcn/default",
            |device| GcnConvConfig::new(IN, OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "gcn/improved-weighted",
            |device| GcnConvConfig::new(IN, OUT).with_improved(true).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        fn sage(aggregator: Aggregator) -> SageConvConfig {
            SageConvConfig::new(IN, OUT).with_aggregator(aggregator)
        }
        self.add(
            "sage/mean",
            |device| sage(Aggregator::Mean).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "sage/sum",
            |device| sage(Aggregator::Sum).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "sage/max",
            |device| sage(Aggregator::Max).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "sage/project-normalize",
            |device| {
                let config = sage(Aggregator::Mean).with_project(true);
                config.with_normalize(true).init(device)
            },
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "gin/mlp",
            |device| {
                let mlp = GinMlpConfig::new(IN, 5, OUT);
                GinConvConfig::new().with_train_eps(true).with_mlp(Some(mlp)).init(device)
            },
            |layer, graph, x, _| layer.forward(graph, x),
        );
    }

    fn attention(&mut self) {
        self.add(
            "gat/default",
            |device| GatConvConfig::new(IN, OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "gat/heads",
            |device| GatConvConfig::new(IN, OUT).with_heads(3).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "gat/mean",
            |device| {
                let config = GatConvConfig::new(IN, OUT).with_heads(2).with_negative_slope(0.5);
                config.with_concat(false).with_self_loops(false).with_bias(false).init(device)
            },
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "gat-v2/default",
            |device| GatV2ConvConfig::new(IN, OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "gat-v2/heads",
            |device| GatV2ConvConfig::new(IN, OUT).with_heads(3).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "gat-v2/mean-shared",
            |device| {
                let config = GatV2ConvConfig::new(IN, OUT).with_heads(2).with_share_weights(true);
                config.with_concat(false).with_self_loops(false).with_bias(false).init(device)
            },
            |layer, graph, x, _| layer.forward(graph, x),
        );
    }

    fn propagation(&mut self) {
        self.add(
            "sg/default",
            |device| SgConvConfig::new(IN, OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "sg/hops-weighted",
            |device| SgConvConfig::new(IN, OUT).with_hops(3).with_bias(false).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        self.add(
            "appnp/default",
            |device| AppnpConvConfig::new(4, 0.1).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "appnp/weighted",
            |device| AppnpConvConfig::new(2, 0.3).with_self_loops(false).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        self.add(
            "graph-conv/default",
            |device| GraphConvConfig::new(IN, OUT).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        fn graph_conv(aggregator: Aggregator) -> GraphConvConfig {
            GraphConvConfig::new(IN, OUT).with_aggregator(aggregator)
        }
        self.add(
            "graph-conv/sum-weighted",
            |device| graph_conv(Aggregator::Sum).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        self.add(
            "graph-conv/mean-weighted",
            |device| graph_conv(Aggregator::Mean).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        self.add(
            "graph-conv/max-weighted",
            |device| graph_conv(Aggregator::Max).init(device),
            |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        );
        self.add(
            "cheb/one-term",
            |device| ChebConvConfig::new(IN, OUT, 1).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
        self.add(
            "cheb/four-terms",
            |device| ChebConvConfig::new(IN, OUT, 4).init(device),
            |layer, graph, x, _| layer.forward(graph, x),
        );
    }

    fn norms(&mut self) {
        self.add(
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
            self.add(name, |_| Relu::new(), forward);
        }
    }

    fn add<M: Module + 'static>(
        &mut self,
        name: &'static str,
        make: fn(&Device) -> M,
        forward: Forward<M>,
    ) {
        self.names.push(name);
        let body = move |backend: &Backend| check(backend, name, make, forward);
        self.cases.check_shared(self.backend, format!("tensor/gnn/pyg/{name}"), body);
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list").iter();
    list.map(|number| number.as_f64().expect("a number")).collect()
}

fn lists(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().expect("a list").iter().map(numbers).collect()
}

/// Outputs and gradients are PyG's in f64, rounded to f32.
fn check<M: Module>(
    backend: &Backend,
    name: &str,
    make: fn(&Device) -> M,
    forward: Forward<M>,
) -> Result<(), String> {
    let mut cases = FILE["cases"].as_array().expect("a list").iter();
    let case = cases.find(|case| case["name"] == name).ok_or("the file has no such case")?;
    let nodes = FILE["nodes"].as_u64().expect("a number") as usize;
    let edges = lists(&FILE["edges"]).into_iter().map(|pair| (pair[0] as u32, pair[1] as u32));
    let graph = Graph::from_edges(nodes, edges).map_err(|error| error.to_string())?;
    // Devices may round products to tf32.
    let (dtype, precision) = match backend.kind {
        Kind::Flex => (DType::F64, 1e-6),
        _ => (DType::F32, 2f64.powi(-9)),
    };
    let parameters = lists(&case["parameters"]);
    let mut given = parameters.iter();
    let mut wrong = None;
    let mut next = |count| match given.next() {
        Some(values) if values.len() == count => values.clone(),
        other => {
            wrong = Some(format!("a parameter of {count} elements, but PyG has {other:?}"));
            vec![0.0; count]
        }
    };
    let layer = make(&backend.device.clone().autodiff());
    let (layer, found) = fill(layer, dtype, &mut next);
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    if found.len() < parameters.len() {
        return Err(format!("{} parameters, but PyG has {}", found.len(), parameters.len()));
    }
    let [x, weights, upstream] = ["x", "weights", "upstream"].map(|name| numbers(&case[name]));
    let pass = Pass { graph: &graph, x: &x, weights: &weights, upstream: &upstream, dtype };
    let (y, slopes) = pass.run(backend, &layer, forward)?;
    let bound =
        |values: &[f64]| precision * values.iter().fold(1.0, |most: f64, v| most.max(v.abs()));
    let expected = numbers(&case["y"]);
    same("y", &y, &expected, bound(&expected))?;
    let mut expected = [numbers(&case["dx"]), numbers(&case["dweights"])].concat();
    expected.extend(lists(&case["dparameters"]).concat());
    same("slopes", &slopes, &expected, bound(&expected))
}
