use burn::{
    module::{ModuleVisitor, Param},
    nn::{BatchNormConfig, LinearConfig},
    optim::GradientsParams,
    tensor::{DType, Int},
};
use sparsek::dense::cross_entropy;

use super::{
    super::precision::{copy_in, gradients_for, has_untrained},
    *,
};
use crate::nn::{ConvKind, NodeModel, NodeModelConfig, PlainModelConfig};

struct Dtypes(Vec<DType>);

impl ModuleVisitor for Dtypes {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push(param.val().dtype());
    }
}

fn compare_step<C: NodeModelConfig>(config: &C, data: &NodeDataset, device: &Device) {
    let device = device.clone().autodiff();
    let model = config.init(&device).unwrap();
    let shape = [data.nodes(), data.feature_width()];
    let x = TensorData::new(data.features().to_vec(), shape);
    let x = Tensor::<2>::from_data(x, &device);
    let Labels::Classes(labels) = data.labels() else {
        panic!("a class for each node");
    };
    let labels: Vec<i32> = labels.iter().map(|&label| label as i32).collect();
    let labels = Tensor::<1, Int>::from_data(TensorData::new(labels, [data.nodes()]), &device);
    let step = |model: &C::Model, x: Tensor<2>| {
        let logits = model.forward(data.graph(), x).cast(DType::F32);
        let loss = cross_entropy(logits, labels.clone(), 1.0 / data.nodes() as f32);
        let gradients = GradientsParams::from_grads(loss.backward(), model);
        (loss.into_scalar::<f32>(), gradients)
    };
    let (full, expected) = step(&model, x.clone());
    let copy = copy_in(&model, DType::BF16);
    let (mixed, found) = step(&copy, x.cast(DType::BF16));
    assert!((full - mixed).abs() < 0.03 * full && full != mixed, "{full} {mixed}");
    let found = gradients_for(&model, found);
    let [mut products, mut squares, mut others] = [0.0; 3];
    let mut sums = Sums {
        found: &found,
        expected: &expected,
        add: &mut |a, b| {
            products += a * b;
            squares += a * a;
            others += b * b;
        },
    };
    model.visit(&mut sums);
    let cosine = products / (squares * others).sqrt();
    assert!(cosine > 0.98, "{cosine}");
}

struct Sums<'a> {
    found: &'a GradientsParams,
    expected: &'a GradientsParams,
    add: &'a mut dyn FnMut(f64, f64),
}

impl ModuleVisitor for Sums<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let [found, expected] =
            [self.found, self.expected].map(|all| all.get::<D>(param.id).expect("a gradient"));
        assert_eq!(found.dtype(), DType::F32);
        let (found, expected) = (found.into_data(), expected.into_data());
        found.iter::<f64>().zip(expected.iter::<f64>()).for_each(|(a, b)| (self.add)(a, b));
    }
}

fn compare<C: NodeModelConfig>(model: &C, data: &NodeDataset, device: &Device) {
    compare_step(model, data, device);
    let full = TrainConfig::new().with_epochs(30).with_lr(0.01);
    let mixed = full.clone().with_precision(Some(Precision::Bf16));
    let [full, mixed] =
        [full, mixed].map(|config| train(&config, model, data, device, &mut quiet).unwrap());
    let [first, last] = [&mixed.history[0], &mixed.history[29]].map(|report| report.loss);
    assert!(last < 0.8 * first, "{first} {last}");
    assert!(mixed.best.test > full.best.test - 0.15, "{:?} {:?}", full.best, mixed.best);
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
