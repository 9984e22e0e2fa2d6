//! Training epochs of SAGE with MaxK on a synthetic graph, by the wall clock.

mod common;

use criterion::{Criterion, Throughput};
use sparsek::topk::Method;
use sparsek_bench::spmm::{Model, Training};
use sparsek_gnn::{
    datasets::power_law::{PowerLawConfig, power_law},
    nn::Activation,
    train::TrainConfig,
};
use sparsek_tests::backend::Backend;

use self::common::sized;

fn epoch(criterion: &mut Criterion, backend: &Backend) {
    let config = PowerLawConfig::reddit_size().divided(sized(backend, 500, 8));
    let data = power_law(&config).expect("a valid size");
    let train = TrainConfig::new().with_lr(0.01);
    // An epoch has no compulsory traffic worth the name.
    let edges = Throughput::Elements(config.edges as u64);
    let mut group = criterion.benchmark_group(format!("epoch/{}", backend.kind));
    for (k, method, text) in [
        (16, Method::Exact, "exact"),
        (32, Method::Exact, "exact"),
        (32, Method::EarlyStop(4), "early:4"),
    ] {
        let activation = Activation::MaxK { k, method };
        let training = Training::new(&backend.device, &data, &train, Model::Sage, activation);
        let name = format!("{}/k={k}/{text}", config.name);
        common::bench(&mut group, &name, edges.clone(), || training.ready());
    }
}

fn main() {
    common::main(epoch);
}
