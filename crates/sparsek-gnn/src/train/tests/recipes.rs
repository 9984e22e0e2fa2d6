use std::ops::ControlFlow;

use burn::{
    grad_clipping::GradientClippingConfig,
    lr_scheduler::step::StepLrSchedulerConfig,
    nn::loss::{BinaryCrossEntropyLossConfig, CrossEntropyLossConfig},
    optim::{
        AdaGradConfig, AdamConfig, AdamWConfig, AdanConfig, LambConfig, LionConfig, RmsPropConfig,
        SgdConfig, momentum::MomentumConfig,
    },
};

use super::*;

type Change = fn(Trainer<MaxKModelConfig>) -> Trainer<MaxKModelConfig>;

const OPTIMIZERS: [(Change, f64); 9] = [
    (|trainer| trainer.with_optimizer(AdamConfig::new()), 0.01),
    (|trainer| trainer.with_optimizer(AdamWConfig::new()), 0.01),
    (|trainer| trainer.with_optimizer(AdaGradConfig::new()), 0.01),
    (|trainer| trainer.with_optimizer(AdanConfig::new()), 0.01),
    (|trainer| trainer.with_optimizer(LambConfig::new()), 0.01),
    (|trainer| trainer.with_optimizer(LionConfig::new()), 0.001),
    (|trainer| trainer.with_optimizer(RmsPropConfig::new()), 0.001),
    (|trainer| trainer.with_optimizer(SgdConfig::new()), 0.1),
    (
        |trainer| {
            trainer.with_optimizer(SgdConfig::new().with_momentum(Some(MomentumConfig::new())))
        },
        0.1,
    ),
];

#[rstest]
fn burns_cross_entropy_is_the_default_loss(_alone: Alone, device: Device) {
    let data = blocks(200);
    let model = sage(&data).with_dropout(0.0);
    let config = TrainConfig::new().with_epochs(4).with_lr(0.01);
    let own = |trainer: Trainer<MaxKModelConfig>| {
        trainer.with_loss(CrossEntropyLossConfig::new()).unwrap().run(&device, &mut quiet).unwrap()
    };
    let plain = |batches: Batching| {
        let config = config.clone().with_batches(batches);
        let expected = train(&config, &model, &data, &device, &mut quiet).unwrap();
        let found = own(new_trainer(&config, &model, &data));
        for (a, b) in found.history.iter().zip(&expected.history) {
            assert!((a.loss - b.loss).abs() < 1e-5, "{a:?} {b:?}");
        }
    };
    plain(Batching::Full);
    plain(Batching::Neighbors { fanouts: vec![3, 3], nodes: 30 });
    plain(Batching::Parts { parts: 5, together: 2, clustered: true });
}

#[rstest]
fn burns_binary_cross_entropy_is_the_default_loss_of_sets(_alone: Alone, device: Device) {
    let data = sets();
    let model = sage(&data).with_dropout(0.0);
    let config = TrainConfig::new().with_epochs(3).with_lr(0.01);
    let expected = train(&config, &model, &data, &device, &mut quiet).unwrap();
    let loss = BinaryCrossEntropyLossConfig::new().with_logits(true);
    let trainer = new_trainer(&config, &model, &data).with_loss(loss).unwrap();
    let found = trainer.run(&device, &mut quiet).unwrap();
    for (a, b) in found.history.iter().zip(&expected.history) {
        assert!((a.loss - b.loss).abs() < 1e-5, "{a:?} {b:?}");
    }
}

fn new_trainer<'a>(
    config: &'a TrainConfig,
    model: &'a MaxKModelConfig,
    data: &'a NodeDataset,
) -> Trainer<'a, MaxKModelConfig> {
    Trainer::new(config, model, data).unwrap()
}

#[rstest]
fn losses_that_do_not_fit_the_labels_are_refused(#[from(karate_club)] data: NodeDataset) {
    let (config, model) = (TrainConfig::new(), sage(&data));
    let new = || new_trainer(&config, &model, &data);
    let refused = |trainer: Result<Trainer<_>, TrainError>, word: &str| {
        let error = trainer.map(drop).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    };
    let binary = BinaryCrossEntropyLossConfig::new();
    refused(new().with_loss(binary.clone().with_logits(true)), "does not fit the labels");
    refused(new().with_loss(binary), "logits = true");
    let weights = Some(vec![1.0; 9]);
    let weighted = CrossEntropyLossConfig::new().with_weights(weights);
    refused(new().with_loss(weighted), "9 class weights");
}

