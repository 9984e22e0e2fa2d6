//! Selections.

use burn::tensor::{Device, Int, Tensor, TensorData};
use pyo3::prelude::*;
use sparsek::topk::{TopkOptions, try_topk, try_topk_mask};

use crate::{
    array::{Array, read_back, read_data},
    device,
    error::Failure,
    worker,
};

/// Values and indices of the `k` greatest or least elements along the middle of three dimensions.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python's arguments")]
pub fn topk(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    dtype: &str,
    shape: [usize; 3],
    k: usize,
    largest: bool,
    sorted: bool,
    device: String,
) -> PyResult<(Array, Array)> {
    let data = read_data(array, dtype)?;
    let options = TopkOptions::new(k).with_largest(largest).with_sorted(sorted);
    worker::run(py, move |_| {
        let device = device::open(&device)?;
        let (values, indices) = match data.dtype().is_float() {
            true => {
                let x: Tensor<3> = upload(data, shape, &device)?;
                let (values, indices) = try_topk(x, &options, 1)?;
                (read_back(values)?, indices)
            }
            false => {
                let x: Tensor<3, Int> = upload(data, shape, &device)?;
                let (values, indices) = try_topk(x, &options, 1)?;
                (read_back(values)?, indices)
            }
        };
        let shape = vec![shape[0], k, shape[2]];
        let indices = Array::from_indices(read_back(indices)?, shape.clone())?;
        Ok((Array::from_data(values, shape)?, indices))
    })
}

/// Sets all but the `k` greatest or least elements along the middle of three dimensions to 0.
#[pyfunction]
pub fn topk_mask(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    dtype: &str,
    shape: [usize; 3],
    k: usize,
    largest: bool,
    device: String,
) -> PyResult<Array> {
    let data = read_data(array, dtype)?;
    let options = TopkOptions::new(k).with_largest(largest);
    worker::run(py, move |_| {
        if !data.dtype().is_float() {
            let reason = "topk_mask takes float16, float32 and float64; topk also takes integers";
            return Err(Failure::Type(reason.into()));
        }
        let x: Tensor<3> = upload(data, shape, &device::open(&device)?)?;
        let kept = try_topk_mask(x, &options, 1)?;
        Array::from_data(read_back(kept)?, shape.to_vec())
    })
}

fn upload<K: burn::tensor::kind::Basic>(
    data: TensorData,
    shape: [usize; 3],
    device: &Device,
) -> Result<Tensor<3, K>, Failure> {
    let dtype = data.dtype();
    if !device.supports_dtype(dtype) {
        let reason = format!("the device {device:?} has no {dtype:?}; convert the array");
        return Err(Failure::Type(reason));
    }
    let data = TensorData::from_bytes(data.into_bytes(), shape, dtype);
    Ok(Tensor::from_data(data, (device, dtype)))
}
