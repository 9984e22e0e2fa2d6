//! Products of a synthetic graph with dense and compressed rows, with and without gradient.

mod common;

use std::cell::OnceCell;

use criterion::{Criterion, Throughput};
use sparsek::sparse::Pattern;
use sparsek_bench::spmm::{Operation, ready};
use sparsek_gnn::datasets::power_law::PowerLawConfig;
use sparsek_tests::backend::Backend;

use self::common::sized;

const WIDTH: usize = 256;
const OPERATIONS: [Operation; 6] = [
    Operation::Compress(32),
    Operation::Dense,
    Operation::Forward(16),
    Operation::Forward(32),
    Operation::Training(16),
    Operation::Training(32),
];

fn spmm(criterion: &mut Criterion, backend: &Backend) {
    let config = PowerLawConfig::reddit_size().divided(sized(backend, 200, 8));
    let graph = OnceCell::new();
    let mut group = criterion.benchmark_group(format!("spmm/{}", backend.kind));
    for operation in OPERATIONS {
        let name = format!("{}/{}", config.name, operation.name());
        let traffic =
            Throughput::BytesDecimal(operation.bytes(config.nodes, config.edges, WIDTH) as u64);
        common::bench(&mut group, &name, traffic, || {
            let graph: &Pattern = graph.get_or_init(|| config.pattern().expect("a valid size"));
            ready(&backend.device, graph, WIDTH, operation)
        });
    }
}

fn main() {
    common::main(spmm);
}
