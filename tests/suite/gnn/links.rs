//! Scores of pairs against plain loops, gradients against finite differences.

use std::sync::LazyLock;

use burn::{nn::Relu, tensor::Tensor};
use sparsek_gnn::links::LinkPairs;
use sparsek_tests::{
    backend::Backend,
    oracle::{layers::Matrix, pooling},
    panics::expect_panic,
    runner::Cases,
};

use super::{
    fixture::Forward,
    subject::{Inputs, NODES, Subject, WIDTH, add_subject},
};

/// A hub, a repeated pair, both directions, a node with itself.
static PAIRS: LazyLock<Vec<(u32, u32)>> = LazyLock::new(|| {
    let mut pairs: Vec<(u32, u32)> = (0..NODES as u32 - 1).map(|source| (source, 6)).collect();
    pairs.extend([(2, 1), (1, 2), (2, 1), (7, 7)]);
    pairs
});

fn pairs(z: &Tensor<2>) -> LinkPairs {
    LinkPairs::new(NODES, &PAIRS, &z.device()).expect("ids are in range")
}

fn ids() -> Vec<(usize, usize)> {
    PAIRS.iter().map(|&(source, target)| (source as usize, target as usize)).collect()
}

pub fn add(cases: &mut Cases, backend: &Backend) {
    type Operation = (&'static str, Forward<Relu>, fn(&Inputs) -> Matrix);
    let operations: [Operation; 3] = [
        (
            "sources",
            |_, _, x, _| pairs(&x).gather_sources(x),
            |inputs| ids().into_iter().map(|(source, _)| inputs.x()[source].clone()).collect(),
        ),
        (
            "targets",
            |_, _, x, _| pairs(&x).gather_targets(x),
            |inputs| ids().into_iter().map(|(_, target)| inputs.x()[target].clone()).collect(),
        ),
        (
            "dot",
            |_, _, x, _| pairs(&x).dot_scores(x).unsqueeze_dim(1),
            |inputs| pooling::dots(&inputs.x(), &ids()),
        ),
    ];
    for (name, forward, expected) in operations {
        let subject = Subject { make: |_| Relu::new(), forward, expected };
        add_subject(cases, backend, &format!("links/{name}"), subject);
    }
    cases.check(backend, "tensor/gnn/links/refusals", refusals);
}

fn refusals(backend: &Backend) -> Result<(), String> {
    let z = Tensor::zeros([NODES - 1, WIDTH], &backend.device);
    let found = expect_panic(|| _ = pairs(&z).dot_scores(z.clone()))?;
    match found.contains("x has 10 rows, but the sparse matrix has 11 columns") {
        true => Ok(()),
        false => Err(found),
    }
}
