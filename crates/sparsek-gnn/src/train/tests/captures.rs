//! Captured epochs; Flex, without graphs, runs each.

use burn::optim::AdamWConfig;

use super::*;
use crate::nn::{ConvKind, PlainModelConfig};

#[rstest]
fn captured_runs_repeat_resume_and_learn(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
    scratch: Scratch,
) {
    let (model, config) = (sage(&data), TrainConfig::new().with_epochs(60).with_lr(0.01));
    let trainer = |config| Trainer::new(config, &model, &data).unwrap().with_capture();
    let whole = trainer(&config).run(&device, &mut quiet).unwrap();
    assert_eq!(curves(&whole), curves(&trainer(&config).run(&device, &mut quiet).unwrap()));
    assert!(whole.history[59].loss < whole.history[0].loss / 2.0, "{:?}", whole.history);
    let found = evaluate(&config, &model, &whole.model, &data, &device).unwrap();
    assert_eq!((found.val, found.test), (whole.best.val, whole.best.test));

    let checkpoint = CheckpointDir::new(&scratch.0);
    let half = config.clone().with_epochs(9);
    let first = trainer(&half).with_checkpoint(checkpoint.clone()).unwrap();
    let first = first.run(&device, &mut quiet).unwrap();
    let plain = Trainer::new(&config, &model, &data).unwrap().resume(checkpoint.clone());
    let error = plain.unwrap_err().to_string();
    assert!(error.contains("another way to run steps"), "{error}");
    let rest = trainer(&config).resume(checkpoint).unwrap();
    let rest = rest.run(&device, &mut quiet).unwrap();
    assert_eq!([curves(&first), curves(&rest)].concat(), curves(&whole));
}

#[rstest]
fn without_dropout_captured_runs_equal_others(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
) {
    let (model, config) = (sage(&data).with_dropout(0.0), TrainConfig::new().with_epochs(12));
    let trainer = || Trainer::new(&config, &model, &data).unwrap();
    let plain = trainer().run(&device, &mut quiet).unwrap();
    let captured = trainer().with_capture().run(&device, &mut quiet).unwrap();
    assert_eq!(curves(&captured), curves(&plain));
}

#[rstest]
fn layers_draw_apart(_alone: Alone, device: Device, #[from(karate_club)] data: NodeDataset) {
    let model =
        PlainModelConfig::new(ConvKind::Gat, data.feature_width(), 4, data.classes()).with_heads(2);
    let config = TrainConfig::new().with_epochs(80).with_lr(0.02);
    let run = Trainer::new(&config, &model, &data).unwrap().with_capture();
    let run = run.run(&device, &mut quiet).unwrap();
    assert!(run.history[79].train == 1.0 && run.history[79].test > 0.8, "{:?}", run.history);
    let other = Trainer::new(&config, &model, &data).unwrap().run(&device, &mut quiet).unwrap();
    assert_ne!(run.history[5].loss, other.history[5].loss);
}

#[rstest]
fn unfit_runs_are_not_captured(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
) {
    let model = sage(&data);
    let refused = |config: &TrainConfig, change: &dyn Fn(Trainer<MaxKModelConfig>) -> String| {
        change(Trainer::new(config, &model, &data).unwrap().with_capture())
    };
    let run = |trainer: Trainer<MaxKModelConfig>| {
        trainer.run(&device, &mut quiet).unwrap_err().to_string()
    };
    let config = TrainConfig::new();
    let parts = Batching::Parts { parts: 2, together: 1, clustered: false };
    for (found, need) in [
        (refused(&config.clone().with_batches(parts), &run), "full batches"),
        (refused(&config.clone().with_metric(Some(Metric::RocAuc)), &run), "accuracy or micro-F1"),
        (
            refused(&config, &|trainer| run(trainer.with_optimizer(AdamWConfig::new()))),
            "Adam without clipping",
        ),
    ] {
        assert_eq!(found, format!("capture needs {need}"));
    }
    let started = Trainer::new(&config, &model, &data).unwrap().with_capture().start(&device);
    assert!(started.err().unwrap().to_string().contains("only whole runs are captured"));
    let endless = config.with_epochs(usize::MAX);
    let error = refused(&endless, &run);
    assert!(error.contains("numbers of 18446744073709551615 epochs"), "{error}");
}
