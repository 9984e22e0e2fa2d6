//! Row-wise top-k of normal f32: outputs, methods and row lengths.

mod common;

use criterion::{Criterion, Throughput};
use sparsek_bench::{
    case::RowCase,
    topk::{Form, Problem, ready, seeded_rows},
};
use sparsek_tests::{backend::Backend, data::Distribution};

use self::common::sized;

/// Columns, k, method and output.
const CASES: [(usize, usize, &str, Form); 8] = [
    (256, 32, "exact", Form::Pairs),
    (256, 32, "early:4", Form::Pairs),
    (256, 32, "precision:0.001", Form::Pairs),
    (256, 32, "exact", Form::Sorted),
    (256, 32, "exact", Form::Mask),
    (256, 32, "exact", Form::Gradient),
    (1024, 64, "exact", Form::Pairs),
    (8192, 64, "exact", Form::Pairs),
];

fn rows(criterion: &mut Criterion, backend: &Backend) {
    let elements = sized(backend, 1 << 21, 1 << 26);
    let mut group = criterion.benchmark_group(format!("rows/{}", backend.kind));
    for (cols, k, name, form) in CASES {
        let case = RowCase::new(elements / cols, cols, k);
        let traffic = Throughput::BytesDecimal(Problem::<f32>::traffic(&case, form) as u64);
        let id = format!("{case}/{name}/{}", form.name());
        common::bench(&mut group, &id, traffic, || {
            let input = seeded_rows::<f32>(case.rows, cols, Distribution::Normal, 0);
            let mut problem = Problem::new(&case, form, &input);
            problem.method = name.parse()?;
            ready(backend, &problem)
        });
    }
}

fn main() {
    common::main(rows);
}
