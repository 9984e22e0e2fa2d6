//! Attention to the k best keys: how near to attention over all keys?
//!
//! `cargo run --release -p sparsek-examples --example attention`

#![allow(clippy::print_stdout)]

use std::error::Error;

use burn::tensor::{Distribution, Tensor};
use sparsek::nn::TopkAttentionConfig;
use sparsek_examples::backend::{Choice, open};

const TOKENS: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let device = open(Choice::Auto)?.device;
    device.seed(1);
    let heads = |scale| {
        let normal = Distribution::Normal(0.0, scale);
        Tensor::<4>::random([1, 4, TOKENS, 32], normal, &device)
    };
    // Queries of a large norm attend sharply, as trained ones do.
    let (query, key, value) = (heads(3.0), heads(1.0), heads(1.0));
    let attend = |k: usize| {
        // `attend` takes projected heads; `forward` has projections of its own.
        let layer = TopkAttentionConfig::new(128, 4, k).init(&device);
        layer.attend(query.clone(), key.clone(), value.clone(), None)
    };
    let dense = attend(TOKENS);
    let norm = dense.clone().square().mean().into_scalar::<f32>();
    println!("{TOKENS} keys\n   k  relative error");
    for k in [1, 4, 16, 64, TOKENS] {
        let error = (attend(k) - dense.clone()).square().mean().into_scalar::<f32>();
        println!("{k:4}  {:.4}", (error / norm).sqrt());
    }
    Ok(())
}
