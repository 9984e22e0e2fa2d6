//! MaxK in a module and a training loop of your own.
//!
//! `cargo run --release -p sparsek-examples --example custom_module [STEPS]`

#![allow(clippy::print_stdout)]

use std::error::Error;

use burn::{
    module::Module,
    nn::{Linear, LinearConfig},
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Int, Tensor, TensorData},
};
use sparsek::{
    dense::{class_hits, cross_entropy, linear_compressed},
    nn::{MaxK, MaxKConfig},
};
use sparsek_examples::backend::{Choice, open};

const POINTS: usize = 400;

/// A classifier of points in the plane. MaxK keeps 16 of 64 hidden units of each point.
#[derive(Module, Debug)]
struct Model {
    hidden: Linear,
    maxk: MaxK,
    output: Linear,
}

impl Model {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        // Compressed rows: the product reads 16 weights of each 64.
        let kept = self.maxk.compress(self.hidden.forward(x));
        let bias = self.output.bias.as_ref().expect("the layer has a bias").val();
        linear_compressed(&kept, self.output.weight.val()) + bias.unsqueeze()
    }
}

/// Two interleaved spirals.
fn spirals(device: &Device) -> (Tensor<2>, Tensor<1, Int>) {
    let (mut points, mut labels) = (Vec::new(), Vec::new());
    for i in 0..POINTS {
        let (radius, label) = ((i / 2 + 10) as f32 / 210.0, i % 2);
        let angle = radius * 9.0 + label as f32 * std::f32::consts::PI;
        points.extend([radius * angle.cos(), radius * angle.sin()]);
        labels.push(label as i64);
    }
    let points = Tensor::from_data(TensorData::new(points, [POINTS, 2]), device);
    (points, Tensor::from_data(TensorData::new(labels, [POINTS]), device))
}

fn main() -> Result<(), Box<dyn Error>> {
    let steps: usize = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse())?;
    let device = open(Choice::Auto)?.device.autodiff();
    device.seed(1);
    let (x, labels) = spirals(&device);
    let mut model = Model {
        hidden: LinearConfig::new(2, 64).init(&device),
        maxk: MaxKConfig::new(16).init(),
        output: LinearConfig::new(64, 2).init(&device),
    };
    let mut adam = AdamConfig::new().init();
    println!("step  loss   accuracy");
    for step in 0..=steps {
        let scores = model.forward(x.clone());
        let loss = cross_entropy(scores.clone(), labels.clone(), 1.0 / POINTS as f32);
        if step.is_multiple_of((steps / 10).max(1)) {
            let hits = class_hits(scores.without_autodiff(), labels.clone().without_autodiff());
            let accuracy = 100.0 * hits.mean().into_scalar::<f32>();
            println!("{step:4}  {:.3}  {accuracy:.1} %", loss.clone().into_scalar::<f32>());
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = adam.step(1e-2, model, gradients);
    }
    Ok(())
}
