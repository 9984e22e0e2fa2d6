//! A sparse autoencoder finds the features that a narrow space superposes, and draws the search.
//!
//! Rows are sums of at most 3 of 32 directions in 16 dimensions.
//!
//! `cargo run --release -p sparsek-examples --example sae [STEPS [SVG]]`

#![allow(clippy::print_stdout)]

use std::error::Error;

use burn::{
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Distribution, Tensor, TensorData},
};
use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use sparsek::nn::TopkSaeConfig;
use sparsek_examples::{
    backend::{Choice, open},
    chart::{Line, Panel, SeriesLabelPosition, save},
};

const FEATURES: usize = 32;
const WIDTH: usize = 16;
const ACTIVE: usize = 3;
const BATCH: usize = 512;

/// Rows of at most three features, with strengths from 0.5 to 1.5.
fn batch(features: &Tensor<2>, random: &mut Xoshiro256PlusPlus, device: &Device) -> Tensor<2> {
    let mut strengths = vec![0.0f32; BATCH * FEATURES];
    for row in strengths.chunks_mut(FEATURES) {
        for _ in 0..ACTIVE {
            row[random.random_range(0..FEATURES)] = random.random_range(0.5..1.5);
        }
    }
    let strengths = TensorData::new(strengths, [BATCH, FEATURES]);
    Tensor::from_data(strengths, device).matmul(features.clone())
}

fn main() -> Result<(), Box<dyn Error>> {
    let steps: usize = std::env::args().nth(1).map_or(Ok(1500), |text| text.parse())?;
    let device = open(Choice::Auto)?.device.autodiff();
    device.seed(1);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let directions =
        Tensor::<2>::random([FEATURES, WIDTH], Distribution::Normal(0.0, 1.0), &device);
    let norms = directions.clone().square().sum_dim(1).sqrt();
    let features = directions / norms;

    // Latents without activity in 20 batches are dead: the auxiliary loss revives them.
    let config = TopkSaeConfig::new(WIDTH, 2 * FEATURES, ACTIVE).with_dead_after(20 * BATCH);
    let mut sae = config.init(&device);
    let mut adam = AdamConfig::new().init();
    let mut counts = vec![Line::new("recovered features", 0), Line::new("dead latents", 1)];
    let mut ranked = vec![Line::new("before training", 1), Line::new("after", 0)];
    println!("step  error    dead  recovered");
    for step in 0..=steps {
        let output = sae.forward(batch(&features, &mut random, &device));
        if step.is_multiple_of((steps / 10).max(1)) || step == steps {
            let idle = sae.idle().greater_equal_elem((20 * BATCH) as f64);
            let dead = idle.int().sum().into_scalar::<i64>();
            // A feature is recovered if a decoder row points along it.
            let cosines = features.clone().matmul(sae.dictionary().transpose()).max_dim(1);
            let mut cosines: Vec<f64> = cosines.into_data().iter().collect();
            cosines.sort_by(|a, b| b.total_cmp(a));
            let recovered = cosines.iter().filter(|&&cosine| cosine > 0.95).count();
            counts[0].points.push((step as f64, recovered as f64));
            counts[1].points.push((step as f64, dead as f64));
            let error = output.loss.clone().into_scalar::<f32>();
            println!("{step:4}  {error:.5}  {dead:4}  {recovered} of {FEATURES}");
            if step == 0 || step == steps {
                let ranks = (1..=FEATURES).map(|rank| rank as f64);
                ranked[usize::from(step > 0)].points = ranks.zip(cosines).collect();
            }
        }
        let loss = output.loss + output.auxiliary_loss / 32.0;
        let gradients = GradientsParams::from_grads(loss.backward(), &sae);
        sae = adam.step(3e-3, sae, gradients);
    }
    let mut panels = [
        Panel::new(["step", "count"], counts),
        Panel::new(["features, best first", "cosine with the nearest latent"], ranked),
    ];
    panels[0].legend = SeriesLabelPosition::LowerRight;
    panels[1].legend = SeriesLabelPosition::MiddleRight;
    println!("drawn in {}", save("sae", "Superposed features", &panels)?.display());
    Ok(())
}
