//! Nearest neighbors.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use burn::tensor::{DType, Int, Tensor};
use pyo3::prelude::*;
use sparsek::{
    distance::{DistanceError, Metric, NearestNeighbors, Samples},
    io::memory,
    sparse::Csr,
};

use crate::{
    array::{Array, Number, read_back, vector},
    device,
    error::Failure,
    matrix::{Matrix, Rows, parse},
    worker::{self, Cancel},
};

/// Queries between two checks for an interrupt on the CPU. Batches change no bit.
const PART: usize = 16_384;

/// Rows to search among, and what searches derive from them once.
#[pyclass(frozen)]
pub struct Index {
    searches: Searches,
}

#[allow(clippy::large_enum_variant, reason = "there is one per index")]
#[derive(Clone)]
enum Searches {
    Sparse(NearestNeighbors),
    Dense {
        search: NearestNeighbors<Tensor<2>>,
        metric: Metric,
        /// The same rows as a matrix, for sparse queries and radius searches.
        compressed: Arc<OnceLock<NearestNeighbors>>,
    },
}

#[pymethods]
impl Index {
    #[new]
    fn new(rows: PyRef<'_, Matrix>, metric: &str) -> PyResult<Self> {
        let metric = parse(metric)?;
        let searches = match &rows.rows {
            Rows::Sparse(csr) => Searches::Sparse(NearestNeighbors::fit(csr.clone(), metric)),
            Rows::Dense(rows) => Searches::Dense {
                search: NearestNeighbors::fit(rows.clone(), metric),
                metric,
                compressed: Arc::default(),
            },
        };
        Ok(Self { searches })
    }

    /// Whether the rows are dense.
    #[getter]
    fn is_dense(&self) -> bool {
        matches!(self.searches, Searches::Dense { .. })
    }

    /// Distances and indices of the `k` nearest rows, nearest first. Without a query, the index
    /// queries itself, without each row itself.
    fn kneighbors(
        &self,
        py: Python<'_>,
        query: Option<PyRef<'_, Matrix>>,
        k: usize,
    ) -> PyResult<(Array, Array)> {
        let (searches, query) = (self.searches.clone(), query.map(|query| query.rows.clone()));
        worker::run(py, move |cancel| match searches.of(query)? {
            Request::Sparse(search) => search.nearest_of_dtype(k, cancel),
            Request::Dense(search) => search.nearest_of_dtype(k, cancel),
        })
    }

    /// Offsets, distances and indices of all rows within a radius, by index.
    fn radius_neighbors(
        &self,
        py: Python<'_>,
        query: Option<PyRef<'_, Matrix>>,
        radius: f64,
    ) -> PyResult<(Array, Array, Array)> {
        let (searches, query) = (self.searches.clone(), query.map(|query| query.rows.clone()));
        worker::run(py, move |cancel| {
            let search = searches.compressed(query)?;
            match search.search.index().dtype() {
                DType::F64 => search.within::<f64>(radius, cancel),
                _ => search.within::<f32>(radius, cancel),
            }
        })
    }
}

impl Searches {
    /// Adds a query. Dense rows meet dense rows only; all others meet as matrices.
    fn of(&self, query: Option<Rows>) -> Result<Request, Failure> {
        let Self::Dense { search, .. } = self else {
            return Ok(Request::Sparse(self.compressed(query)?));
        };
        let query = match query {
            None => None,
            Some(Rows::Dense(query)) => Some(query),
            query => return Ok(Request::Sparse(self.compressed(query)?)),
        };
        Ok(Request::Dense(Search { search: search.clone(), query }))
    }

    /// Adds a query. Dense rows become matrices.
    fn compressed(&self, query: Option<Rows>) -> Result<Search<Csr>, Failure> {
        let search = match self {
            Self::Sparse(search) => search.clone(),
            Self::Dense { search, metric, compressed } => match compressed.get() {
                Some(search) => search.clone(),
                None => {
                    let index = Csr::from_dense(search.index().clone())?;
                    compressed.get_or_init(|| NearestNeighbors::fit(index, *metric)).clone()
                }
            },
        };
        let query = query.map(|query| query.to_csr()).transpose()?;
        Ok(Search { search, query })
    }
}

#[allow(clippy::large_enum_variant, reason = "there is one per call")]
enum Request {
    Sparse(Search<Csr>),
    Dense(Search<Tensor<2>>),
}

struct Search<S: Samples> {
    search: NearestNeighbors<S>,
    query: Option<S>,
}

impl<S: Samples> Search<S> {
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
}

impl Search<Csr> {
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
