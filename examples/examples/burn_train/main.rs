//! Burn's training loop over sampled parts of a graph, with a MaxK model and a metric of your own.
//!
//! `cargo run --release -p sparsek-examples --features train --example burn_train [EPOCHS]`

mod data;
mod metrics;

use std::error::Error;

use burn::{
    data::{dataloader::DataLoaderBuilder, dataset::InMemDataset},
    lr_scheduler::constant::ConstantLr,
    module::Module,
    optim::AdamConfig,
    train::{
        ClassificationOutput, InferenceStep, Learner, SupervisedTraining, TrainOutput, TrainStep,
        metric::{AccuracyMetric, LossMetric},
    },
};
use sparsek::dense::cross_entropy;
use sparsek_examples::backend::{Choice, open};
use sparsek_gnn::{
    datasets::sbm::{SbmConfig, block_model},
    nn::{MaxK, MaxKConfig, SageConv, SageConvConfig},
};

use crate::{
    data::{Batch, Output, WithNeighbors},
    metrics::UnitsInUse,
};

const HIDDEN: usize = 64;

#[derive(Module, Debug)]
struct Model {
    first: SageConv,
    maxk: MaxK,
    second: SageConv,
}

impl Model {
    fn run(&self, batch: Batch) -> Output {
        let nodes = batch.labels.dims()[0];
        // Compressed rows: the second layer reads 16 of 64 units per neighbor.
        let hidden = self.maxk.compress(self.first.forward(&batch.graph, batch.x));
        let scores = self.second.forward_compressed(&batch.graph, &hidden).narrow(0, 0, nodes);
        let loss = cross_entropy(scores.clone(), batch.labels.clone(), 1.0 / nodes as f32);
        let classes = ClassificationOutput::new(loss, scores, batch.labels);
        Output { classes, kept: hidden.columns().clone() }
    }
}

impl TrainStep for Model {
    type Input = Batch;
    type Output = Output;

    fn step(&self, batch: Batch) -> TrainOutput<Output> {
        let output = self.run(batch);
        TrainOutput::new(self, output.classes.loss.backward(), output)
    }
}

impl InferenceStep for Model {
    type Input = Batch;
    type Output = Output;

    fn step(&self, batch: Batch) -> Output {
        self.run(batch)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let epochs = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    let device = open(Choice::Auto)?.device.autodiff();
    device.seed(1);
    let data = block_model(&SbmConfig::new(4000))?;
    let model = Model {
        first: SageConvConfig::new(data.feature_width(), HIDDEN).init(&device),
        maxk: MaxKConfig::new(HIDDEN / 4).init(),
        second: SageConvConfig::new(HIDDEN, data.classes()).init(&device),
    };
    let loader = |nodes: &[u32]| {
        let loader = DataLoaderBuilder::new(WithNeighbors(data.clone())).batch_size(256).shuffle(1);
        loader.build(InMemDataset::new(nodes.to_vec()))
    };
    // Burn writes the metrics of each batch to files here, prints progress, then the summary. With
    // its feature `tui` it draws curves if the output is a terminal.
    let folder = std::env::temp_dir().join(format!("burn_train-{}", std::process::id()));
    let trained = SupervisedTraining::new(&folder, loader(data.train()), loader(data.val()))
        .metrics((LossMetric::new(), AccuracyMetric::new(), UnitsInUse::of(HIDDEN)))
        .with_application_logger(None)
        .num_epochs(epochs)
        .summary()
        .launch(Learner::new(model, AdamConfig::new().init(), ConstantLr::new(1e-2)));
    std::fs::remove_dir_all(&folder)?;
    trained.error.map_or(Ok(()), |error| Err(error.to_string().into()))
}
