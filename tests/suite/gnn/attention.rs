//! Attention layers against their formulas, gradients against finite differences.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use sparsek_gnn::{
    Graph,
    nn::{
        GatConv, GatConvConfig, GatV2ConvConfig, PnaConvConfig, RgcnConvConfig,
        TransformerConvConfig,
    },
};
use sparsek_tests::{
    backend::Backend,
    oracle::{
        layers::{self, Edges, Matrix},
        messages,
    },
    panics::expect_panic,
    runner::Cases,
};

use super::subject::{Inputs, NODES, OUT, Subject, WIDTH, add_subject};

const HEADS: usize = 3;

pub fn add(cases: &mut Cases, backend: &Backend) {
    gat(cases, backend);
    gat_v2(cases, backend);
    transformer(cases, backend);
    cases.check_shared(backend, "tensor/gnn/attention/dropout", dropout);
    cases.check(backend, "tensor/gnn/attention/refusals", refusals);
}

fn add_row(x: &Matrix, bias: &[f64]) -> Matrix {
    layers::add(x, &vec![bias.to_vec(); x.len()])
}

fn gat(cases: &mut Cases, backend: &Backend) {
    /// Weight, vectors of sources and targets.
    fn layer(inputs: &Inputs, edges: &Edges, heads: usize, slope: f64) -> Matrix {
        let p = &inputs.parameters;
        let h = layers::linear(&inputs.x(), &p[0], &[], heads * OUT);
        let scores = messages::messages(edges, |source, target, _| {
            let sources = messages::head_dots(&p[1], &h[source], heads);
            let targets = messages::head_dots(&p[2], &h[target], heads);
            let sums = sources.iter().zip(targets).map(|(s, t)| s + t);
            sums.map(|score| messages::leaky_relu(score, slope)).collect()
        });
        messages::attend(edges, &messages::softmax(edges, &scores), &h)
    }
    let subject = Subject {
        make: |device| GatConvConfig::new(WIDTH, OUT).init(device),
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            let looped = layers::with_loops(&inputs.edges(false), 1.0);
            add_row(&layer(inputs, &looped, 1, 0.2), &inputs.parameters[3])
        },
    };
    add_subject(cases, backend, "gat/default", subject);
    let subject = Subject {
        make: |device| GatConvConfig::new(WIDTH, OUT).with_heads(HEADS).init(device),
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            let looped = layers::with_loops(&inputs.edges(false), 1.0);
            add_row(&layer(inputs, &looped, HEADS, 0.2), &inputs.parameters[3])
        },
    };
    add_subject(cases, backend, "gat/heads", subject);
    let subject = Subject {
        make: |device| {
            let config = GatConvConfig::new(WIDTH, OUT).with_heads(HEADS).with_concat(false);
            let config = config.with_self_loops(false).with_bias(false);
            config.with_negative_slope(0.5).init(device)
        },
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            messages::head_mean(&layer(inputs, &inputs.edges(false), HEADS, 0.5), HEADS)
        },
    };
    add_subject(cases, backend, "gat/mean", subject);
}

fn gat_v2(cases: &mut Cases, backend: &Backend) {
    fn layer(
        [source, target]: [&Matrix; 2],
        vectors: &[f64],
        edges: &Edges,
        heads: usize,
    ) -> Matrix {
        let scores = messages::messages(edges, |from, to, _| {
            let sums = source[from].iter().zip(&target[to]).map(|(s, t)| s + t);
            let sums: Vec<f64> = sums.map(|sum| messages::leaky_relu(sum, 0.2)).collect();
            messages::head_dots(vectors, &sums, heads)
        });
        messages::attend(edges, &messages::softmax(edges, &scores), source)
    }
    let subject = Subject {
        make: |device| GatV2ConvConfig::new(WIDTH, OUT).with_heads(HEADS).init(device),
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            let (p, width) = (&inputs.parameters, HEADS * OUT);
            let looped = layers::with_loops(&inputs.edges(false), 1.0);
            let source = layers::linear(&inputs.x(), &p[0], &p[1], width);
            let target = layers::linear(&inputs.x(), &p[2], &p[3], width);
            add_row(&layer([&source, &target], &p[4], &looped, HEADS), &p[5])
        },
    };
    add_subject(cases, backend, "gat-v2/heads", subject);
    let subject = Subject {
        make: |device| {
            let config = GatV2ConvConfig::new(WIDTH, OUT).with_heads(HEADS).with_concat(false);
            let config = config.with_share_weights(true).with_self_loops(false);
            config.with_bias(false).init(device)
        },
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            let p = &inputs.parameters;
            let h = layers::linear(&inputs.x(), &p[0], &[], HEADS * OUT);
            let y = layer([&h, &h], &p[1], &inputs.edges(false), HEADS);
            messages::head_mean(&y, HEADS)
        },
    };
    add_subject(cases, backend, "gat-v2/mean-shared", subject);
}

