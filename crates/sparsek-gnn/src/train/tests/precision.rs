use burn::{
    module::ModuleVisitor,
    nn::{BatchNormConfig, LinearConfig},
    tensor::DType,
};

use super::{super::precision::has_untrained, *};
use crate::nn::{ConvKind, NodeModelConfig, PlainModelConfig};

/// Dtypes of parameters.
struct Dtypes(Vec<DType>);

impl ModuleVisitor for Dtypes {
    fn visit_float<const D: usize>(&mut self, param: &burn::module::Param<Tensor<D>>) {
        self.0.push(param.val().dtype());
    }
}

/// Trains in both precisions; the curves stay close, and parameters keep their dtype.
fn compare<C: NodeModelConfig>(model: &C, data: &NodeDataset, device: &Device) {
    let full = TrainConfig::new().with_epochs(30).with_lr(0.01);
    let mixed = full.clone().with_precision(Some(Precision::Bf16));
    let [full, mixed] =
        [full, mixed].map(|config| train(&config, model, data, device, &mut quiet).unwrap());
    for (epoch, (full, mixed)) in full.history.iter().zip(&mixed.history).take(3).enumerate() {
        let apart = (full.loss - mixed.loss).abs();
        assert!(apart < 0.03 * full.loss, "epoch {epoch}: {} and {}", full.loss, mixed.loss);
        assert_ne!(full.loss, mixed.loss, "epoch {epoch}");
    }
    let [first, last] = [&mixed.history[0], &mixed.history[29]].map(|report| report.loss);
    assert!(last < 0.8 * first, "{first} {last}");
    assert!(mixed.best.test > full.best.test - 0.1, "{:?} {:?}", full.best, mixed.best);
    let mut dtypes = Dtypes(Vec::new());
    mixed.model.visit(&mut dtypes);
    assert!(dtypes.0.iter().all(|&dtype| dtype == DType::F32), "{:?}", dtypes.0);
}

#[rstest]
fn maxk_learns_in_mixed_precision(
    _alone: Alone,
    device: Device,
    #[values(Architecture::Sage, Architecture::Gcn, Architecture::Gin)] architecture: Architecture,
) {
    let data = blocks(400);
    let model = MaxKModelConfig::new(architecture, data.feature_width(), 16, data.classes())
        .with_layers(2)
        .with_dropout(0.0)
        .with_activation(Activation::maxk(4));
    compare(&model, &data, &device);
}

#[rstest]
fn plain_stacks_learn_in_mixed_precision(
    _alone: Alone,
    device: Device,
    #[values(ConvKind::Gcn, ConvKind::Sage, ConvKind::Gat, ConvKind::Gin)] kind: ConvKind,
) {
    let data = blocks(400);
    let model = PlainModelConfig::new(kind, data.feature_width(), 16, data.classes())
        .with_layers(2)
        .with_heads(2)
        .with_dropout(0.0);
    compare(&model, &data, &device);
}

#[rstest]
fn dropout_and_batches_run_in_mixed_precision(_alone: Alone, device: Device) {
    let data = blocks(400);
    let parts = Batching::Parts { parts: 8, together: 2, clustered: true };
    let config = TrainConfig::new()
        .with_epochs(10)
        .with_lr(0.01)
        .with_batches(parts)
        .with_evaluate_batches(true)
        .with_precision(Some(Precision::Bf16));
    let run = train(&config, &sage(&data), &data, &device, &mut quiet).unwrap();
    assert!(run.history[9].loss < run.history[0].loss, "{:?}", curves(&run));
}

#[rstest]
fn a_run_resumes_in_its_precision_only(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
    scratch: Scratch,
) {
    let model = sage(&data);
    let config = TrainConfig::new().with_epochs(2).with_precision(Some(Precision::Bf16));
    let checkpoint = CheckpointDir::new(&scratch.0);
    let trainer = Trainer::new(&config, &model, &data).unwrap();
    trainer.with_checkpoint(checkpoint.clone()).unwrap().run(&device, &mut quiet).unwrap();
    let more = config.clone().with_epochs(4);
    let again = Trainer::new(&more, &model, &data).unwrap().resume(checkpoint.clone());
    assert_eq!(again.unwrap().run(&device, &mut quiet).unwrap().epochs, 4);
    let full = more.with_precision(None);
    let Err(error) = Trainer::new(&full, &model, &data).unwrap().resume(checkpoint) else {
        panic!("resumed in another precision");
    };
    assert!(error.to_string().contains("precision Bf16"), "{error}");
}

#[rstest]
fn running_statistics_and_frozen_parameters_are_found(_alone: Alone, device: Device) {
    let device = device.autodiff();
    let linear = LinearConfig::new(2, 2).init(&device);
    assert!(!has_untrained(&linear));
    assert!(has_untrained(&linear.no_grad()));
    assert!(has_untrained(&BatchNormConfig::new(2).init(&device)));
}

#[rstest]
fn runs_saved_before_there_were_precisions_are_full() {
    let mut saved = serde_json::to_value(TrainConfig::new()).unwrap();
    assert!(saved.as_object_mut().unwrap().remove("precision").is_some());
    let config: TrainConfig = serde_json::from_value(saved).unwrap();
    assert_eq!(config, TrainConfig::new());
}
