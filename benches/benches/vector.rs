//! Top-k of one vector of uniform f32.

mod common;

use criterion::{Criterion, Throughput};
use sparsek_bench::{case::VectorCase, vector::ready};
use sparsek_tests::backend::Backend;

use self::common::sized;

fn vector(criterion: &mut Criterion, backend: &Backend) {
    let lengths = sized(backend, [1 << 18, 1 << 22], [1 << 20, 1 << 27]);
    let mut group = criterion.benchmark_group(format!("vector/{}", backend.kind));
    for length in lengths {
        for k in [1, 128, 4096] {
            let case = VectorCase::new(length, k);
            let name = case.to_string();
            let traffic = Throughput::BytesDecimal((4 * length + 12 * k) as u64);
            common::bench(&mut group, &name, traffic, || ready(backend, &case));
        }
    }
}

fn main() {
    common::main(vector);
}
