//! A character model with a mixture of experts, trained on this repository's license.
//!
//! `cargo run --release -p sparsek-examples --example moe [STEPS]`

#![allow(clippy::print_stdout)]

use std::error::Error;

use burn::{
    module::Module,
    nn::{Embedding, EmbeddingConfig, Linear, LinearConfig, loss::CrossEntropyLossConfig},
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Int, Tensor, TensorData},
};
use sparsek::nn::{Routing, SparseMoe, SparseMoeConfig, TopkRouterConfig};
use sparsek_examples::backend::{Choice, open};

const TEXT: &str = include_str!("../../LICENSE-APACHE");
const CONTEXT: usize = 8;
const BATCH: usize = 128;
const WIDTH: usize = 64;
const EXPERTS: usize = 4;

/// Predicts a byte from the `CONTEXT` bytes before it.
#[derive(Module, Debug)]
struct Model {
    embedding: Embedding,
    input: Linear,
    moe: SparseMoe,
    output: Linear,
}

impl Model {
    fn new(device: &Device) -> Self {
        // Each row passes two of the experts.
        let router = TopkRouterConfig::new(WIDTH, EXPERTS, 2);
        Self {
            embedding: EmbeddingConfig::new(128, 16).init(device),
            input: LinearConfig::new(CONTEXT * 16, WIDTH).init(device),
            moe: SparseMoeConfig::new(router, WIDTH).init(device),
            output: LinearConfig::new(WIDTH, 128).init(device),
        }
    }

    /// `[rows, CONTEXT]` → scores of the next byte, `[rows, 128]`.
    fn forward(&self, bytes: Tensor<2, Int>) -> (Tensor<2>, Routing) {
        let [rows, _] = bytes.dims();
        let x = self.embedding.forward(bytes).reshape([rows, CONTEXT * 16]);
        let x = self.input.forward(x);
        let (y, routing) = self.moe.forward(x.clone());
        (self.output.forward(x + y), routing)
    }
}

/// Windows of the text in a fixed pseudorandom order, and the bytes that follow them.
fn batch(step: usize, device: &Device) -> (Tensor<2, Int>, Tensor<1, Int>) {
    let text = TEXT.as_bytes();
    let (mut windows, mut next) = (Vec::new(), Vec::new());
    for row in 0..BATCH {
        let at = (step * BATCH + row) * 7919 % (text.len() - CONTEXT);
        windows.extend(text[at..at + CONTEXT].iter().map(|&byte| i64::from(byte)));
        next.push(i64::from(text[at + CONTEXT]));
    }
    let windows = Tensor::from_data(TensorData::new(windows, [BATCH, CONTEXT]), device);
    (windows, Tensor::from_data(TensorData::new(next, [BATCH]), device))
}

fn main() -> Result<(), Box<dyn Error>> {
    let steps: usize = std::env::args().nth(1).map_or(Ok(300), |text| text.parse())?;
    let device = open(Choice::Auto)?.device.autodiff();
    device.seed(1);
    let mut model = Model::new(&device);
    let mut adam = AdamConfig::new().init();
    let cross_entropy = CrossEntropyLossConfig::new().init(&device);
    println!("step  loss   tokens of each expert");
    for step in 0..=steps {
        let (bytes, next) = batch(step, &device);
        let (scores, routing) = model.forward(bytes);
        let loss = cross_entropy.forward(scores, next);
        if step.is_multiple_of((steps / 10).max(1)) {
            let counts = routing.counts.clone().into_data().iter::<i64>().collect::<Vec<_>>();
            println!("{step:4}  {:.3}  {counts:?}", loss.clone().into_scalar::<f32>());
        }
        // Without the balance loss, a few experts would serve all tokens.
        let total = loss + routing.balance_loss * 0.01;
        let gradients = GradientsParams::from_grads(total.backward(), &model);
        model = adam.step(3e-3, model, gradients);
    }
    Ok(())
}