fn transformer(cases: &mut Cases, backend: &Backend) {
    /// Of keys, queries and values.
    fn layer(inputs: &Inputs, [key, query, value]: [&Matrix; 3]) -> Matrix {
        let edges = inputs.edges(false);
        let scores = messages::messages(&edges, |source, target, _| {
            let dots = messages::head_dots(&query[target], &key[source], HEADS);
            dots.into_iter().map(|dot| dot / (OUT as f64).sqrt()).collect()
        });
        messages::attend(&edges, &messages::softmax(&edges, &scores), value)
    }
    let subject = Subject {
        make: |device| TransformerConvConfig::new(WIDTH, OUT).with_heads(HEADS).init(device),
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            let p = &inputs.parameters;
            let of = |at: usize| layers::linear(&inputs.x(), &p[at], &p[at + 1], HEADS * OUT);
            layers::add(&layer(inputs, [&of(0), &of(2), &of(4)]), &of(6))
        },
    };
    add_subject(cases, backend, "transformer/heads", subject);
    let subject = Subject {
        make: |device| {
            let config = TransformerConvConfig::new(WIDTH, OUT).with_heads(HEADS);
            config.with_concat(false).with_root_weight(false).with_bias(false).init(device)
        },
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            let of =
                |at: usize| layers::linear(&inputs.x(), &inputs.parameters[at], &[], HEADS * OUT);
            messages::head_mean(&layer(inputs, [&of(0), &of(1), &of(2)]), HEADS)
        },
    };
    add_subject(cases, backend, "transformer/mean", subject);
}

/// With equal features, dropped attention leaves multiples of the share of an edge; the seed
/// decides, and without autodiff nothing is dropped.
fn dropout(backend: &Backend) -> Result<(), String> {
    let last = NODES as u32 - 1;
    let graph = Graph::from_edges(NODES, (0..last).map(|source| (source, last)));
    let graph = graph.map_err(|error| error.to_string())?;
    let tracking = backend.device.clone().autodiff();
    let config = GatConvConfig::new(1, 1).with_dropout(0.5).with_self_loops(false);
    let layer = config.init(&tracking);
    let of = |layer: &GatConv, device: &Device| {
        let x = Tensor::ones([NODES, 1], device);
        let y = layer.forward(&graph, x).into_data();
        f64::from(y.iter::<f32>().last().expect("a node"))
    };
    let run = |seed| {
        tracking.seed(seed);
        of(&layer, &tracking)
    };
    let whole = of(&layer.valid(), &backend.device);
    let draws: Vec<f64> = (0..8).map(|seed| run(seed) / whole).collect();
    let kept = draws.iter().map(|share| share * f64::from(last) / 2.0);
    let integral = kept.clone().all(|kept| (kept - kept.round()).abs() < 1e-3);
    let differ = kept.clone().any(|other| (other - draws[0] * f64::from(last) / 2.0).abs() > 0.5);
    match integral && differ && run(0) / whole == draws[0] {
        true => Ok(()),
        false => Err(format!("{draws:?} of {whole}")),
    }
}

fn refusals(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    let graph = Graph::from_edges(2, [(0, 1)]).map_err(|error| error.to_string())?;
    let ones = |rows, width| Tensor::<2>::ones([rows, width], device);
    let pna = || PnaConvConfig::new(2, 4, vec![1, 1]);
    let between = GatConvConfig::new(2, 2).init(device);
    let refused: [(&str, &dyn Fn()); 9] = [
        ("heads must be at least 1", &|| _ = GatConvConfig::new(2, 2).with_heads(0).init(device)),
        ("heads must be at least 1", &|| {
            _ = TransformerConvConfig::new(2, 2).with_heads(0).init(device)
        }),
        ("cannot share weights", &|| {
            let config = GatV2ConvConfig::new(2, 2).with_share_weights(true);
            _ = config.with_d_target(Some(3)).init(device)
        }),
        ("need `self_loops` off", &|| {
            _ = between.forward_bipartite(graph.bipartite(), ones(2, 2), ones(2, 2))
        }),
        ("edge features need a d_edge", &|| {
            _ = between.forward_with_edges(&graph, ones(2, 2), ones(1, 3))
        }),
        ("messages need edge features", &|| {
            _ = pna().with_d_edge(Some(3)).init(device).forward(&graph, ones(2, 2))
        }),
        ("3 towers do not divide", &|| _ = pna().with_towers(3).init(device)),
        ("counts no edge", &|| _ = PnaConvConfig::new(2, 4, vec![5]).init(device)),
        ("3 graphs for 2 relations", &|| {
            let layer = RgcnConvConfig::new(2, 2, 2).init(device);
            _ = layer.forward(&[graph.clone(), graph.clone(), graph.clone()], ones(2, 2))
        }),
    ];
    for (expected, call) in refused {
        let found = expect_panic(call)?;
        if !found.contains(expected) {
            return Err(format!("`{found}` instead of `{expected}`"));
        }
    }
    Ok(())
}
