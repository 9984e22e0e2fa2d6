//! Teaches experts to spell this repository's license; draws loss and expert load.
//!
//! `cargo run --release -p sparsek-examples --example moe [STEPS [SVG]]`

#![allow(clippy::print_stdout)]

use std::error::Error;

use burn::{
    module::Module,
    nn::{Embedding, EmbeddingConfig, Linear, LinearConfig},
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Int, Tensor, TensorData},
};
use sparsek::dense::cross_entropy;
use sparsek::nn::{Routing, SparseMoe, SparseMoeConfig, TopkRouterConfig};
use sparsek_examples::backend::{Choice, open};
use sparsek_examples::chart::{Line, Panel, save};

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
        let x = self.input.forward(self.embedding.forward(bytes).reshape([rows, CONTEXT * 16]));
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
    let expert = |at| Line::new(format!("expert {at}"), at);
    let mut curve = Line::new("cross-entropy", 0);
    let mut loads: Vec<Line> = (0..EXPERTS).map(expert).collect();
    println!("step  loss   tokens of each expert");
    for step in 0..=steps {
        let (bytes, next) = batch(step, &device);
        let (scores, routing) = model.forward(bytes);
        let loss = cross_entropy(scores, next, 1.0 / BATCH as f32);
        let counts = routing.counts.into_data().iter::<i64>().collect::<Vec<_>>();
        let found = loss.clone().into_scalar::<f32>();
        curve.points.push((step as f64, f64::from(found)));
        for (load, &count) in loads.iter_mut().zip(&counts) {
            load.points.push((step as f64, count as f64));
        }
        if step.is_multiple_of((steps / 10).max(1)) {
            println!("{step:4}  {found:.3}  {counts:?}");
        }
        // Without the balance loss, a few experts would serve all tokens.
        let total = loss + routing.balance_loss * 0.01;
        let gradients = GradientsParams::from_grads(total.backward(), &model);
        model = adam.step(3e-3, model, gradients);
    }
    let panels = [Panel::new(["step", "loss"], vec![curve]), Panel::new(["step", "tokens"], loads)];
    println!("drawn in {}", save("moe", "Mixture of experts", &panels)?.display());
    Ok(())
}
