mod batches;
mod checkpoints;
mod devices;
mod logs;

use std::{
    env::temp_dir,
    fs,
    path::PathBuf,
    process::id,
    sync::{Mutex, MutexGuard, PoisonError},
};

use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor, TensorData},
};

use super::*;
use crate::{
    datasets::{
        Labels, NodeDataset, NodeDatasetParts, karate,
        sbm::{SbmConfig, block_model},
    },
    graph::Graph,
    nn::{Activation, Architecture, MaxKModel, MaxKModelConfig, ModelError},
};

/// One random stream per process: compared runs must not overlap.
static STREAM: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    STREAM.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(temp_dir().join(format!("sparsek-gnn-{}-{name}", id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sage(data: &NodeDataset) -> MaxKModelConfig {
    MaxKModelConfig::new(Architecture::Sage, data.feature_width(), 16, data.classes())
        .with_layers(2)
        .with_activation(Activation::maxk(4))
}

fn quiet(_: &EpochReport) -> std::io::Result<()> {
    Ok(())
}

fn curves(outcome: &TrainOutcome<MaxKModel>) -> Vec<[f64; 4]> {
    let row = |r: &EpochReport| [r.loss, r.train, r.val, r.test];
    outcome.history.iter().map(row).collect()
}

#[test]
fn a_graph_network_learns_the_blocks() {
    let _alone = alone();
    let data = block_model(&SbmConfig::new(1000)).unwrap();
    let config = TrainConfig::new().with_epochs(40).with_lr(0.01);
    let run = train(&config, &sage(&data), &data, &Device::flex(), &mut quiet).unwrap();
    assert!(run.best.test > 0.6, "{:?}", run.best);
    assert_eq!((run.epochs, run.history.len()), (40, 40));
}

#[test]
fn equal_seeds_give_equal_runs_and_patience_ends_them() {
    let _alone = alone();
    let data = karate::karate_club();
    let config = TrainConfig::new().with_epochs(60);
    let run =
        |config: &TrainConfig| train(config, &sage(&data), &data, &Device::flex(), &mut quiet);
    let whole = run(&config).unwrap();
    assert_eq!(curves(&whole), curves(&run(&config).unwrap()));
    assert_ne!(
        curves(&whole),
        curves(&run(&config.clone().with_seed(1)).unwrap())
    );

    let none = run(&config.clone().with_patience(Some(0))).expect_err("an error");
    assert!(
        none.to_string().contains("patience must be at least 1"),
        "{none}"
    );

    let short = run(&config.with_patience(Some(5))).unwrap();
    assert_eq!(short.epochs, short.best.epoch + 5);
    assert_eq!(curves(&short), curves(&whole)[..short.epochs]);
}

#[test]
fn a_resumed_run_takes_the_steps_of_the_whole_one() {
    let _alone = alone();
    let (data, device, scratch) = (
        karate::karate_club(),
        Device::flex(),
        Scratch::new("resume"),
    );
    let (model, config) = (
        sage(&data),
        TrainConfig::new().with_epochs(20).with_weight_decay(1e-3),
    );
    let whole = train(&config, &model, &data, &device, &mut quiet).unwrap();

    let checkpoint = CheckpointDir::new(&scratch.0);
    let half = config.clone().with_epochs(9);
    let trainer = || Trainer::new(&half, &model, &data).unwrap();
    let first = trainer()
        .with_checkpoint(checkpoint.clone())
        .unwrap()
        .run(&device, &mut quiet)
        .unwrap();
    assert!(
        trainer().with_checkpoint(checkpoint.clone()).is_err(),
        "a run must not be overwritten"
    );
    let rest = Trainer::new(&config, &model, &data)
        .unwrap()
        .resume(checkpoint.clone())
        .unwrap();
    let rest = rest.run(&device, &mut quiet).unwrap();
    assert_eq!([curves(&first), curves(&rest)].concat(), curves(&whole));
    assert_eq!(rest.best.epoch, whole.best.epoch);

    let (model, best) = checkpoint.best_model::<MaxKModelConfig>(&device).unwrap();
    let found = evaluate(&config, &model, &best, &data, &device).unwrap();
    assert_eq!((found.val, found.test), (rest.best.val, rest.best.test));
}

#[test]
fn bad_configurations_are_named() {
    let (data, config) = (karate::karate_club(), TrainConfig::new().with_epochs(3));
    let model = sage(&data);
    let error = |model: MaxKModelConfig| {
        Trainer::new(&config, &model, &data)
            .unwrap_err()
            .to_string()
    };
    assert!(error(model.clone().with_activation(Activation::maxk(17))).contains("17"));
    assert!(error(model.clone().with_dropout(1.0)).contains("dropout"));
    let other = MaxKModelConfig::new(Architecture::Sage, 7, 16, 2);
    assert!(error(other).contains("34 features"));
}

/// Sets follow from blocks.
fn sets() -> NodeDataset {
    let base = block_model(&SbmConfig::new(600).with_blocks(3)).unwrap();
    let classes = base.labels().classes().unwrap();
    let sets = classes
        .iter()
        .flat_map(|&class| [class == 0, class != 1, class == 2, class < 2]);
    NodeDataset::new(NodeDatasetParts {
        name: "sets".to_string(),
        graph: base.graph().clone(),
        features: base.features().to_vec(),
        feature_width: base.feature_width(),
        labels: Labels::Sets(sets.collect()),
        classes: 4,
        train: base.train().to_vec(),
        val: base.val().to_vec(),
        test: base.test().to_vec(),
    })
    .unwrap()
}

#[test]
fn every_architecture_learns_sets_of_classes() {
    let _alone = alone();
    let data = sets();
    for architecture in [Architecture::Sage, Architecture::Gcn, Architecture::Gin] {
        let model = MaxKModelConfig::new(architecture, data.feature_width(), 16, data.classes())
            .with_layers(2)
            .with_dropout(0.1)
            .with_activation(Activation::maxk(4));
        for (metric, least) in [(Metric::MicroF1, 0.8), (Metric::RocAuc, 0.85)] {
            let config = TrainConfig::new()
                .with_epochs(40)
                .with_lr(0.01)
                .with_metric(Some(metric));
            let run = train(&config, &model, &data, &Device::flex(), &mut quiet).unwrap();
            let (first, last) = (run.history[0], run.history[39]);
            assert!(
                last.loss < first.loss * 0.7,
                "{architecture:?} {first:?} {last:?}"
            );
            assert!(run.best.test > least, "{architecture:?} {:?}", run.best);
        }
    }
}

#[test]
fn metrics_on_the_device_are_those_of_the_host() {
    let _alone = alone();
    let device = Device::flex();
    for data in [sets(), block_model(&SbmConfig::new(500)).unwrap()] {
        let model =
            MaxKModelConfig::new(Architecture::Gcn, data.feature_width(), 8, data.classes());
        device.seed(3);
        let built = model.init(&device).unwrap();
        let config = TrainConfig::new();
        let found = evaluate(&config, &model, &built, &data, &device).unwrap();
        let x = TensorData::new(
            data.features().to_vec(),
            [data.nodes(), data.feature_width()],
        );
        let logits = built.forward(data.graph(), Tensor::from_data(x, &device));
        let logits = logits.try_into_vec_as::<f32>().unwrap();
        let metric = Metric::default_for(&data);
        let score = |nodes| metric.score(&logits, &data, nodes);
        let scores = [score(data.train()), score(data.val()), score(data.test())];
        for (a, b) in [found.train, found.val, found.test].into_iter().zip(scores) {
            assert!((a - b).abs() < 1e-6, "{metric:?}: {found:?}, {scores:?}");
        }
    }
}

#[test]
fn what_does_not_fit_in_memory_is_refused_before_training() {
    let karate = karate::karate_club();
    let all: Vec<u32> = (0..5).collect();
    let wide = NodeDatasetParts {
        name: "wide".to_string(),
        graph: Graph::from_edges(5, []).unwrap(),
        features: vec![0.0; 5],
        feature_width: 1,
        labels: Labels::Classes(vec![0, 1, 2, 3, 4]),
        classes: 1 << 50,
        train: all[..3].to_vec(),
        val: vec![3],
        test: vec![4],
    };
    let wide = NodeDataset::new(wide).unwrap();
    let config = TrainConfig::new();
    let mut sizes = Vec::new();
    for data in [&karate, &wide] {
        let mut model = sage(data);
        (model.d_hidden, model.layers) = match data.name() {
            "wide" => (16, 2),
            _ => (1 << 40, 1 << 20),
        };
        let error = Trainer::new(&config, &model, data).unwrap_err();
        let refused = matches!(error, TrainError::Model(ModelError::Memory(_)));
        assert!(refused, "{error}");
        sizes.push(error.to_string());
    }
    assert!(
        sizes.iter().all(|line| line.contains("SPARSEK_MAX_MEMORY")),
        "{sizes:?}"
    );
    let model = sage(&karate);
    assert!(model.training_bytes(34) > 34 * 16 * 2 * 4);
    assert!(Trainer::new(&config, &model, &karate).is_ok());
}
