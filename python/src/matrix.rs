//! Rows on a device, and their distances.

use burn::tensor::{DType, Device, Tensor, TensorData};
use pyo3::prelude::*;
use sparsek::{
    distance::{self, AnySamples, Measure, Metric},
    io::memory,
    sparse::{Csr, Pattern},
};

use crate::{
    array::{Array, Input, Output, Place, check_dtype, read, read_back, read_data},
    device,
    error::Failure,
    worker,
};

/// Rows on a device: a CSR matrix, or dense for a search that takes them so.
#[pyclass(frozen)]
pub struct Matrix {
    pub(crate) rows: AnySamples,
    /// Where the rows came from, and results go.
    pub(crate) place: Place,
}

#[pymethods]
impl Matrix {
    /// From the arrays of scipy's CSR format with sorted columns; offsets and columns in u32.
    #[staticmethod]
    fn from_csr(
        py: Python<'_>,
        shape: [usize; 2],
        indptr: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        dtype: &str,
        device: String,
    ) -> PyResult<Self> {
        let (indptr, indices) = (read::<u32>(indptr)?, read::<u32>(indices)?);
        let values = read_data(values, dtype)?;
        worker::run(py, move |_| {
            let device = device::open(&device)?;
            let pattern = Pattern::new(shape[0], shape[1], indptr, indices)?;
            Ok(Self { rows: upload(pattern, values, &device)?.into(), place: Place::Host })
        })
    }

    /// A dense array, as dense rows.
    #[staticmethod]
    fn from_dense(
        py: Python<'_>,
        shape: [usize; 2],
        values: &Bound<'_, PyAny>,
        dtype: &str,
        device: String,
    ) -> PyResult<Self> {
        let input = Input::read(values, dtype)?;
        worker::run(py, move |_| {
            let device = device::open(&device)?;
            check_sizes([("rows", shape[0]), ("columns", shape[1])])?;
            let (place, dtype) = (input.place(), input.dtype());
            if !dtype.is_float() {
                return Err(Failure::Type(format!("dtype {dtype:?} is not supported for rows")));
            }
            let rows: Tensor<2> = input.upload(shape, &device)?;
            // As of arrays on the CPU.
            let rows = if dtype.size() < 4 { rows.cast(DType::F32) } else { rows };
            Ok(Self { rows: rows.into(), place })
        })
    }

    /// The nonzero elements of a dense array, as a CSR matrix.
    #[staticmethod]
    fn compress(
        py: Python<'_>,
        shape: [usize; 2],
        values: &Bound<'_, PyAny>,
        dtype: &str,
        device: String,
    ) -> PyResult<Self> {
        let values = read_data(values, dtype)?;
        worker::run(py, move |_| {
            let device = device::open(&device)?;
            let (pattern, values) = match values.dtype() {
                DType::F32 => compress::<f32>(values, shape)?,
                DType::F64 => compress::<f64>(values, shape)?,
                other => {
                    let reason = format!("dtype {other:?} is not supported for dense matrices");
                    return Err(Failure::Type(reason));
                }
            };
            Ok(Self { rows: upload(pattern, values, &device)?.into(), place: Place::Host })
        })
    }

    /// Scales columns so that distances by `metric` are weighted.
    fn weighted(&self, py: Python<'_>, metric: &str, weights: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (metric, weights) = (parse(metric)?, read::<f64>(weights)?);
        let (rows, place) = (self.rows.clone(), self.place);
        worker::run(py, move |_| {
            Ok(Self { rows: distance::weighted(&rows, metric, &weights)?, place })
        })
    }

