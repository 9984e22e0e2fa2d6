//! Nearest neighbors.

use std::ops::Range;

use burn::tensor::{DType, Int, Tensor};
use pyo3::prelude::*;
use sparsek::{
    distance::{DistanceError, Metric, NearestNeighbors},
    io::memory,
    sparse::Csr,
};

use crate::{
    array::{Array, read_back, vector},
    device,
    error::Failure,
    matrix::{Matrix, parse},
    worker::{self, Cancel},
};

/// Queries between two checks for an interrupt on the CPU. Batches change no bit.
const PART: usize = 16_384;

/// Distances and indices of the `k` nearest rows of `index`, nearest first. Without a query, the
/// index queries itself, without each row itself.
#[pyfunction]
pub fn kneighbors(
    py: Python<'_>,
    index: PyRef<'_, Matrix>,
    query: Option<PyRef<'_, Matrix>>,
    metric: &str,
    k: usize,
) -> PyResult<(Array, Array)> {
    let search = Search::new(&index, query.as_deref(), parse(metric)?);
    worker::run(py, move |cancel| {
        let (rows, dtype) = (search.rows(), search.index.dtype());
        let size = dtype.size().max(4) + size_of::<i64>();
        let asked = memory::product(&[rows, k, size]);
        memory::check(format_args!("{k} neighbors of {rows} rows"), asked)?;
        match dtype {
            DType::F64 => search.nearest::<f64>(k, cancel),
            _ => search.nearest::<f32>(k, cancel),
        }
    })
}

/// Offsets, distances and indices of all rows of `index` within a radius, by index.
#[pyfunction]
pub fn radius_neighbors(
    py: Python<'_>,
    index: PyRef<'_, Matrix>,
    query: Option<PyRef<'_, Matrix>>,
    metric: &str,
    radius: f64,
) -> PyResult<(Array, Array, Array)> {
    let search = Search::new(&index, query.as_deref(), parse(metric)?);
    worker::run(py, move |cancel| match search.index.dtype() {
        DType::F64 => search.within::<f64>(radius, cancel),
        _ => search.within::<f32>(radius, cancel),
    })
}

struct Search {
    index: Csr,
    query: Option<Csr>,
    search: NearestNeighbors,
}

impl Search {
    fn new(index: &Matrix, query: Option<&Matrix>, metric: Metric) -> Self {
        let search = NearestNeighbors::fit(index.csr.clone(), metric);
        let query = query.map(|query| query.csr.clone());
        Self { index: index.csr.clone(), query, search }
    }

    fn rows(&self) -> usize {
        self.query.as_ref().unwrap_or(&self.index).rows()
    }

    /// Ranges of queries; the only one is all of them.
    fn parts(&self) -> Vec<Range<usize>> {
        let rows = self.rows();
        let part = if device::is_host(&self.index.device()) { PART } else { rows };
        let starts = (0..rows.max(1)).step_by(part.max(1));
        starts.map(|first| first..rows.min(first + part)).collect()
    }

    fn nearest<T: crate::array::Number>(
        &self,
        k: usize,
        cancel: &Cancel,
    ) -> Result<(Array, Array), Failure> {
        let mut distances = Vec::<T>::new();
        let mut indices = Vec::<i64>::new();
        let parts = self.parts();
        for part in &parts {
            cancel.check()?;
            let (found, places) = self.nearest_of(part.clone(), parts.len() == 1, k)?;
            append(&mut distances, vector(read_back(found)?)?);
            append(&mut indices, vector(read_back(places)?.convert::<i64>())?);
        }
        let shape = vec![self.rows(), k];
        Ok((Array::new(distances, shape.clone()), Array::new(indices, shape)))
    }

    fn nearest_of(
        &self,
        part: Range<usize>,
        whole: bool,
        k: usize,
    ) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        match &self.query {
            query if whole => self.search.kneighbors(query.as_ref(), k),
            Some(query) => self.search.kneighbors(Some(&query.slice_rows(part)), k),
            None => self.search.kneighbors_of(part, k),
        }
    }

    fn within<T: crate::array::Number>(
        &self,
        radius: f64,
        cancel: &Cancel,
    ) -> Result<(Array, Array, Array), Failure> {
        let mut offsets = vec![0i64];
        let mut distances = Vec::<T>::new();
        let mut indices = Vec::<i64>::new();
        let parts = self.parts();
        for part in &parts {
            cancel.check()?;
            let graph = self.within_of(part.clone(), parts.len() == 1, radius)?;
            let before = indices.len() as i64;
            let pattern = graph.pattern();
            offsets.extend(pattern.indptr()[1..].iter().map(|&end| before + i64::from(end)));
            indices.extend(pattern.indices().iter().map(|&row| i64::from(row)));
            append(&mut distances, vector(read_back(graph.values().clone())?)?);
        }
        let lengths = [offsets.len(), distances.len(), indices.len()];
        Ok((
            Array::new(offsets, vec![lengths[0]]),
            Array::new(distances, vec![lengths[1]]),
            Array::new(indices, vec![lengths[2]]),
        ))
    }

    fn within_of(
        &self,
        part: Range<usize>,
        whole: bool,
        radius: f64,
    ) -> Result<Csr, DistanceError> {
        match &self.query {
            query if whole => self.search.radius_neighbors(query.as_ref(), radius),
            Some(query) => self.search.radius_neighbors(Some(&query.slice_rows(part)), radius),
            None => self.search.radius_neighbors_of(part, radius),
        }
    }
}

/// Moves the first part instead of copying it.
fn append<T>(all: &mut Vec<T>, part: Vec<T>) {
    match all.is_empty() {
        true => *all = part,
        false => all.extend(part),
    }
}
