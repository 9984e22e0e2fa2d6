//! Graphs, aggregation and training on tensors.

use burn::tensor::{DType, Device, Tensor, TensorData};
use sparsek_gnn::aggregate::{aggregate_max, aggregate_mean, aggregate_sum, aggregate_weighted};
use sparsek_gnn::datasets::{
    NodeDataset, NodeDatasetParts,
    karate::karate_club,
    sbm::{SbmConfig, block_model},
};
use sparsek_gnn::nn::{
    Activation, Aggregator, Architecture, MaxKModelConfig, Representation, SageConvConfig,
};
use sparsek_gnn::train::{EpochReport, Precision, TrainConfig, train};
use sparsek_gnn::{Graph, GraphError};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::{Random, normals},
    oracle::layers::{Edges, Join, join},
    oracle::spmm::Csr,
    runner::{Cases, Verdict},
};

const NODES: usize = 60;

pub fn add(cases: &mut Cases, backend: &Backend) {
    cases.check(backend, "tensor/gnn/graph", |_| graphs());
    cases.check(backend, "tensor/gnn/aggregate", aggregate);
    for aggregator in [Aggregator::Mean, Aggregator::Sum] {
        let name = format!("sage/{aggregator:?}").to_lowercase();
        add_layer(cases, backend, &name, move |b| sage(b, aggregator));
    }
    let architectures = [Architecture::Sage, Architecture::Gcn, Architecture::Gin];
    let count = if backend.kind == Kind::Cpu { 0 } else { 3 };
    for architecture in architectures.into_iter().take(count) {
        let name = format!("train/representations/{architecture:?}").to_lowercase();
        add_layer(cases, backend, &name, move |b| representations_agree(b, architecture));
    }
    let activations = [("maxk", Activation::maxk(8)), ("relu", Activation::Relu)];
    // Tuning Burn's kernels takes minutes per run on CubeCL's CPU runtime.
    let runs = if backend.kind == Kind::Cpu { 0 } else { 2 };
    for (name, activation) in activations.into_iter().take(runs) {
        add_layer(cases, backend, &format!("train/karate/{name}"), move |b| {
            fits(b, &karate_club(), activation, None)
        });
        add_layer(cases, backend, &format!("train/sbm/{name}"), move |b| {
            let data = block_model(&SbmConfig::new(400).with_seed(1)).map_err(|e| e.to_string())?;
            fits(b, &data, activation, None)
        });
        cases.add(backend, format!("tensor/gnn/train/mixed/{name}"), move |b| {
            let lacking = (!b.device.supports_dtype(DType::BF16)).then(|| "no bf16".to_string());
            if let Some(reason) = b.shared_memory_defect().or(lacking) {
                return Ok(Verdict::Skipped(reason));
            }
            let data = block_model(&SbmConfig::new(400).with_seed(1)).map_err(|e| e.to_string())?;
            fits(b, &data, activation, Some(Precision::Bf16)).map(|()| Verdict::Passed)
        });
    }
}

fn add_layer(
    cases: &mut Cases,
    backend: &Backend,
    name: &str,
    body: impl FnOnce(&Backend) -> Result<(), String> + Send + 'static,
) {
    cases.check_shared(backend, format!("tensor/gnn/{name}"), body);
}

/// A directed graph with isolated nodes and a self-loop.
fn edges() -> Vec<(u32, u32)> {
    let mut random = Random::new(5);
    let busy = NODES - 10;
    let mut edges: Vec<(u32, u32)> =
        (0..300).map(|_| (random.below(busy) as u32, random.below(busy) as u32)).collect();
    edges.extend((0..busy as u32).map(|i| (i, 7)));
    edges
}

fn graph() -> Graph {
    Graph::from_edges(NODES, edges()).expect("the edges are in range")
}

fn matrix(weight: impl Fn(usize) -> f64) -> Csr {
    let mut rows = vec![Vec::new(); NODES];
    for (source, target) in edges() {
        rows[target as usize].push(source);
    }
    let mut csr =
        Csr { rows: NODES, cols: NODES, indptr: vec![0], indices: Vec::new(), weights: Vec::new() };
    for mut row in rows {
        row.sort_unstable();
        csr.weights.extend(row.iter().map(|_| weight(row.len())));
        csr.indices.extend(row);
        csr.indptr.push(csr.indices.len() as u32);
    }
    csr
}

fn upload(data: &[f64], width: usize, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = data.iter().map(|&x| x as f32).collect();
    Tensor::from_data(TensorData::new(values, [data.len() / width, width]), device)
}

