//! `topk_vector` of tensors: strategies, views, gradients.

use burn::tensor::{Float, Int, Tensor, TensorData, kind::Ordered};
use sparsek::topk::{Filter, Selection, Subrange, VectorOptions, VectorStrategy, topk_vector};
use sparsek_kernels::topk as kernel;
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix},
    element::Element,
    runner::{Cases, Outcome, Verdict},
    verify,
};

use super::common::elements;
use crate::kernels::{I32, Layout, refusal};

pub fn add(cases: &mut Cases, backend: &Backend) {
    let default = VectorStrategy::default();
    let subrange = Subrange::Exponent(4);
    let filter = VectorStrategy { subrange, delegates: 2, filter: Filter::On, ..default };
    let subrange = Subrange::Whole;
    let radix = VectorStrategy { subrange, selection: Selection::Radix, ..default };
    for (name, strategy) in [("auto", default), ("filter", filter), ("radix", radix)] {
        let name = |dtype: &str| format!("tensor/topk/vector/{name}/{dtype}");
        cases.add(backend, name("f32"), move |b| select::<f32, Float>(b, strategy));
        cases.add(backend, name("i32"), move |b| select::<i32, Int>(b, strategy));
    }
}

/// Values, indices and, for floats, gradients, where the device can run the strategy.
fn select<T: Element, K: Ordered>(backend: &Backend, strategy: VectorStrategy) -> Outcome {
    let (mut passed, mut refused) = (0, None);
    for length in [1, 203, 4097, 40_000] {
        let matrix = Matrix::<T>::of(Distribution::Eight, 1, length, length as u64);
        for (k, largest, sorted) in [(0, true, false), (1, false, true), (77, true, true)] {
            let k = k.min(length);
            let options = VectorOptions::new(k).with_largest(largest).with_sorted(sorted);
            let options = options.with_strategy(strategy);
            if let Some(client) = &backend.client {
                let input = Layout::Contiguous.upload(client, &matrix);
                let (dtype, handle) = (input.dtype, &input.handle);
                let result = kernel::topk_vector(client, handle, dtype, length, &options, I32);
                // Only forced strategies may be unable to run, and any on the software driver.
                let forced = strategy != VectorStrategy::default() || backend.is_llvmpipe();
                if let Err(error) = result {
                    let reason = refusal(&error).filter(|_| forced);
                    refused = Some(reason.ok_or_else(|| format!("refused: {error}"))?);
                    continue;
                }
            }
            let context = |e: String| format!("{length} elements, {options:?}: {e}");
            compare::<T, K>(backend, &matrix, &options).map_err(context)?;
            if T::FLOAT {
                gradient(backend, length, &options).map_err(context)?;
            }
            passed += 1;
        }
    }
    match (passed, refused) {
        (0, Some(reason)) => Ok(Verdict::Skipped(reason)),
        _ => Ok(Verdict::Passed),
    }
}

/// A vector, and the same one as a strided view.
fn compare<T: Element, K: Ordered>(
    backend: &Backend,
    matrix: &Matrix<T>,
    options: &VectorOptions,
) -> Result<(), String> {
    let upload = |data: Vec<T>| {
        let shape = [data.len()];
        Tensor::<1, K>::from_data(TensorData::new(data, shape), (&backend.device, T::dtype()))
    };
    let length = matrix.cols;
    let twice = matrix.data.iter().flat_map(|&x| [x, T::of(0.0)]).collect();
    let pairs: Tensor<2, K> = upload(twice).reshape([length, 2]);
    let strided: Tensor<1, K> = pairs.narrow(1, 0, 1).squeeze_dim(1);
    for x in [upload(matrix.data.clone()), strided] {
        let (values, indices) = topk_vector(x, options);
        let values = elements::<T>(&values.into_data())?;
        let indices: Vec<i64> = indices.into_data().iter::<i64>().collect();
        verify::selection(matrix, &options.row_options(), Some(&values), &indices)?;
    }
    Ok(())
}

/// The gradient is 3 at the selected elements and 0 elsewhere.
fn gradient(backend: &Backend, length: usize, options: &VectorOptions) -> Result<(), String> {
    let matrix = Matrix::<f32>::of(Distribution::Normal, 1, length, 5);
    let data = TensorData::new(matrix.data, [length]);
    let x = Tensor::<1>::from_data(data, &backend.device).autodiff().require_grad();
    let (values, indices) = topk_vector(x.clone(), options);
    let mut expected = vec![0.0f32; length];
    for at in indices.into_data().iter::<i64>() {
        expected[at as usize] = 3.0;
    }
    let gradients = (values * 3.0).backward();
    let found = elements::<f32>(&x.grad(&gradients).ok_or("a gradient")?.into_data())?;
    match (0..length).find(|&i| found[i] != expected[i]) {
        Some(i) => Err(format!("gradient {i} is {} instead of {}", found[i], expected[i])),
        None => Ok(()),
    }
}
