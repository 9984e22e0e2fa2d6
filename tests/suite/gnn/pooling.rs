//! Pooling of batched graphs against PyG's numbers (tests/pyg/pooling.json, which
//! tests/pyg/pooling.py writes) and plain loops, gradients against finite differences.

use std::sync::LazyLock;

use burn::{
    nn::Relu,
    tensor::{Device, Tensor, TensorData},
};
use sparsek_gnn::{
    Graph,
    aggregate::aggregate_sum,
    graph::GraphBatch,
    nn::{
        Pooled, SagPooling, SagPoolingConfig, Set2SetConfig, TopkPooling, TopkPoolingConfig,
        global_max_pool, global_mean_pool, global_sum_pool,
    },
};
use sparsek_tests::{
    backend::Backend,
    data::Random,
    oracle::{
        layers::{self, Edges, Join, Matrix},
        messages::Reduce,
        pooling,
    },
    runner::Cases,
};

use super::{
    fixture::{File, Fixture, Forward, lists, numbers, parse},
    subject::{Inputs, NODES, Subject, WIDTH, add_subject},
};

static FILE: File = LazyLock::new(|| parse(include_str!("../../pyg/pooling.json")));

/// The batch of the file.
static BATCH: LazyLock<GraphBatch> = LazyLock::new(|| {
    let sizes: Vec<usize> = numbers(&FILE["sizes"]).into_iter().map(|size| size as usize).collect();
    let pairs = lists(&FILE["edges"]).into_iter().map(|pair| (pair[0] as usize, pair[1] as usize));
    join(&sizes, &pairs.collect::<Vec<_>>())
});

const IN: usize = 4;

/// Of the subjects, which have 11 nodes.
const SIZES: [usize; 5] = [3, 0, 6, 1, 1];

