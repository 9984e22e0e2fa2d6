//! Selections.

use burn::tensor::{Int, Tensor};
use pyo3::prelude::*;
use sparsek::topk::{TopkOptions, try_topk, try_topk_mask};

use crate::{
    array::{Input, Output},
    device,
    error::Failure,
    worker,
};

/// Values and indices of the `k` greatest or least elements along the middle of three dimensions,
/// under the shape `result`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python's arguments")]
pub fn topk(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    dtype: &str,
    shape: [usize; 3],
    result: Vec<usize>,
    k: usize,
    largest: bool,
    sorted: bool,
    device: String,
) -> PyResult<(Output, Output)> {
    let input = Input::read(array, dtype)?;
    let options = TopkOptions::new(k).with_largest(largest).with_sorted(sorted);
    worker::run(py, move |_| {
        let device = device::open(&device)?;
        let place = input.place();
        let (values, indices) = match input.dtype().is_float() {
            true => {
                let x: Tensor<3> = input.upload(shape, &device)?;
                let (values, indices) = try_topk(x, &options, 1)?;
                (place.give(values, result.clone())?, indices)
            }
            false => {
                let x: Tensor<3, Int> = input.upload(shape, &device)?;
                let (values, indices) = try_topk(x, &options, 1)?;
                (place.give(values, result.clone())?, indices)
            }
        };
        Ok((values, place.give_indices(indices, result)?))
    })
}

/// Sets all but the `k` greatest or least elements along the middle of three dimensions to 0, under
/// the shape `result`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python's arguments")]
pub fn topk_mask(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    dtype: &str,
    shape: [usize; 3],
    result: Vec<usize>,
    k: usize,
    largest: bool,
    device: String,
) -> PyResult<Output> {
    let input = Input::read(array, dtype)?;
    let options = TopkOptions::new(k).with_largest(largest);
    worker::run(py, move |_| {
        if !input.dtype().is_float() {
            let reason = "topk_mask takes float16, float32 and float64; topk also takes integers";
            return Err(Failure::Type(reason.into()));
        }
        let place = input.place();
        let x: Tensor<3> = input.upload(shape, &device::open(&device)?)?;
        place.give(try_topk_mask(x, &options, 1)?, result)
    })
}
