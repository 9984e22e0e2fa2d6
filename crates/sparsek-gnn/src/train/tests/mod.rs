mod batches;
mod captures;
mod checkpoints;
mod devices;
mod logs;
mod precision;
mod recipes;

use std::{
    env::temp_dir,
    fs,
    path::PathBuf,
    process::id,
    sync::atomic::{AtomicUsize, Ordering},
};

use burn::{
    config::Config,
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use rstest::{fixture, rstest};

use super::*;
use crate::{
    datasets::{
        Labels, NodeDataset, NodeDatasetParts, karate,
        sbm::{SbmConfig, block_model},
    },
    fixtures::{Alone, alone, device},
    graph::Graph,
    nn::{Activation, Architecture, MaxKModel, MaxKModelConfig, ModelError},
};

struct Scratch(PathBuf);

#[fixture]
fn scratch() -> Scratch {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Scratch(temp_dir().join(format!("sparsek-gnn-train-{}-{count}", id())))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[fixture]
fn karate_club() -> NodeDataset {
    karate::karate_club()
}

fn blocks(nodes: usize) -> NodeDataset {
    block_model(&SbmConfig::new(nodes)).unwrap()
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

#[rstest]
fn a_graph_network_learns_the_blocks(_alone: Alone, device: Device) {
    let data = blocks(1000);
    let config = TrainConfig::new().with_epochs(40).with_lr(0.01);
    let run = train(&config, &sage(&data), &data, &device, &mut quiet).unwrap();
    assert!(run.best.test > 0.6, "{:?}", run.best);
    assert_eq!((run.epochs, run.history.len()), (40, 40));
}

#[rstest]
fn equal_seeds_give_equal_runs_and_patience_ends_them(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
) {
    let config = TrainConfig::new().with_epochs(60);
    let run = |config: &TrainConfig| train(config, &sage(&data), &data, &device, &mut quiet);
    let whole = run(&config).unwrap();
    assert_eq!(curves(&whole), curves(&run(&config).unwrap()));
    assert_ne!(curves(&whole), curves(&run(&config.clone().with_seed(1)).unwrap()));

    let none = run(&config.clone().with_patience(Some(0))).expect_err("an error");
    assert!(none.to_string().contains("patience must be at least 1"), "{none}");

    let short = run(&config.with_patience(Some(5))).unwrap();
    assert_eq!(short.epochs, short.best.epoch + 5);
    assert_eq!(curves(&short), curves(&whole)[..short.epochs]);
}

#[rstest]
fn a_resumed_run_takes_the_steps_of_the_whole_one(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
    scratch: Scratch,
) {
    let (model, config) = (sage(&data), TrainConfig::new().with_epochs(20).with_weight_decay(1e-3));
    let whole = train(&config, &model, &data, &device, &mut quiet).unwrap();

    let checkpoint = CheckpointDir::new(&scratch.0);
    let half = config.clone().with_epochs(9);
    let trainer = || Trainer::new(&half, &model, &data).unwrap();
    let first =
        trainer().with_checkpoint(checkpoint.clone()).unwrap().run(&device, &mut quiet).unwrap();
    assert!(
        trainer().with_checkpoint(checkpoint.clone()).is_err(),
        "a run must not be overwritten"
    );
    let rest = Trainer::new(&config, &model, &data).unwrap().resume(checkpoint.clone()).unwrap();
    let rest = rest.run(&device, &mut quiet).unwrap();
    assert_eq!([curves(&first), curves(&rest)].concat(), curves(&whole));
    assert_eq!(rest.best.epoch, whole.best.epoch);

    let (model, best) = checkpoint.best_model::<MaxKModelConfig>(&device).unwrap();
    let found = evaluate(&config, &model, &best, &data, &device).unwrap();
    assert_eq!((found.val, found.test), (rest.best.val, rest.best.test));
}

#[rstest]
#[case::k(|model: MaxKModelConfig| model.with_activation(Activation::maxk(17)), "17")]
#[case::dropout(|model: MaxKModelConfig| model.with_dropout(1.0), "dropout")]
#[case::features(
    |_: MaxKModelConfig| MaxKModelConfig::new(Architecture::Sage, 7, 16, 2),
    "34 features"
)]
fn bad_configurations_are_named(
    _alone: Alone,
    #[from(karate_club)] data: NodeDataset,
    #[case] change: fn(MaxKModelConfig) -> MaxKModelConfig,
    #[case] word: &str,
) {
    let config = TrainConfig::new().with_epochs(3);
    let error = Trainer::new(&config, &change(sage(&data)), &data).unwrap_err();
    assert!(error.to_string().contains(word), "{error}");
}

fn sets() -> NodeDataset {
    let base = block_model(&SbmConfig::new(600).with_blocks(3)).unwrap();
    let classes = base.labels().classes().unwrap();
    let sets = classes.iter().flat_map(|&class| [class == 0, class != 1, class == 2, class < 2]);
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

#[rstest]
#[case::micro_f1(Metric::MicroF1, 0.8)]
#[case::roc_auc(Metric::RocAuc, 0.85)]
fn every_architecture_learns_sets_of_classes(
    _alone: Alone,
    device: Device,
    #[values(Architecture::Sage, Architecture::Gcn, Architecture::Gin)] architecture: Architecture,
    #[case] metric: Metric,
    #[case] least: f64,
) {
    let data = sets();
    let model = MaxKModelConfig::new(architecture, data.feature_width(), 16, data.classes())
        .with_layers(2)
        .with_dropout(0.1)
        .with_activation(Activation::maxk(4));
    let config = TrainConfig::new().with_epochs(40).with_lr(0.01).with_metric(Some(metric));
    let run = train(&config, &model, &data, &device, &mut quiet).unwrap();
    let (first, last) = (run.history[0], run.history[39]);
    assert!(last.loss < first.loss * 0.7, "{first:?} {last:?}");
    assert!(run.best.test > least, "{:?}", run.best);
}

#[rstest]
#[case::sets(sets())]
#[case::classes(blocks(500))]
fn metrics_on_the_device_are_those_of_the_host(
    _alone: Alone,
    device: Device,
    #[case] data: NodeDataset,
) {
    let model = MaxKModelConfig::new(Architecture::Gcn, data.feature_width(), 8, data.classes());
    device.seed(3);
    let built = model.init(&device).unwrap();
    let config = TrainConfig::new();
    let found = evaluate(&config, &model, &built, &data, &device).unwrap();
    let x = TensorData::new(data.features().to_vec(), [data.nodes(), data.feature_width()]);
    let logits = built.forward(data.graph(), Tensor::from_data(x, &device));
    let logits = logits.try_into_vec_as::<f32>().unwrap();
    let metric = Metric::default_for(&data);
    let score = |nodes| metric.score(&logits, &data, nodes);
    let scores = [score(data.train()), score(data.val()), score(data.test())];
    for (a, b) in [found.train, found.val, found.test].into_iter().zip(scores) {
        assert!((a - b).abs() < 1e-6, "{metric:?}: {found:?}, {scores:?}");
    }
}

/// 2^50 classes.
fn wide() -> NodeDataset {
    NodeDataset::new(NodeDatasetParts {
        name: "wide".to_string(),
        graph: Graph::from_edges(5, []).unwrap(),
        features: vec![0.0; 5],
        feature_width: 1,
        labels: Labels::Classes(vec![0, 1, 2, 3, 4]),
        classes: 1 << 50,
        train: vec![0, 1, 2],
        val: vec![3],
        test: vec![4],
    })
    .unwrap()
}

#[rstest]
#[case::model(karate_club(), 1 << 40, 1 << 20)]
#[case::classes(wide(), 16, 2)]
fn what_does_not_fit_in_memory_is_refused_before_training(
    _alone: Alone,
    #[case] data: NodeDataset,
    #[case] hidden: usize,
    #[case] layers: usize,
) {
    let mut model = sage(&data);
    (model.d_hidden, model.layers) = (hidden, layers);
    let error = Trainer::new(&TrainConfig::new(), &model, &data).unwrap_err();
    let refused = matches!(error, TrainError::Model(ModelError::Memory(_)));
    assert!(refused, "{error}");
    assert!(error.to_string().contains("SPARSEK_MAX_MEMORY"), "{error}");
}

#[rstest]
fn what_fits_in_memory_is_accepted(_alone: Alone, #[from(karate_club)] data: NodeDataset) {
    let model = sage(&data);
    assert!(model.training_bytes(34) > 34 * 16 * 2 * 4);
    assert!(Trainer::new(&TrainConfig::new(), &model, &data).is_ok());
}