pub fn add(cases: &mut Cases, backend: &Backend) {
    let mut fixture = Fixture::new(cases, backend, &FILE, "pyg/pooling");
    let globals: [(&'static str, Forward<Relu>); 3] = [
        ("global/sum", |_, _, x, _| global_sum_pool(&BATCH, x)),
        ("global/mean", |_, _, x, _| global_mean_pool(&BATCH, x)),
        ("global/max", |_, _, x, _| global_max_pool(&BATCH, x)),
    ];
    for (name, forward) in globals {
        fixture.add(name, |_| Relu::new(), forward);
    }
    let topk: Forward<TopkPooling> = |layer, _, x, _| all(layer.forward(&BATCH, x));
    fixture.add("topk/default", |device| TopkPoolingConfig::new(IN).init(device), topk);
    fixture.add(
        "topk/ratio-multiplier",
        |device| TopkPoolingConfig::new(IN).with_ratio(0.7).with_multiplier(2.0).init(device),
        topk,
    );
    let sag: Forward<SagPooling> = |layer, _, x, _| all(layer.forward(&BATCH, x * 0.1));
    fixture.add("sag/default", |device| SagPoolingConfig::new(IN).init(device), sag);
    fixture.add(
        "sag/ratio-multiplier",
        |device| SagPoolingConfig::new(IN).with_ratio(0.3).with_multiplier(0.5).init(device),
        sag,
    );
    fixture.add(
        "set2set",
        |device| Set2SetConfig::new(IN, 3).init(device),
        |layer, _, x, _| layer.forward(&BATCH, x),
    );
    fixture.finish();
    global(cases, backend);
    kept(cases, backend);
    cases.check(backend, "tensor/gnn/pooling/large", large);
}

/// The graphs of these sizes, from edges of their union.
fn join(sizes: &[usize], pairs: &[(usize, usize)]) -> GraphBatch {
    let graph = |nodes: std::ops::Range<usize>| {
        let own = pairs.iter().filter(|(source, _)| nodes.contains(source));
        let ids = own.map(|(s, t)| ((s - nodes.start) as u32, (t - nodes.start) as u32));
        Graph::from_edges(nodes.len(), ids).expect("edges stay in their graph")
    };
    let graphs: Vec<Graph> = pooling::ranges(sizes).into_iter().map(graph).collect();
    GraphBatch::new(&graphs.iter().collect::<Vec<_>>()).expect("there are graphs")
}

/// Features, sums over edges and sums over graphs of a pooled batch, side by side.
fn all(pooled: Pooled) -> Tensor<2> {
    let Pooled { x, batch, .. } = pooled;
    let sums = aggregate_sum(batch.graph(), x.clone());
    let graphs = global_sum_pool(&batch, x.clone());
    let graphs = batch.readout(&x.device()).gather_targets(graphs);
    Tensor::cat(vec![x, sums, graphs], 1)
}

/// Within each graph of the subjects: hubs, loops, a repeated edge, an isolated node.
fn pairs() -> Vec<(usize, usize)> {
    let mut random = Random::new(8);
    let mut list = vec![(1, 0), (1, 0), (2, 1), (3, 3), (9, 9)];
    list.extend((0..12).map(|_| (3 + random.below(6), 3 + random.below(5))));
    list.extend((3..9).map(|source| (source, 4)));
    list
}

static SUBJECT: LazyLock<GraphBatch> = LazyLock::new(|| join(&SIZES, &pairs()));

fn edges() -> Edges {
    let list = pairs().into_iter().map(|(source, target)| (source, target, 1.0)).collect();
    Edges { nodes: NODES, list }
}

fn global(cases: &mut Cases, backend: &Backend) {
    type Pool = (&'static str, Forward<Relu>, fn(&Inputs) -> Matrix);
    let pools: [Pool; 3] = [
        (
            "sum",
            |_, _, x, _| global_sum_pool(&SUBJECT, x),
            |inputs| pooling::pool(&SIZES, &inputs.x(), Reduce::Sum),
        ),
        (
            "mean",
            |_, _, x, _| global_mean_pool(&SUBJECT, x),
            |inputs| pooling::pool(&SIZES, &inputs.x(), Reduce::Mean),
        ),
        (
            "max",
            |_, _, x, _| global_max_pool(&SUBJECT, x),
            |inputs| pooling::pool(&SIZES, &inputs.x(), Reduce::Max),
        ),
    ];
    for (name, forward, expected) in pools {
        let subject = Subject { make: |_| Relu::new(), forward, expected };
        add_subject(cases, backend, &format!("global-pool/{name}"), subject);
    }
}

fn kept(cases: &mut Cases, backend: &Backend) {
    /// As [`all`].
    fn expected(x: &Matrix, scores: &[f64], ratio: f64) -> Matrix {
        let kept = pooling::best(&SIZES, scores, ratio);
        let x = pooling::scale(x, scores, &kept);
        let sums = layers::join(&pooling::induced(&edges(), &kept), &x, Join::Sum);
        let ranges = pooling::ranges(&SIZES);
        let of = |node: usize| ranges.iter().position(|range| range.contains(&node));
        let sizes: Vec<usize> = (0..SIZES.len())
            .map(|graph| kept.iter().filter(|&&node| of(node) == Some(graph)).count())
            .collect();
        let graphs = pooling::pool(&sizes, &x, Reduce::Sum);
        let row = |row: usize| {
            let graph = of(kept[row]).expect("a graph");
            [&x[row][..], &sums[row], &graphs[graph]].concat()
        };
        (0..kept.len()).map(row).collect()
    }
    let subject = Subject {
        make: |device| TopkPoolingConfig::new(WIDTH).init(device),
        forward: |layer, _, x, _| all(layer.forward(&SUBJECT, x)),
        expected: |inputs| {
            let p = &inputs.parameters[0];
            let length = p.iter().map(|p| p * p).sum::<f64>().sqrt();
            let score = |row: &Vec<f64>| {
                (row.iter().zip(p).map(|(x, p)| x * p).sum::<f64>() / length).tanh()
            };
            expected(&inputs.x(), &inputs.x().iter().map(score).collect::<Vec<_>>(), 0.5)
        },
    };
    add_subject(cases, backend, "topk-pooling", subject);
    let subject = Subject {
        make: |device| SagPoolingConfig::new(WIDTH).with_ratio(0.4).init(device),
        // Larger scores would round to equal ones in f32, and tie.
        forward: |layer, _, x, _| all(layer.forward(&SUBJECT, x * 0.1)),
        expected: |inputs| {
            let (p, x) = (&inputs.parameters, layers::scale(&inputs.x(), 0.1));
            let sums = layers::join(&edges(), &x, Join::Sum);
            let neighbors = layers::linear(&sums, &p[0], &p[1], 1);
            let scores = layers::add(&neighbors, &layers::linear(&x, &p[2], &[], 1));
            let scores: Vec<f64> = scores.concat().into_iter().map(f64::tanh).collect();
            expected(&x, &scores, 0.4)
        },
    };
    add_subject(cases, backend, "sag-pooling", subject);
    let subject = Subject {
        make: |device| Set2SetConfig::new(WIDTH, 2).init(device),
        forward: |layer, _, x, _| layer.forward(&SUBJECT, x),
        expected: |inputs| pooling::set2set(&SIZES, &inputs.x(), &inputs.parameters, 2),
    };
    add_subject(cases, backend, "set2set", subject);
}

/// Graphs of many nodes beside small and empty ones: several parts per row; equal to the bit again.
fn large(backend: &Backend) -> Result<(), String> {
    let sizes = [3000, 0, 1, 1500, 0];
    let batch = join(&sizes, &[]);
    let nodes: usize = sizes.iter().sum();
    let mut random = Random::new(4);
    let values: Vec<f32> = (0..nodes * 3).map(|_| random.normal() as f32).collect();
    let rows = |values: &[f32]| -> Matrix {
        values.chunks(3).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect()
    };
    type Pool = fn(&GraphBatch, Tensor<2>) -> Tensor<2>;
    let pools: [(Pool, Reduce); 3] = [
        (global_sum_pool, Reduce::Sum),
        (global_mean_pool, Reduce::Mean),
        (global_max_pool, Reduce::Max),
    ];
    let run = |pool: Pool, device: &Device| -> Vec<f32> {
        let x = Tensor::from_data(TensorData::new(values.clone(), [nodes, 3]), device);
        pool(&batch, x).into_data().iter::<f32>().collect()
    };
    for (pool, how) in pools {
        let found = run(pool, &backend.device);
        if run(pool, &backend.device) != found {
            return Err(format!("{how:?} differs from itself"));
        }
        let expected = pooling::pool(&sizes, &rows(&values), how).concat();
        let off = found.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs());
        let off = off.fold(0.0, f64::max);
        if found.len() != expected.len() || off > 1e-3 {
            return Err(format!("{how:?}: off by {off:e}"));
        }
    }
    Ok(())
}
