//! Classifies points with a graph of their nearest neighbors and GraphSAGE.
//!
//! `cargo run --release -p sparsek-examples --example knn_graph [EPOCHS]`

#![allow(clippy::print_stdout)]

use std::error::Error;

use burn::{
    module::Module,
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Int, Tensor, TensorData, activation::relu},
};
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
use rand_distr::{Distribution, StandardNormal};
use sparsek::{
    dense::{class_hits, cross_entropy},
    distance::{Metric, NearestNeighbors},
    sparse::Csr,
};
use sparsek_examples::backend::{Choice, open};
use sparsek_gnn::{
    Graph,
    nn::{SageConv, SageConvConfig},
};

const CLASSES: usize = 4;
const NODES: usize = 400;
const WIDTH: usize = 16;

#[derive(Module, Debug)]
struct Model {
    first: SageConv,
    second: SageConv,
}

impl Model {
    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(graph, relu(self.first.forward(graph, x)))
    }
}

/// Points around four centers, with much noise.
fn points(device: &Device) -> (Tensor<2>, Vec<i64>) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut draw = |count: usize| -> Vec<f32> {
        (0..count).map(|_| StandardNormal.sample(&mut random)).collect()
    };
    let (centers, mut x) = (draw(CLASSES * WIDTH), draw(NODES * WIDTH));
    let labels: Vec<i64> = (0..NODES).map(|node| (node % CLASSES) as i64).collect();
    for (place, x) in x.iter_mut().enumerate() {
        *x += 0.7 * centers[place / WIDTH % CLASSES * WIDTH + place % WIDTH];
    }
    (Tensor::from_data(TensorData::new(x, [NODES, WIDTH]), device), labels)
}

fn main() -> Result<(), Box<dyn Error>> {
    let epochs: usize = std::env::args().nth(1).map_or(Ok(60), |text| text.parse())?;
    let plain = open(Choice::Auto)?.device;
    let device = plain.clone().autodiff();
    device.seed(1);
    let (x, labels) = points(&plain);
    // Each node listens to its 8 nearest ones.
    let index = NearestNeighbors::fit(Csr::from_dense(x.clone())?, Metric::Euclidean);
    let graph = Graph::from_neighbors(&index.kneighbors_graph(None, 8)?)?;
    let pairs = (0..NODES).flat_map(|node| graph.neighbors(node).iter().map(move |&n| (node, n)));
    let alike = pairs.filter(|&(node, n)| labels[node] == labels[n as usize]).count();
    let share = 100.0 * alike as f64 / graph.edges() as f64;
    println!("{} edges, {share:.1} % within a class", graph.edges());

    // One node in ten has a label to learn from; −1 leaves a node out.
    let known = |node: usize| (node / CLASSES).is_multiple_of(10);
    let part = |keep: &dyn Fn(usize) -> bool| -> Vec<i64> {
        (0..NODES).map(|node| if keep(node) { labels[node] } else { -1 }).collect()
    };
    let upload = |labels: Vec<i64>, device: &Device| {
        Tensor::<1, Int>::from_data(TensorData::new(labels, [NODES]), device)
    };
    let train = upload(part(&known), &device);
    let test = upload(part(&|node| !known(node)), &plain);
    let mut model = Model {
        first: SageConvConfig::new(WIDTH, 32).init(&device),
        second: SageConvConfig::new(32, CLASSES).init(&device),
    };
    let mut adam = AdamConfig::new().init();
    let tracked = Tensor::from_inner(x);
    for epoch in 0..=epochs {
        let scores = model.forward(&graph, tracked.clone());
        let loss = cross_entropy(scores.clone(), train.clone(), 10.0 / NODES as f32);
        if epoch.is_multiple_of((epochs / 6).max(1)) {
            let hits = class_hits(scores.without_autodiff(), test.clone()).sum();
            let accuracy = hits.into_scalar::<f32>() / (0.9 * NODES as f32);
            let loss = loss.clone().into_scalar::<f32>();
            println!("epoch {epoch:3}  loss {loss:.3}  accuracy {:.1} %", 100.0 * accuracy);
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = adam.step(1e-2, model, gradients);
    }
    Ok(())
}
