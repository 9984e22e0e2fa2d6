//! Methods of tensors by Burn's names.

use burn::tensor::{Float, Int, Tensor, kind::Ordered};
use sparsek::{prelude::TopkExt, topk::TopkOptions};
use sparsek_tests::{backend::Backend, element::Element, runner::Cases};

use super::{common::compare, tensors::tensor};

pub fn add(cases: &mut Cases, backend: &Backend) {
    cases.check(backend, "tensor/topk/extension/f32", methods::<f32, Float>);
    cases.check(backend, "tensor/topk/extension/i32", methods::<i32, Int>);
}

/// Each method selects what the oracle selects, sorted by value.
fn methods<T: Element, K: Ordered>(backend: &Backend) -> Result<(), String> {
    let x = tensor::<3, K, T>([9, 21, 18], 29, &backend.device);
    for (dim, k) in [(-1, 7), (0, 9), (1, 1), (-2, 12)] {
        let options = TopkOptions::new(k).with_sorted(true);
        let x = || x.clone();
        let check = |options: TopkOptions, values: Tensor<3, K>, found, alone| {
            let indices = Tensor::<3, Int>::clone(&found);
            compare::<3, K, T>(&x(), None, (&options, dim), (values, found), alone)?;
            Ok::<_, String>(indices)
        };
        let (values, indices) = x().topk_with_indices_exact(k, dim);
        let indices = check(options, values, indices, x().argtopk_exact(k, dim))?;
        check(options, x().topk_exact(k, dim), indices.clone(), indices)?;

        let options = options.with_largest(false);
        let (values, indices) = x().bottomk_with_indices_exact(k, dim);
        let indices = check(options, values, indices, x().argbottomk_exact(k, dim))?;
        check(options, x().bottomk_exact(k, dim), indices.clone(), indices)?;
    }
    Ok(())
}