fn download(x: Tensor<2>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

fn graphs() -> Result<(), String> {
    match Graph::from_edges(3, [(0, 1), (1, 3)]) {
        Err(GraphError::NodeOutOfRange { edge: 1, target_id: 3, nodes: 3, .. }) => {}
        other => {
            return Err(format!(
                "an id out of range: {}",
                other.map_or_else(|e| e.to_string(), |_| "accepted".into())
            ));
        }
    }
    let graph = graph();
    let csr = matrix(|_| 1.0);
    if graph.pattern().indptr() != csr.indptr || graph.pattern().indices() != csr.indices {
        return Err("the rows are not the sources of each target".into());
    }
    let looped = graph.with_self_loops();
    let one_loop = |i: usize| looped.neighbors(i).iter().filter(|&&j| j as usize == i).count() == 1;
    if !(0..NODES).all(one_loop) {
        return Err("a node does not have exactly one self-loop".into());
    }
    let both = graph.symmetrized();
    let mutual = |i: usize| {
        both.neighbors(i).iter().all(|&j| both.neighbors(j as usize).contains(&(i as u32)))
    };
    if graph.is_symmetric() || !both.is_symmetric() || !(0..NODES).all(mutual) {
        return Err("symmetrized is not symmetric".into());
    }
    Ok(())
}

fn aggregate(backend: &Backend) -> Result<(), String> {
    let (graph, width) = (graph(), 19);
    let x = normals(NODES * width, 1);
    let device = &backend.device;
    let epsilon = f64::from(f32::EPSILON);
    let check = |what: &str, found: Tensor<2>, csr: &Csr| {
        csr.spmm(&x, width).check(&download(found), epsilon).map_err(|e| format!("{what}: {e}"))
    };
    check("sum", aggregate_sum(&graph, upload(&x, width, device)), &matrix(|_| 1.0))?;
    check(
        "mean",
        aggregate_mean(&graph, upload(&x, width, device)),
        &matrix(|degree| 1.0 / degree as f64),
    )?;
    let list = edges().into_iter().map(|(s, t)| (s as usize, t as usize, 1.0));
    let edges = Edges { nodes: NODES, list: list.collect() };
    let rows: Vec<Vec<f64>> = x.chunks(width).map(<[f64]>::to_vec).collect();
    let greatest = join(&edges, &rows, Join::Max).concat();
    if download(aggregate_max(&graph, upload(&x, width, device))) != greatest {
        return Err("max: not the maximum of the neighbors".into());
    }
    let mut weighted = matrix(|_| 0.0);
    weighted.weights = normals(weighted.weights.len(), 2);
    let weights = weighted.weights.iter().map(|&w| w as f32).collect::<Vec<f32>>();
    let weights = Tensor::<1>::from_floats(weights.as_slice(), device);
    check("weighted", aggregate_weighted(&graph, weights, upload(&x, width, device)), &weighted)
}

/// Measures the layer's parameters on graphs without edges and with only self-loops, then predicts
/// its output on another graph.
fn sage(backend: &Backend, aggregator: Aggregator) -> Result<(), String> {
    let (d, out) = (12, 7);
    let device = &backend.device;
    let layer = SageConvConfig::new(d, out).with_aggregator(aggregator).init(device);
    let answer = |graph: &Graph, x: &[f64]| download(layer.forward(graph, upload(x, d, device)));
    let mut basis = vec![0.0; NODES * d];
    (0..d).for_each(|i| basis[i * d + i] = 1.0);

    let alone = Graph::from_edges(NODES, []).map_err(|e| e.to_string())?;
    let looped = alone.with_self_loops();
    let (root, both) = (answer(&alone, &basis), answer(&looped, &basis));
    // Rows past the basis equal the bias.
    let bias = &root[d * out..(d + 1) * out];
    let w_root = |i: usize, c: usize| root[i * out + c] - bias[c];
    let w_neighbors = |i: usize, c: usize| both[i * out + c] - root[i * out + c];
    if (0..d * out).all(|n| w_neighbors(n / out, n % out).abs() < 1e-3) {
        return Err("neighbors have no weight".into());
    }

    let x = normals(NODES * d, 3);
    let joined =
        matrix(|degree| if aggregator == Aggregator::Mean { 1.0 / degree as f64 } else { 1.0 })
            .spmm(&x, d);
    let found = answer(&graph(), &x);
    for i in 0..NODES {
        for c in 0..out {
            let (mut y, mut magnitude) = (bias[c], bias[c].abs());
            for j in 0..d {
                y += w_neighbors(j, c) * joined.values[i * d + j] + w_root(j, c) * x[i * d + j];
                magnitude += w_neighbors(j, c).abs() * joined.magnitudes[i * d + j]
                    + (w_root(j, c) * x[i * d + j]).abs();
            }
            // Each term carries the rounding of two probes, the aggregation and the product; tf32
            // rounds to 2^-11.
            let distance = (found[i * out + c] - y).abs();
            if distance.is_nan() || distance > magnitude * 8.0 * 2f64.powi(-11) {
                return Err(format!(
                    "node {i}, channel {c}: {} instead of {y}",
                    found[i * out + c]
                ));
            }
        }
    }
    Ok(())
}

fn fits(
    backend: &Backend,
    data: &NodeDataset,
    activation: Activation,
    precision: Option<Precision>,
) -> Result<(), String> {
    let model = MaxKModelConfig::new(Architecture::Sage, data.feature_width(), 32, data.classes())
        .with_layers(2)
        .with_activation(activation)
        .with_dropout(0.1);
    let config = TrainConfig::new().with_epochs(30).with_lr(0.01).with_seed(3);
    let config = config.with_precision(precision);
    let mut losses = Vec::new();
    let run = train(&config, &model, data, &backend.device, &mut |epoch: &EpochReport| {
        losses.push(epoch.loss);
        Ok(())
    })
    .map_err(|e| e.to_string())?;
    let (first, last) =
        (losses.first().copied().unwrap_or(f64::NAN), losses.last().copied().unwrap_or(f64::NAN));
    if losses.len() < 2 || last.is_nan() || last > first * 2.0 / 3.0 {
        return Err(format!("the loss went from {first} to {last} in {} epochs", losses.len()));
    }
    // On a small graph with one-hot features other nodes cannot be predicted.
    if data.nodes() < 100 {
        let train = run.history.last().map_or(0.0, |epoch| epoch.train);
        let fits = train >= 0.9;
        return fits.then_some(()).ok_or(format!("training accuracy {train}"));
    }
    let guess = 1.0 / data.classes() as f64;
    if run.best.test < guess * 1.2 {
        return Err(format!("test accuracy {}, but guessing gives {guess}", run.best.test));
    }
    Ok(())
}

/// Ten epochs with compressed rows and with dense ones agree up to rounding, with equal dropout. A
/// run with features nudged by rounding errors measures how far rounding moves losses and scores:
/// it changes which elements are selected.
fn representations_agree(backend: &Backend, architecture: Architecture) -> Result<(), String> {
    let data = block_model(&SbmConfig::new(500).with_seed(2)).map_err(|e| e.to_string())?;
    let config = TrainConfig::new().with_epochs(10).with_seed(4);
    let run = |representation, data: &NodeDataset| {
        let model = MaxKModelConfig::new(architecture, data.feature_width(), 32, data.classes())
            .with_layers(2)
            .with_activation(Activation::maxk(8))
            .with_dropout(0.3)
            .with_form(representation);
        let quiet = &mut |_: &EpochReport| Ok(());
        train(&config, &model, data, &backend.device, quiet).map_err(|e| e.to_string())
    };
    let masked = run(Representation::Masked, &data)?.history;
    let compressed = run(Representation::Compressed, &data)?.history;
    let nudged = run(Representation::Masked, &nudged(&data)?)?.history;
    let difference = |other: &[EpochReport]| {
        let pairs = other.iter().zip(&masked);
        pairs.fold([0f64; 2], |[loss, score], (a, b)| {
            let off = (a.loss - b.loss).abs() / b.loss;
            [loss.max(off), score.max((a.val - b.val).abs())]
        })
    };
    let ([loss, score], [nudged_loss, nudged_score]) =
        (difference(&compressed), difference(&nudged));
    // 5 of 250 nodes may have nearly equal scores.
    if !(loss <= (4.0 * nudged_loss).max(1e-3) && score <= (4.0 * nudged_score).max(0.02)) {
        return Err(format!(
            "losses differ by {loss:e} and scores by {score}; nudged runs by {nudged_loss:e} and \
             {nudged_score}"
        ));
    }
    let (first, last) = (masked[0].loss, masked[9].loss);
    match last < first {
        true => Ok(()),
        false => Err(format!("the loss went from {first} to {last}")),
    }
}

/// The dataset with features nudged up or down by rounding errors.
fn nudged(data: &NodeDataset) -> Result<NodeDataset, String> {
    let mut random = Random::new(7);
    let nudge = |x: &f32| x * (1.0 + (random.below(9) as f32 - 4.0) * f32::EPSILON);
    let parts = NodeDatasetParts {
        name: data.name().into(),
        graph: data.graph().clone(),
        features: data.features().iter().map(nudge).collect(),
        feature_width: data.feature_width(),
        labels: data.labels().clone(),
        classes: data.classes(),
        train: data.train().to_vec(),
        val: data.val().to_vec(),
        test: data.test().to_vec(),
    };
    NodeDataset::new(parts).map_err(|error| error.to_string())
}
