//! Graph layers against PyG's formulas, gradients against finite differences.

use burn::tensor::{Device, Tensor};
use sparsek::{
    sparse::{Compressed, sparse_topk},
    topk::Method,
};
use sparsek_gnn::graph::Norm;
use sparsek_gnn::nn::{
    Aggregator, GcnConv, GcnConvConfig, GinConvConfig, GinMlpConfig, SageConv, SageConvConfig,
};
use sparsek_tests::{
    backend::Backend,
    oracle::layers::{self, Edges, Join, Matrix},
    runner::Cases,
};

use super::subject::{Inputs, NODES, OUT, Subject, WIDTH, add_subject};

pub fn add(cases: &mut Cases, backend: &Backend) {
    sage(cases, backend);
    gcn(cases, backend);
    gin(cases, backend);
    compressed(cases, backend);
}

fn sage(cases: &mut Cases, backend: &Backend) {
    fn layer(inputs: &Inputs, how: Join) -> Matrix {
        let p = &inputs.parameters;
        let joined = layers::join(&inputs.edges(false), &inputs.x(), how);
        let neighbors = layers::linear(&joined, &p[0], &p[1], OUT);
        layers::add(&neighbors, &layers::linear(&inputs.x(), &p[2], &[], OUT))
    }
    type Answer = fn(&Inputs) -> Matrix;
    type Make = fn(&Device) -> SageConv;
    let aggregators: [(Aggregator, Make, Answer); 3] = [
        (
            Aggregator::Mean,
            |device| SageConvConfig::new(WIDTH, OUT).init(device),
            |inputs| layer(inputs, Join::Mean),
        ),
        (
            Aggregator::Sum,
            |device| of_aggregator(Aggregator::Sum).init(device),
            |inputs| layer(inputs, Join::Sum),
        ),
        (
            Aggregator::Max,
            |device| of_aggregator(Aggregator::Max).init(device),
            |inputs| layer(inputs, Join::Max),
        ),
    ];
    for (aggregator, make, expected) in aggregators {
        let name = format!("sage/{aggregator:?}").to_lowercase();
        let subject =
            Subject { make, forward: |layer, graph, x, _| layer.forward(graph, x), expected };
        add_subject(cases, backend, &name, subject);
    }
    let subject = Subject {
        make: |device| {
            let config = SageConvConfig::new(WIDTH, OUT).with_project(true).with_normalize(true);
            config.with_root_weight(false).with_bias(false).init(device)
        },
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            let p = &inputs.parameters;
            let projected = layers::relu(&layers::linear(&inputs.x(), &p[0], &p[1], WIDTH));
            let joined = layers::join(&inputs.edges(false), &projected, Join::Mean);
            layers::normalize(&layers::linear(&joined, &p[2], &[], OUT))
        },
    };
    add_subject(cases, backend, "sage/project-normalize", subject);
}

/// PyG's default, and norms with weights, with and without self-loops.
fn gcn(cases: &mut Cases, backend: &Backend) {
    fn layer(inputs: &Inputs, edges: &Edges, norm: layers::Norm) -> Matrix {
        let p = &inputs.parameters;
        let x = layers::linear(&inputs.x(), &p[0], &[], OUT);
        let bias = vec![p[1].clone(); NODES];
        layers::add(&layers::propagate(edges, &x, norm), &bias)
    }
    let subject = Subject {
        make: |device| GcnConvConfig::new(WIDTH, OUT).init(device),
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            let looped = layers::with_loops(&inputs.edges(false), 1.0);
            layer(inputs, &looped, layers::Norm::Both)
        },
    };
    add_subject(cases, backend, "gcn/default", subject);
    let subject = Subject {
        make: improved,
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            let looped = layers::with_loops(&inputs.edges(false), 2.0);
            layer(inputs, &looped, layers::Norm::Both)
        },
    };
    add_subject(cases, backend, "gcn/improved", subject);
    let subject = Subject {
        make: improved,
        forward: |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
        expected: |inputs| {
            let looped = layers::with_loops(&inputs.edges(true), 2.0);
            layer(inputs, &looped, layers::Norm::Both)
        },
    };
    add_subject(cases, backend, "gcn/improved-weighted", subject);
    let subject = Subject {
        make: |device| {
            let config = GcnConvConfig::new(WIDTH, WIDTH).with_weight(false).with_bias(false);
            config.with_self_loops(false).init(device)
        },
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| layers::propagate(&inputs.edges(false), &inputs.x(), layers::Norm::Both),
    };
    add_subject(cases, backend, "gcn/no-weight", subject);
    type Subjects = (&'static str, fn(&Device) -> GcnConv, fn(&Inputs) -> Matrix);
    let norms: [Subjects; 3] = [
        (
            "left",
            |device| of_norm(Norm::Left).init(device),
            |inputs| layer(inputs, &inputs.edges(true), layers::Norm::Left),
        ),
        (
            "right",
            |device| of_norm(Norm::Right).init(device),
            |inputs| layer(inputs, &inputs.edges(true), layers::Norm::Right),
        ),
        (
            "none",
            |device| of_norm(Norm::None).init(device),
            |inputs| layer(inputs, &inputs.edges(true), layers::Norm::None),
        ),
    ];
    for (name, make, expected) in norms {
        let subject = Subject {
            make,
            forward: |layer, graph, x, weights| layer.forward_weighted(graph, x, weights),
            expected,
        };
        add_subject(cases, backend, &format!("gcn/{name}-weighted"), subject);
    }
}

