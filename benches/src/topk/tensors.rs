//! Top-k of Burn tensors: ours on backends without kernels, and Burn's own.

use anyhow::ensure;
use burn::{
    backend::Dispatch,
    tensor::{Device, Float, Int, Tensor, TensorData, kind::Ordered},
};
use bytemuck::pod_collect_to_vec;
use sparsek::{
    ops::TopkGradientOps,
    topk::{argtopk, topk, topk_mask},
};
use sparsek_tests::element::Element;

use super::{
    check::{CHECKED_ROWS, Output, check},
    problem::{Form, Problem},
};
use crate::timing::{Ready, measure_tensors};

pub fn ready<T: Element>(device: &Device, problem: &Problem<T>) -> anyhow::Result<Ready<'static>> {
    match problem.form {
        Form::Pairs | Form::Sorted if T::FLOAT => pairs::<T, Float>(device, problem),
        Form::Pairs | Form::Sorted => pairs::<T, Int>(device, problem),
        Form::Indices if T::FLOAT => columns::<T, Float>(device, problem),
        Form::Indices => columns::<T, Int>(device, problem),
        Form::Mask | Form::Gradient => {
            ensure!(T::FLOAT, "tensors of {} have no {}", T::NAME, problem.form.name());
            if problem.form == Form::Mask {
                mask(device, problem)
            } else {
                gradient(device, problem)
            }
        }
    }
}

/// Milliseconds of Burn's own operation. None if Burn has no tensors of the dtype.
pub fn burn<T: Element>(device: &Device, problem: &Problem<T>) -> anyhow::Result<Option<f64>> {
    if !device.supports_dtype(T::dtype()) {
        return Ok(None);
    }
    let ms = if T::FLOAT {
        burn_of::<T, Float>(device, problem)
    } else {
        burn_of::<T, Int>(device, problem)
    };
    ms.map(Some)
}

fn burn_of<T: Element, K: Ordered>(device: &Device, problem: &Problem<T>) -> anyhow::Result<f64> {
    let x = input::<T, K>(device, problem);
    let run = || drop(x.clone().topk_with_indices(problem.case.k, 1));
    Ok(measure_tensors(device, run)?.ms)
}

fn pairs<T: Element, K: Ordered + 'static>(
    device: &Device,
    problem: &Problem<T>,
) -> anyhow::Result<Ready<'static>> {
    let x = input::<T, K>(device, problem);
    let options = problem.options();
    let run = move || topk(x.clone(), &options, -1);
    Ready::tensors(device, run, |(values, indices)| {
        let values = elements::<T>(&values.into_data());
        let indices: Vec<u32> = indices.into_data().iter::<u32>().collect();
        check(problem, &Output::Pairs(&values, &indices), CHECKED_ROWS)
    })
}

fn columns<T: Element, K: Ordered + 'static>(
    device: &Device,
    problem: &Problem<T>,
) -> anyhow::Result<Ready<'static>> {
    let x = input::<T, K>(device, problem);
    let options = problem.options();
    let run = move || argtopk(x.clone(), &options, -1);
    Ready::tensors(device, run, |indices| {
        let indices: Vec<u32> = indices.into_data().iter::<u32>().collect();
        check(problem, &Output::Indices(&indices), CHECKED_ROWS)
    })
}

fn mask<T: Element>(device: &Device, problem: &Problem<T>) -> anyhow::Result<Ready<'static>> {
    let x = input::<T, Float>(device, problem);
    let options = problem.options();
    let run = move || topk_mask(x.clone(), &options, -1);
    Ready::tensors(device, run, |masked| dense(problem, &masked))
}

/// The backward operation alone: scatters the gradient of the values.
fn gradient<T: Element>(device: &Device, problem: &Problem<T>) -> anyhow::Result<Ready<'static>> {
    let case = problem.case;
    let x = input::<T, Float>(device, problem);
    let indices = topk(x, &problem.options(), -1).1.into_dispatch();
    let gradients = TensorData::new(problem.gradients.clone(), [case.rows, case.k]);
    let gradients = Tensor::<2>::from_data(gradients, (device, T::dtype())).into_dispatch();
    let cols = case.cols;
    let run = move || {
        let gradient = <Dispatch as TopkGradientOps>::scatter_selected(
            gradients.clone(),
            indices.clone(),
            cols,
        );
        Tensor::<2>::from_dispatch(gradient)
    };
    Ready::tensors(device, run, |found| dense(problem, &found))
}

fn dense<T: Element>(problem: &Problem<T>, found: &Tensor<2>) -> anyhow::Result<usize> {
    let values = elements::<T>(&found.to_data());
    check(problem, &Output::Dense(&values), CHECKED_ROWS)
}

fn input<T: Element, K: Ordered>(device: &Device, problem: &Problem<T>) -> Tensor<2, K> {
    let shape = [problem.case.rows, problem.case.cols];
    let data = TensorData::new(problem.input.to_vec(), shape);
    Tensor::from_data(data, (device, T::dtype()))
}

fn elements<T: Element>(data: &TensorData) -> Vec<T> {
    pod_collect_to_vec(data.as_bytes())
}
