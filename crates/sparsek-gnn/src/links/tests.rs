use burn::{
    module::Module,
    nn::loss::BinaryCrossEntropyLossConfig,
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Int, Tensor, TensorData, activation::relu},
};
use rstest::rstest;

use super::*;
use crate::{
    datasets::sbm::{SbmConfig, block_model},
    fixtures::{Alone, alone, device},
    nn::{SageConv, SageConvConfig},
};

#[derive(Module, Debug)]
struct Encoder {
    first: SageConv,
    second: SageConv,
}

impl Encoder {
    fn forward(&self, set: &LinkSet, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(&set.graph, relu(self.first.forward(&set.graph, x)))
    }
}

/// Test AUC before and after, Hits@20, MRR.
fn train(
    config: &SbmConfig,
    epochs: usize,
    lr: f64,
    seed: u64,
    device: &Device,
) -> ([f64; 2], f64, f64) {
    let data = block_model(config).unwrap();
    let split = LinkSplitConfig::new().with_undirected(true).with_train_negatives(false);
    let split = random_link_split(data.graph(), &split.with_seed(seed)).unwrap();
    let training = device.clone().autodiff();
    training.seed(seed);
    let (nodes, width) = (data.nodes(), data.feature_width());
    let x = TensorData::new(data.features().to_vec(), [nodes, width]);
    let x = |device: &Device| Tensor::<2>::from_data(x.clone(), device);
    let [first, second] = [(width, 32), (32, 16)]
        .map(|(d_input, d_output)| SageConvConfig::new(d_input, d_output).init(&training));
    let mut encoder = Encoder { first, second };
    let judge = |encoder: &Encoder| {
        let z = encoder.valid().forward(&split.test, x(device));
        let of = |pairs| {
            let pairs = LinkPairs::new(nodes, pairs, device).unwrap();
            pairs.dot_scores(z.clone()).into_data().iter::<f32>().collect()
        };
        [&split.test.positives, &split.test.negatives].map(|pairs| -> Vec<f32> { of(pairs) })
    };
    let [positives, negatives] = judge(&encoder);
    let before = auc(&positives, &negatives);

    let set = &split.train;
    let count = set.positives.len();
    let labels: Vec<i32> = (0..2 * count).map(|at| i32::from(at < count)).collect();
    let labels = Tensor::<1, Int>::from_data(TensorData::new(labels, [2 * count]), &training);
    let loss = BinaryCrossEntropyLossConfig::new().with_logits(true).init(&training);
    let mut adam = AdamConfig::new().init();
    for epoch in 0..epochs as u64 {
        let negatives = negative_sampling(&set.graph, count, true, epoch).unwrap();
        let pairs = [&set.positives[..], &negatives].concat();
        let pairs = LinkPairs::new(nodes, &pairs, &training).unwrap();
        let logits = pairs.dot_scores(encoder.forward(set, x(&training)));
        let loss = loss.forward(logits, labels.clone());
        let gradients = GradientsParams::from_grads(loss.backward(), &encoder);
        encoder = adam.step(lr, encoder, gradients);
    }
    let [positives, negatives] = judge(&encoder);
    let after = auc(&positives, &negatives);
    ([before, after], hits_at(20, &positives, &negatives), mrr(&positives, &negatives))
}

/// Scores by block alone reach an AUC of about 0.84.
#[rstest]
fn an_encoder_finds_held_out_edges(_alone: Alone, #[values(0, 1)] seed: u64, device: Device) {
    let config = SbmConfig { homophily: 0.9, ..SbmConfig::new(400) };
    let config = config.with_blocks(4).with_degree(12.0).with_seed(seed);
    let ([before, after], hits, reciprocal) = train(&config, 30, 0.01, seed, &device);
    assert!(after > 0.75 && after > before + 0.1, "AUC {before} before, {after} after training");
    assert!((0.0..=1.0).contains(&hits) && reciprocal > 0.0, "{hits} {reciprocal}");
}

#[rstest]
fn bad_pairs_are_refused(device: Device) {
    let error = LinkPairs::new(3, &[(0, 1), (3, 0)], &device).unwrap_err();
    assert_eq!(error, LinkError::NodeOutOfRange { pair: 1, ids: (3, 0), nodes: 3 });
    assert_eq!(error.to_string(), "pair 1 is (3, 0), ids must be below 3");
    let none = LinkPairs::new(3, &[], &device).unwrap();
    assert_eq!(none.dot_scores(Tensor::zeros([3, 2], &device)).dims(), [0]);
}
