//! Runs on the karate club and a small block model.
use std::{
    env::temp_dir,
    fs,
    path::PathBuf,
    process::id,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::*;
use crate::{
    datasets::{
        NodeDataset, karate,
        sbm::{SbmConfig, block_model},
    },
    nn::{Activation, SageModel, SageModelConfig},
};

/// Flex has one random stream per process, so runs that are compared must not overlap.
static STREAM: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    STREAM.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory that is removed when dropped.
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

fn sage(data: &NodeDataset) -> SageModelConfig {
    SageModelConfig::new(data.feature_width(), 16, data.classes())
        .with_layers(2)
        .with_activation(Activation::maxk(4))
}

fn quiet(_: &EpochReport) -> std::io::Result<()> {
    Ok(())
}

fn curves(outcome: &TrainOutcome<SageModel>) -> Vec<[f64; 4]> {
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

    let (config, best) = checkpoint.best_model::<SageModelConfig>(&device).unwrap();
    let found = evaluate(&config, &best, &data, &device).unwrap();
    assert_eq!((found.val, found.test), (rest.best.val, rest.best.test));
}

#[test]
fn bad_checkpoints_and_configurations_are_named() {
    let _alone = alone();
    let (data, device, scratch) = (karate::karate_club(), Device::flex(), Scratch::new("bad"));
    let (model, config) = (sage(&data), TrainConfig::new().with_epochs(3));
    let checkpoint = CheckpointDir::new(&scratch.0);
    let trainer = Trainer::new(&config, &model, &data).unwrap();
    trainer
        .with_checkpoint(checkpoint.clone())
        .unwrap()
        .run(&device, &mut quiet)
        .unwrap();

    let wider = model.clone().with_layers(3);
    let error = Trainer::new(&config, &wider, &data)
        .unwrap()
        .resume(checkpoint.clone())
        .unwrap_err();
    assert!(error.to_string().contains("another model"), "{error}");
    for file in ["best.bpk", "model.json"] {
        let path = scratch.0.join(file);
        let bytes = fs::read(&path).unwrap();
        for len in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&path, &bytes[..len]).unwrap();
            let error = checkpoint
                .best_model::<SageModelConfig>(&device)
                .unwrap_err()
                .to_string();
            assert!(error.contains(file) && !error.contains('\n'), "{error}");
        }
        fs::write(&path, bytes).unwrap();
    }

    let error = |model: SageModelConfig| {
        Trainer::new(&config, &model, &data)
            .unwrap_err()
            .to_string()
    };
    assert!(error(model.clone().with_activation(Activation::maxk(17))).contains("17"));
    assert!(error(model.clone().with_dropout(1.0)).contains("dropout"));
    let other = SageModelConfig::new(7, 16, 2);
    assert!(error(other).contains("34 features"));
}
