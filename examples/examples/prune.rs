//! Prunes a trained network by magnitude and 2:4, then trains what is left.
//!
//! `cargo run --release -p sparsek-examples --example prune [STEPS]`

#![allow(clippy::print_stdout)]

use std::error::Error;

use burn::{
    module::Module,
    nn::{Linear, LinearConfig},
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Distribution, Tensor, activation::relu},
};
use sparsek::nn::{Kept, PruneMasks, PruneRule};
use sparsek_examples::backend::{Choice, open};

#[derive(Module, Debug)]
struct Model {
    hidden: Linear,
    output: Linear,
}

impl Model {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.output.forward(relu(self.hidden.forward(x)))
    }

    /// Mean squared error for the target Σ sin(3 x), on points of the seed.
    fn loss(&self, seed: u64, device: &Device) -> Tensor<1> {
        device.seed(seed);
        let x = Tensor::<2>::random([256, 4], Distribution::Uniform(-1.0, 1.0), device);
        let target = (x.clone() * 3.0).sin().sum_dim(1);
        (self.forward(x) - target).square().mean()
    }
}

fn train(mut model: Model, masks: &PruneMasks, steps: usize, device: &Device) -> Model {
    let mut adam = AdamConfig::new().init();
    for step in 0..steps {
        let gradients = model.loss(step as u64, device).backward();
        let gradients = GradientsParams::from_grads(gradients, &model);
        // The step may move pruned weights: apply the masks after it.
        model = masks.apply(adam.step(5e-3, model, gradients));
    }
    model
}

fn main() -> Result<(), Box<dyn Error>> {
    let steps: usize = std::env::args().nth(1).map_or(Ok(600), |text| text.parse())?;
    let device = open(Choice::Auto)?.device.autodiff();
    device.seed(1);
    let dense = Model {
        hidden: LinearConfig::new(4, 128).init(&device),
        output: LinearConfig::new(128, 1).init(&device),
    };
    // No mask: nothing is pruned.
    let dense = train(dense, &PruneMasks::default(), steps, &device);
    let test = |model: &Model| model.loss(1 << 40, &device).into_scalar::<f32>();
    println!("dense error {:.4}", test(&dense));
    println!("{:26}{:>8}{:>9}{:>9}", "rule", "zeros", "pruned", "trained");
    for (name, rule) in [
        ("2:4 along inputs", PruneRule::NOfM { n: 2, m: 4, dim: 0 }),
        ("half of all weights", PruneRule::Tensor(Kept::Share(0.5))),
        ("half of each row", PruneRule::Rows(Kept::Share(0.5), 0)),
        ("a tenth of all weights", PruneRule::Tensor(Kept::Share(0.1))),
    ] {
        // Matrices only: biases are few.
        let masks = PruneMasks::of(&dense, |_, shape| (shape.len() == 2).then_some(rule));
        let pruned = masks.apply(dense.clone());
        let trained = train(pruned.clone(), &masks, steps, &device);
        let weights = [&trained.hidden.weight, &trained.output.weight];
        let zeros = weights.map(|w| w.val().equal_elem(0.0).int().sum().into_scalar::<i64>());
        let (before, after) = (test(&pruned), test(&trained));
        println!("{name:26}{:8}{before:9.4}{after:9.4}", zeros.iter().sum::<i64>());
    }
    Ok(())
}