#[rstest]
fn every_optimizer_learns_and_resumes(
    _alone: Alone,
    device: Device,
    scratch: Scratch,
    #[values(0, 1, 2, 3, 4, 5, 6, 7, 8)] which: usize,
) {
    let data = blocks(200);
    let (model, (change, lr)) = (sage(&data).with_dropout(0.0), OPTIMIZERS[which]);
    let config = |epochs| TrainConfig::new().with_lr(lr).with_epochs(epochs);
    let (whole, half) = (config(6), config(3));
    let expected = change(new_trainer(&whole, &model, &data)).run(&device, &mut quiet).unwrap();
    assert!(expected.history[5].loss < expected.history[0].loss, "{:?}", expected.history);

    let dir = CheckpointDir::new(&scratch.0);
    let trainer = change(new_trainer(&half, &model, &data)).with_checkpoint(dir.clone()).unwrap();
    trainer.run(&device, &mut quiet).unwrap();
    let trainer = change(new_trainer(&whole, &model, &data)).resume(dir.clone()).unwrap();
    let resumed = trainer.run(&device, &mut quiet).unwrap();
    assert_eq!(curves(&resumed), curves(&expected)[3..]);

    let other = OPTIMIZERS[(which + 1) % OPTIMIZERS.len()].0(new_trainer(&whole, &model, &data));
    let error = other.resume(dir).unwrap_err().to_string();
    assert!(error.contains("another optimizer"), "{error}");
}

#[rstest]
fn schedules_set_the_rate_of_each_epoch_and_resume(
    _alone: Alone,
    device: Device,
    scratch: Scratch,
) {
    let data = blocks(200);
    let model = sage(&data);
    let config = |epochs| TrainConfig::new().with_lr(0.02).with_epochs(epochs);
    let schedule = StepLrSchedulerConfig::new(0.02, 2).with_gamma(0.0);
    let (whole, half) = (config(5), config(3));
    let scheduled =
        |config| new_trainer(config, &model, &data).with_schedule(schedule.clone()).unwrap();
    let constant = train(&whole, &model, &data, &device, &mut quiet).unwrap();
    let expected = scheduled(&whole).run(&device, &mut quiet).unwrap();
    let (constant, found) = (curves(&constant), curves(&expected));
    assert_eq!(found[..2], constant[..2]);
    assert_eq!(found[2][1..], found[1][1..]);
    assert_ne!(found[2], constant[2]);

    let dir = CheckpointDir::new(&scratch.0);
    let trainer = scheduled(&half).with_checkpoint(dir.clone()).unwrap();
    trainer.run(&device, &mut quiet).unwrap();
    let resumed = scheduled(&whole).resume(dir).unwrap().run(&device, &mut quiet).unwrap();
    assert_eq!(curves(&resumed), found[3..]);
    let trainer = new_trainer(&whole, &model, &data);
    assert!(trainer.with_schedule(StepLrSchedulerConfig::new(0.1, 0)).is_err());
}

#[rstest]
fn gradients_are_clipped(_alone: Alone, device: Device) {
    let data = blocks(200);
    let model = sage(&data).with_dropout(0.0);
    let config = TrainConfig::new().with_lr(0.1).with_epochs(2);
    let run = |clipping| {
        let trainer = new_trainer(&config, &model, &data);
        let trainer = trainer.with_optimizer(SgdConfig::new()).with_gradient_clipping(clipping);
        curves(&trainer.run(&device, &mut quiet).unwrap())
    };
    let still = run(GradientClippingConfig::Norm(0.0));
    assert_eq!(still[0], still[1]);
    assert_ne!(run(GradientClippingConfig::Norm(1e9))[1], still[1]);
}

#[derive(Debug)]
struct Count;

impl NodeMetric for Count {
    fn name(&self) -> String {
        "count".to_string()
    }

    fn score(&self, logits: &[f32], data: &NodeDataset, nodes: &[u32]) -> f64 {
        assert_eq!(logits.len(), data.nodes() * data.classes());
        nodes.len() as f64
    }
}

#[rstest]
fn metrics_and_callbacks_are_called(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
    #[values(Batching::Full, Batching::Parts { parts: 2, together: 1, clustered: false })]
    batches: Batching,
) {
    let model = sage(&data);
    let config = TrainConfig::new().with_batches(batches).with_evaluate_batches(true);
    let mut seen = Vec::new();
    let trainer = new_trainer(&config, &model, &data);
    let trainer = trainer.with_metric(Count).unwrap().with_callback(|report, model| {
        assert!(!model.devices()[0].is_autodiff());
        seen.push(report.epoch);
        Ok(if report.epoch == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    let run = trainer.run(&device, &mut quiet).unwrap();
    assert!(run.interrupted);
    assert_eq!(seen, [1, 2, 3]);
    let counts = [data.train(), data.val(), data.test()].map(|nodes| nodes.len() as f64);
    assert_eq!([run.best.train, run.best.val, run.best.test], counts);
}
