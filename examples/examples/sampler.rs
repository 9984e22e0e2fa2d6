//! Sampling of tokens: each row of a batch with settings of its own.
//!
//! `cargo run --release -p sparsek-examples --example sampler`

#![allow(clippy::print_stdout)]

use std::error::Error;

use burn::tensor::Tensor;
use sparsek::nn::{Sampler, SamplerConfig};
use sparsek_examples::backend::{Choice, open};

const WORDS: [&str; 6] = ["the", "a", "one", "some", "every", "zebra"];
const DRAWS: u64 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let device = open(Choice::Auto)?.device;
    let logits = Tensor::<2>::from_floats([[3.0, 2.5, 1.5, 1.0, 0.0, -3.0]], &device);
    let settings = [
        ("plain", SamplerConfig::new()),
        ("greedy", SamplerConfig::new().with_temperature(0.0)),
        ("hot", SamplerConfig::new().with_temperature(3.0)),
        ("top-k 2", SamplerConfig::new().with_top_k(2)),
        ("top-p 0.8", SamplerConfig::new().with_top_p(0.8)),
        ("min-p 0.2", SamplerConfig::new().with_min_p(0.2)),
    ];
    // One row per setting, all drawn at once on the device.
    let sampler = Sampler::per_row(settings.iter().map(|(_, config)| *config).collect());
    let rows = logits.repeat_dim(0, settings.len());
    let mut counts = vec![[0; WORDS.len()]; settings.len()];
    for step in 0..DRAWS {
        // Equal seeds and steps draw equal tokens, on every backend.
        let tokens = sampler.sample(rows.clone(), 42, step);
        for (row, token) in tokens.into_data().iter::<i64>().enumerate() {
            counts[row][token as usize] += 1;
        }
    }
    println!("{:10}{}", "", WORDS.map(|word| format!("{word:>7}")).concat());
    for ((name, _), counts) in settings.iter().zip(counts) {
        println!("{name:10}{}", counts.map(|count| format!("{count:7}")).concat());
    }
    Ok(())
}
