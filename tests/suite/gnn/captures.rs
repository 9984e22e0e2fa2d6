//! Captured epochs.

use std::sync::atomic::{AtomicUsize, Ordering};

use burn::{
    config::Config,
    module::{Module, Param},
    nn::Initializer,
    tensor::{Device, Tensor},
};
use sparsek_gnn::{
    Graph,
    datasets::{
        NodeDataset, NodeDatasetParts,
        sbm::{SbmConfig, block_model},
    },
    nn::{
        Activation, AppnpConv, AppnpConvConfig, Architecture, MaxKModelConfig, ModelError,
        NodeModel, NodeModelConfig,
    },
    train::{CheckpointDir, EpochReport, TrainConfig, TrainError, Trainer},
};
use sparsek_tests::{
    backend::{Backend, Kind},
    runner::Cases,
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    cases.check(backend, "tensor/gnn/captured/propagated", |b| {
        let data = narrow(&blocks()?)?;
        let model = PropagatedConfig::new(data.nodes(), data.classes());
        agree(b, &data, &model)
    });
    // Tuning Burn's kernels takes minutes per run on CubeCL's CPU runtime.
    let runs = if backend.kind == Kind::Cpu { 0 } else { 2 };
    let activations = [("maxk", Activation::maxk(8)), ("relu", Activation::Relu)];
    for (name, activation) in activations.into_iter().take(runs) {
        cases.check_shared(backend, format!("tensor/gnn/captured/{name}"), move |b| {
            let data = blocks()?;
            let (features, classes) = (data.feature_width(), data.classes());
            let model = MaxKModelConfig::new(Architecture::Sage, features, 32, classes);
            let model = model.with_layers(2).with_activation(activation).with_dropout(0.3);
            agree(b, &data, &model)
        });
    }
}

fn blocks() -> Result<NodeDataset, String> {
    block_model(&SbmConfig::new(500).with_seed(5)).map_err(|error| error.to_string())
}

/// A feature for each class.
fn narrow(data: &NodeDataset) -> Result<NodeDataset, String> {
    let (width, classes) = (data.feature_width(), data.classes());
    let rows = data.features().chunks(width);
    let parts = NodeDatasetParts {
        name: data.name().into(),
        graph: data.graph().clone(),
        features: rows.flat_map(|row| row[..classes].to_vec()).collect(),
        feature_width: classes,
        labels: data.labels().clone(),
        classes,
        train: data.train().to_vec(),
        val: data.val().to_vec(),
        test: data.test().to_vec(),
    };
    NodeDataset::new(parts).map_err(|error| error.to_string())
}

/// A model without products, which llvmpipe runs.
#[derive(Config, Debug, PartialEq)]
struct PropagatedConfig {
    nodes: usize,
    classes: usize,
}

/// Features plus a row per node, propagated along edges; dropout drops some edges.
#[derive(Module, Debug)]
struct Propagated {
    rows: Param<Tensor<2>>,
    propagation: AppnpConv,
}

impl NodeModelConfig for PropagatedConfig {
    type Model = Propagated;

    fn validate(&self) -> Result<(), ModelError> {
        Ok(())
    }

    fn init(&self, device: &Device) -> Result<Propagated, ModelError> {
        let rows = Initializer::Zeros.init([self.nodes, self.classes], device);
        let propagation = AppnpConvConfig::new(3, 0.2).with_dropout(0.3).init(device);
        Ok(Propagated { rows, propagation })
    }

    fn input_width(&self) -> usize {
        self.classes
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn can_capture(&self) -> bool {
        true
    }
}

impl NodeModel for Propagated {
    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let rows = self.rows.val();
        let x = if rows.device().is_autodiff() { x.autodiff() } else { x };
        self.propagation.forward(graph, x + rows)
    }
}

/// Twelve epochs, the last nine by a graph, equal those of runs of three epochs, which are too
/// short for a graph.
fn agree<C: NodeModelConfig>(
    backend: &Backend,
    data: &NodeDataset,
    model: &C,
) -> Result<(), String> {
    let config = TrainConfig::new().with_epochs(12).with_lr(0.01).with_seed(6);
    let short = [3, 6, 9, 12].map(|epochs| config.clone().with_epochs(epochs));
    let quiet = &mut |_: &EpochReport| Ok(());
    let trainer = |config| Trainer::new(config, model, data).map(Trainer::with_capture);
    let whole = trainer(&config).and_then(|trainer| trainer.run(&backend.device, quiet));
    let whole = whole.map_err(|e| e.to_string())?;

    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("sparsek-captured-{}-{count}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let checkpoint = CheckpointDir::new(&folder);
    let mut parts = Vec::new();
    let done = short.iter().try_for_each(|config| {
        let trainer = match config.epochs {
            3 => trainer(config)?.with_checkpoint(checkpoint.clone())?,
            _ => trainer(config)?.resume(checkpoint.clone())?,
        };
        parts.extend(trainer.run(&backend.device, quiet)?.history);
        Ok(())
    });
    // Fails only where nothing was saved.
    let _ = std::fs::remove_dir_all(&folder);
    done.map_err(|error: TrainError| error.to_string())?;
    for (a, b) in whole.history.iter().zip(&parts) {
        let pairs = [(a.loss, b.loss), (a.train, b.train), (a.val, b.val), (a.test, b.test)];
        if pairs.iter().any(|(a, b)| (a - b).abs() > 1e-5 * b.abs()) {
            return Err(format!("{a:?} instead of {b:?}"));
        }
    }
    let repeats = !matches!(backend.kind, Kind::Flex | Kind::Cpu);
    if whole.captured != repeats {
        return Err(format!("captured: {}, but graphs: {repeats}", whole.captured));
    }
    let losses = [0, 11].map(|epoch| whole.history[epoch].loss);
    if whole.history.len() != 12 || parts.len() != 12 || losses[1] >= losses[0] {
        return Err(format!(
            "{} and {} epochs, losses {losses:?}",
            whole.history.len(),
            parts.len()
        ));
    }
    // Later epochs leave the best model as it was.
    let found =
        trainer(&config).and_then(|trainer| trainer.evaluate(&whole.model, &backend.device));
    let found = found.map_err(|e| e.to_string())?;
    match (found.val - whole.best.val).abs() < 1e-9 {
        true => Ok(()),
        false => Err(format!("the best model scores {found:?}, its epoch {:?}", whole.best)),
    }
}
