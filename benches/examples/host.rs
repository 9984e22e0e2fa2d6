use cubecl::prelude::*;
use sparsek_kernels::topk::*;
use std::time::Instant;
fn main() {
    let backend = sparsek_tests::backend::Kind::Cuda.open().unwrap();
    let client = backend.client.as_ref().unwrap();
    let n: usize = 1 << 20;
    let h = client.empty(4 * n);
    let f32 = f32::elem_type_native();
    let i64 = i64::elem_type_native();
    for (name, sub, sel) in [
        ("delegates", Subrange::Auto, Selection::Auto),
        ("whole/rows", Subrange::Whole, Selection::Rows),
    ] {
        let o = VectorOptions {
            subrange: sub,
            selection: sel,
            ..VectorOptions::new(32)
        };
        for _ in 0..3 {
            topk_vector(client, &h, f32, n, &o, i64).unwrap();
        }
        cubecl::future::block_on(client.sync()).unwrap();
        for _ in 0..3 {
            let t = Instant::now();
            let runs = 20000;
            for i in 0..runs {
                topk_vector(client, &h, f32, n, &o, i64).unwrap();
                if i % 64 == 63 {
                    cubecl::future::block_on(client.sync()).unwrap();
                }
            }
            println!(
                "{name} {:.2} us",
                t.elapsed().as_secs_f64() * 1e6 / runs as f64
            );
        }
    }
}