fn improved(device: &Device) -> GcnConv {
    let config = GcnConvConfig::new(WIDTH, OUT);
    config.with_improved(true).init(device)
}

fn of_aggregator(aggregator: Aggregator) -> SageConvConfig {
    SageConvConfig::new(WIDTH, OUT).with_aggregator(aggregator)
}

fn of_norm(norm: Norm) -> GcnConvConfig {
    GcnConvConfig::new(WIDTH, OUT).with_self_loops(false).with_norm(norm)
}

fn gin(cases: &mut Cases, backend: &Backend) {
    let subject = Subject {
        make: |device| GinConvConfig::new().with_train_eps(true).init(device),
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            let root = layers::scale(&inputs.x(), 1.0 + inputs.parameters[0][0]);
            layers::add(&layers::join(&inputs.edges(false), &inputs.x(), Join::Sum), &root)
        },
    };
    add_subject(cases, backend, "gin/trained-eps", subject);
    let subject = Subject {
        make: |device| {
            let mlp = GinMlpConfig::new(WIDTH, 5, OUT);
            GinConvConfig::new().with_eps(0.25).with_mlp(Some(mlp)).init(device)
        },
        forward: |layer, graph, x, _| layer.forward(graph, x),
        expected: |inputs| {
            let p = &inputs.parameters;
            let root = layers::scale(&inputs.x(), 1.25);
            let sum =
                layers::add(&layers::join(&inputs.edges(false), &inputs.x(), Join::Sum), &root);
            let hidden = layers::relu(&layers::linear(&sum, &p[0], &p[1], 5));
            layers::linear(&hidden, &p[2], &p[3], OUT)
        },
    };
    add_subject(cases, backend, "gin/mlp", subject);
}

const K: usize = 3;

fn compress(x: Tensor<2>) -> Compressed {
    sparse_topk(x, K, Method::Exact)
}

