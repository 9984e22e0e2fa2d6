//! Nearest neighbors.

use std::ops::Range;

use burn::tensor::{DType, Int, Tensor};
use pyo3::prelude::*;
use sparsek::{
    distance::{AnySamples, DistanceError, NearestNeighbors},
    io::memory,
    sparse::Csr,
};

use crate::{
    array::{Array, Number, Output, Place, read_back, vector},
    device,
    error::Failure,
    matrix::{Matrix, parse},
    worker::{self, Cancel},
};

/// Queries between two checks for an interrupt on the CPU. Batches change no bit.
const PART: usize = 16_384;

/// Rows to search among, and what searches derive from them once.
#[pyclass(frozen)]
pub struct Index {
    search: NearestNeighbors<AnySamples>,
    place: Place,
}

#[pymethods]
impl Index {
    #[new]
    fn new(rows: PyRef<'_, Matrix>, metric: &str) -> PyResult<Self> {
        let search = NearestNeighbors::fit(rows.rows.clone(), parse(metric)?);
        Ok(Self { search, place: rows.place })
    }

    /// Whether the rows are dense.
    #[getter]
    fn is_dense(&self) -> bool {
        matches!(self.search.index(), AnySamples::Dense(_))
    }

    /// Distances and indices of the `k` nearest rows, nearest first. Without a query, the index
    /// queries itself, without each row itself.
    fn kneighbors(
        &self,
        py: Python<'_>,
        query: Option<PyRef<'_, Matrix>>,
        k: usize,
    ) -> PyResult<(Output, Output)> {
        let place = query.as_ref().map_or(self.place, |query| query.place);
        let search = self.with(query);
        worker::run(py, move |cancel| match place {
            Place::Host => {
                let (distances, indices) = search.nearest_of_dtype(k, cancel)?;
                Ok((Output::Host(distances), Output::Host(indices)))
            }
            #[cfg(feature = "cuda")]
            Place::Device => {
                let shape = vec![search.rows(), k];
                let (distances, indices) = search.search.kneighbors(search.query.as_ref(), k)?;
                Ok((place.give(distances, shape.clone())?, place.give_indices(indices, shape)?))
            }
        })
    }

    /// Offsets, distances and indices of all rows within a radius, by index.
    fn radius_neighbors(
        &self,
        py: Python<'_>,
        query: Option<PyRef<'_, Matrix>>,
        radius: f64,
    ) -> PyResult<(Array, Array, Array)> {
        let search = self.with(query);
        worker::run(py, move |cancel| match search.search.index().dtype() {
            DType::F64 => search.within::<f64>(radius, cancel),
            _ => search.within::<f32>(radius, cancel),
        })
    }
}

impl Index {
    fn with(&self, query: Option<PyRef<'_, Matrix>>) -> Search {
        Search { search: self.search.clone(), query: query.map(|query| query.rows.clone()) }
    }
}

struct Search {
    search: NearestNeighbors<AnySamples>,
    query: Option<AnySamples>,
}

impl Search {
    fn rows(&self) -> usize {
        self.query.as_ref().unwrap_or(self.search.index()).rows()
    }

    /// Ranges of queries; the only one is all of them.
    fn parts(&self) -> Vec<Range<usize>> {
        let rows = self.rows();
        let part = if device::is_host(&self.search.index().device()) { PART } else { rows };
        let starts = (0..rows.max(1)).step_by(part.max(1));
        starts.map(|first| first..rows.min(first + part)).collect()
    }

    fn nearest_of_dtype(&self, k: usize, cancel: &Cancel) -> Result<(Array, Array), Failure> {
        let (rows, dtype) = (self.rows(), self.search.index().dtype());
        let size = dtype.size().max(4) + size_of::<i64>();
        let asked = memory::product(&[rows, k, size]);
        memory::check(format_args!("{k} neighbors of {rows} rows"), asked)?;
        match dtype {
            DType::F64 => self.nearest::<f64>(k, cancel),
            _ => self.nearest::<f32>(k, cancel),
        }
    }

    fn nearest<T: Number>(&self, k: usize, cancel: &Cancel) -> Result<(Array, Array), Failure> {
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

    fn within<T: Number>(
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