    /// The arrays of scipy's CSR format: offsets, columns and values.
    fn to_csr(&self, py: Python<'_>) -> PyResult<(Array, Array, Array)> {
        let rows = self.rows.clone();
        worker::run(py, move |_| {
            let csr = match rows {
                AnySamples::Sparse(csr) => csr,
                AnySamples::Dense(rows) => Csr::from_dense(rows)?,
            };
            let pattern = csr.pattern();
            let ids = |ids: &[u32]| {
                let ids: Vec<i32> = ids.iter().map(|&id| id as i32).collect();
                let length = ids.len();
                Array::new(ids, vec![length])
            };
            let values = Array::from_data(read_back(csr.values().clone())?, vec![csr.nnz()])?;
            Ok((ids(pattern.indptr()), ids(pattern.indices()), values))
        })
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.rows.rows(), self.rows.cols())
    }

    /// Entries of a CSR matrix, explicit zeros included, or `None`.
    #[getter]
    fn nnz(&self) -> Option<usize> {
        match &self.rows {
            AnySamples::Sparse(csr) => Some(csr.nnz()),
            AnySamples::Dense(_) => None,
        }
    }
}

/// All distances of the rows of `x` to those of `y`, or of `x`.
#[pyfunction]
pub fn pairwise_distances(
    py: Python<'_>,
    x: PyRef<'_, Matrix>,
    y: Option<PyRef<'_, Matrix>>,
    metric: &str,
) -> PyResult<Output> {
    let metric = parse(metric)?;
    let place = x.place;
    let (x, y) = (x.rows.clone(), y.map(|y| y.rows.clone()));
    worker::run(py, move |_| {
        let shape = vec![x.rows(), y.as_ref().unwrap_or(&x).rows()];
        let size = x.dtype().size().max(4);
        if place == Place::Host {
            let asked = memory::product(&[shape[0], shape[1], size]);
            memory::check(format_args!("{} × {} distances", shape[0], shape[1]), asked)?;
        }
        place.give(distance::pairwise_distances(&x, y.as_ref(), metric)?, shape)
    })
}

/// A metric by name.
pub fn parse(metric: &str) -> Result<Metric, Failure> {
    Ok(metric.parse::<Metric>()?)
}

/// Whether a search by a metric takes dense rows without compressing them. Software drivers of
/// Vulkan lack the matrix products.
#[pyfunction]
pub fn searches_dense(py: Python<'_>, metric: &str, device: String) -> PyResult<bool> {
    let measure = Measure::from(parse(metric)?);
    worker::run(py, move |_| {
        let device = device::open(&device)?;
        let multiplies = || device::is_host(&device) || device::is_card(&device);
        Ok(measure.searches_dense() && multiplies())
    })
}

fn check_sizes<const N: usize>(sizes: [(&str, usize); N]) -> Result<(), Failure> {
    let limit = sparsek::sparse::MAX_ENTRIES;
    match sizes.into_iter().find(|&(_, found)| found > limit) {
        Some((what, found)) => {
            Err(Failure::Value(format!("{what}: {found} exceed the limit of {limit}")))
        }
        None => Ok(()),
    }
}

fn upload(pattern: Pattern, values: TensorData, device: &Device) -> Result<Csr, Failure> {
    let dtype = values.dtype();
    check_dtype(dtype, device)?;
    Ok(Csr::new(pattern, Tensor::from_data(values, (device, dtype)))?)
}

/// Elements other than zero, NaN included.
fn compress<T: burn::tensor::Element + PartialEq + Default>(
    values: TensorData,
    [rows, cols]: [usize; 2],
) -> Result<(Pattern, TensorData), Failure> {
    let dense = crate::array::vector::<T>(values)?;
    let zero = T::default();
    let entries = dense.iter().filter(|value| **value != zero).count();
    // Columns of more entries than u32 counts are refused before offsets wrap.
    check_sizes([("rows", rows), ("columns", cols), ("entries", entries)])?;
    let mut indptr = Vec::with_capacity(rows + 1);
    let mut indices = Vec::with_capacity(entries);
    let mut kept = Vec::with_capacity(entries);
    indptr.push(0);
    for row in 0..rows {
        for (col, &value) in dense[row * cols..][..cols].iter().enumerate() {
            if value != zero {
                indices.push(col as u32);
                kept.push(value);
            }
        }
        indptr.push(indices.len() as u32);
    }
    Ok((Pattern::new(rows, cols, indptr, indices)?, TensorData::new(kept, [entries])))
}