/// Layers of compressed rows; gradients flow to all elements.
fn compressed(cases: &mut Cases, backend: &Backend) {
    let subject = Subject {
        make: |device| SageConvConfig::new(WIDTH, OUT).init(device),
        forward: |layer, graph, x, _| layer.forward_compressed(graph, &compress(x)),
        expected: |inputs| {
            let (p, x) = (&inputs.parameters, layers::keep(&inputs.x(), K));
            let joined = layers::join(&inputs.edges(false), &x, Join::Mean);
            let neighbors = layers::linear(&joined, &p[0], &p[1], OUT);
            layers::add(&neighbors, &layers::linear(&x, &p[2], &[], OUT))
        },
    };
    add_subject(cases, backend, "sage/compressed", subject);
    let subject = Subject {
        make: improved,
        forward: |layer, graph, x, _| layer.forward_compressed(graph, &compress(x)),
        expected: |inputs| {
            let looped = layers::with_loops(&inputs.edges(false), 2.0);
            let x = layers::keep(&inputs.x(), K);
            let joined = layers::propagate(&looped, &x, layers::Norm::Both);
            let p = &inputs.parameters;
            layers::linear(&joined, &p[0], &p[1], OUT)
        },
    };
    add_subject(cases, backend, "gcn/compressed", subject);
    let subject = Subject {
        make: improved,
        forward: |layer, graph, x, weights| {
            layer.forward_weighted_compressed(graph, &compress(x), weights)
        },
        expected: |inputs| {
            let looped = layers::with_loops(&inputs.edges(true), 2.0);
            let x = layers::keep(&inputs.x(), K);
            let joined = layers::propagate(&looped, &x, layers::Norm::Both);
            let p = &inputs.parameters;
            layers::linear(&joined, &p[0], &p[1], OUT)
        },
    };
    add_subject(cases, backend, "gcn/compressed-weighted", subject);
    compressed_norms(cases, backend);
    let subject = Subject {
        make: |device| GinConvConfig::new().with_train_eps(true).init(device),
        forward: |layer, graph, x, _| layer.forward_compressed(graph, &compress(x)),
        expected: |inputs| {
            let x = layers::keep(&inputs.x(), K);
            let root = layers::scale(&x, 1.0 + inputs.parameters[0][0]);
            layers::add(&layers::join(&inputs.edges(false), &x, Join::Sum), &root)
        },
    };
    add_subject(cases, backend, "gin/compressed", subject);
    let subject = Subject {
        make: |device| {
            let mlp = GinMlpConfig::new(WIDTH, 5, OUT);
            GinConvConfig::new().with_mlp(Some(mlp)).init(device)
        },
        forward: |layer, graph, x, _| layer.forward_compressed(graph, &compress(x)),
        expected: |inputs| {
            let (p, x) = (&inputs.parameters, layers::keep(&inputs.x(), K));
            let sum = layers::add(&layers::join(&inputs.edges(false), &x, Join::Sum), &x);
            let hidden = layers::relu(&layers::linear(&sum, &p[0], &p[1], 5));
            layers::linear(&hidden, &p[2], &p[3], OUT)
        },
    };
    add_subject(cases, backend, "gin/compressed-mlp", subject);
}

fn compressed_norms(cases: &mut Cases, backend: &Backend) {
    fn gcn(inputs: &Inputs, norm: layers::Norm) -> Matrix {
        let (p, x) = (&inputs.parameters, layers::keep(&inputs.x(), K));
        let joined = layers::propagate(&inputs.edges(false), &x, norm);
        layers::linear(&joined, &p[0], &p[1], OUT)
    }
    type Subjects<M> = (&'static str, fn(&Device) -> M, fn(&Inputs) -> Matrix);
    let norms: [Subjects<GcnConv>; 3] = [
        (
            "left",
            |device| of_norm(Norm::Left).init(device),
            |inputs| gcn(inputs, layers::Norm::Left),
        ),
        (
            "right",
            |device| of_norm(Norm::Right).init(device),
            |inputs| gcn(inputs, layers::Norm::Right),
        ),
        (
            "none",
            |device| of_norm(Norm::None).init(device),
            |inputs| gcn(inputs, layers::Norm::None),
        ),
    ];
    for (name, make, expected) in norms {
        let subject = Subject {
            make,
            forward: |layer, graph, x, _| layer.forward_compressed(graph, &compress(x)),
            expected,
        };
        add_subject(cases, backend, &format!("gcn/compressed-{name}"), subject);
    }
    fn sage(inputs: &Inputs, how: Join) -> Matrix {
        let (p, x) = (&inputs.parameters, layers::keep(&inputs.x(), K));
        let joined = layers::join(&inputs.edges(false), &x, how);
        let neighbors = layers::linear(&joined, &p[0], &p[1], OUT);
        layers::add(&neighbors, &layers::linear(&x, &p[2], &[], OUT))
    }
    let aggregators: [Subjects<SageConv>; 2] = [
        (
            "sum",
            |device| of_aggregator(Aggregator::Sum).init(device),
            |inputs| sage(inputs, Join::Sum),
        ),
        (
            "max",
            |device| of_aggregator(Aggregator::Max).init(device),
            |inputs| sage(inputs, Join::Max),
        ),
    ];
    for (name, make, expected) in aggregators {
        let subject = Subject {
            make,
            forward: |layer, graph, x, _| layer.forward_compressed(graph, &compress(x)),
            expected,
        };
        add_subject(cases, backend, &format!("sage/compressed-{name}"), subject);
    }
}
