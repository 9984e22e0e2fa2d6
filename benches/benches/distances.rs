//! Nearest neighbors among the rows of synthetic sparse matrices.

mod common;

use criterion::{Criterion, Throughput};
use sparsek::distance::Metric;
use sparsek_bench::distance::Set;
use sparsek_tests::backend::Backend;

use self::common::sized;

const K: usize = 16;
const METRICS: [Metric; 4] =
    [Metric::Euclidean, Metric::Cosine, Metric::Manhattan, Metric::JensenShannon];

fn distances(criterion: &mut Criterion, backend: &Backend) {
    let sets = sized(
        backend,
        ["synthetic:movielens/1024", "synthetic:scrna/256"],
        ["synthetic:movielens/16", "synthetic:scrna/8"],
    );
    let mut group = criterion.benchmark_group(format!("distances/{}", backend.kind));
    for name in sets {
        let set = Set::load(name, &backend.device).expect("a synthetic matrix");
        let traffic = Throughput::BytesDecimal(set.compulsory_bytes(K) as u64);
        for metric in METRICS {
            let name = format!("{name}/{metric}");
            common::bench(&mut group, &name, traffic.clone(), || set.ready(metric, None, K));
        }
    }
}

fn main() {
    common::main(distances);
}
