//! Neighbours as sparse matrices.

use std::ops::Range;

use burn::{
    backend::Dispatch,
    tensor::{Int, Tensor, TensorData},
};

use super::{DistanceError, NearestNeighbors, check, pairwise_distances};
use crate::{
    ops::{WithinOps, WithinSpec, computed},
    sparse::{Csr, CsrError, Pattern, check_size, upload},
};

impl NearestNeighbors {
    /// The `k` nearest rows of the index as a matrix: row i has an entry for each neighbour of query i, in the neighbour's
    /// column, and its value is the distance. The neighbours are those of [`kneighbors`](NearestNeighbors::kneighbors); without
    /// a query, no row is its own.
    ///
    /// # Shapes and dtypes
    ///
    /// As many rows as queries, as many columns as the index has rows, `k` entries in each row, columns ascending; the values are
    /// of f64 for matrices of f64 and of f32 for all others, and on the device of the index. Distances of 0 are entries too.
    ///
    /// # Errors
    ///
    /// [`DistanceError`] as for [`kneighbors`](NearestNeighbors::kneighbors), and for more than [`MAX_ENTRIES`](crate::sparse::MAX_ENTRIES) neighbours.
    ///
    /// # Cost
    ///
    /// That of `kneighbors`; the indices are read by the host once and sorted there, the distances stay on the device.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::{
    ///     distance::{Metric, NearestNeighbors},
    ///     sparse::Csr,
    /// };
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0], [2.0, 0.0]], &Device::flex());
    /// let index = NearestNeighbors::fit(Csr::from_dense(x).unwrap(), Metric::Manhattan);
    /// let graph = index.kneighbors_graph(None, 1).unwrap();
    /// assert_eq!(graph.pattern().indices(), [2, 0, 0]);
    /// graph.values().to_data().assert_eq(&TensorData::from([1.0, 5.0, 1.0]), false);
    /// ```
    pub fn kneighbors_graph(&self, query: Option<&Csr>, k: usize) -> Result<Csr, DistanceError> {
        let rows = query.unwrap_or(&self.index).rows();
        check_size("entries", rows.saturating_mul(k)).map_err(CsrError::from)?;
        let (distances, indices) = self.kneighbors(query, k)?;
        let indptr = (0..=rows).map(|row| (row * k) as u32).collect();
        let indices = indices.into_data();
        let indices = indices.iter::<i64>().map(|row| row as u32).collect();
        let pattern = Pattern::new(rows, self.index.rows(), indptr, indices);
        let pattern = pattern.map_err(CsrError::from)?;
        Ok(Csr::from_unsorted(&pattern, distances.flatten(0, 1))?)
    }

    /// All rows of the index at most `radius` away, as a matrix: row i has an entry for each of those of query i, in its column,
    /// and its value is the distance. For inner products and other measures where larger is nearer, all that are at least
    /// `radius`.
    ///
    /// Queries default to the index itself; then no row is its own neighbour. The radius is rounded to the dtype of the distances
    /// and is itself within. An infinite one takes every distance that is not NaN. NaN is within no radius, and nothing is within
    /// a radius of NaN.
    ///
    /// # Shapes and dtypes
    ///
    /// As many rows as queries, as many columns as the index has rows, columns ascending; the values are of f64 for matrices of
    /// f64 and of f32 for all others, and on the device of the index. Distances of 0 are entries too. Without gradient.
    ///
    /// # Errors
    ///
    /// [`DistanceError`] for matrices of different widths, dtypes or devices, and for more than [`MAX_ENTRIES`](crate::sparse::MAX_ENTRIES) neighbours.
    ///
    /// # Cost
    ///
    /// That of [`pairwise_distances`], a batch of queries at a time: 512 MiB of distances unless a batch is set. They are counted
    /// and listed on the device, each read twice; a count for each 4096 distances and the columns of what is found cross to the
    /// host, and these back.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::{
    ///     distance::{Metric, NearestNeighbors},
    ///     sparse::Csr,
    /// };
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0], [2.0, 0.0]], &Device::flex());
    /// let index = NearestNeighbors::fit(Csr::from_dense(x).unwrap(), Metric::Manhattan);
    /// let near = index.radius_neighbors(None, 5.0).unwrap();
    /// assert_eq!(near.pattern().indptr(), [0, 2, 3, 4]);
    /// assert_eq!(near.pattern().indices(), [1, 2, 0, 0]);
    /// near.values().to_data().assert_eq(&TensorData::from([5.0, 1.0, 5.0, 1.0]), false);
    /// ```
    pub fn radius_neighbors(&self, query: Option<&Csr>, radius: f64) -> Result<Csr, DistanceError> {
        match query {
            Some(query) => self.within(query, None, radius),
            None => self.within(&self.index, Some(0), radius),
        }
    }

    /// Neighbours within a radius of some rows of the index, none of which is its own: those rows of what
    /// [`radius_neighbors`](NearestNeighbors::radius_neighbors) gives without a query.
    ///
    /// # Errors
    ///
    /// [`DistanceError::Csr`] for more than [`MAX_ENTRIES`](crate::sparse::MAX_ENTRIES) neighbours.
    ///
    /// # Panics
    ///
    /// If the range ends before it begins or beyond the last row.
    pub fn radius_neighbors_of(
        &self,
        rows: Range<usize>,
        radius: f64,
    ) -> Result<Csr, DistanceError> {
        let first = rows.start;
        self.within(&self.index.slice_rows(rows), Some(first), radius)
    }

    /// Of queries that are rows of the index, `own` is the first.
    fn within(&self, query: &Csr, own: Option<usize>, radius: f64) -> Result<Csr, DistanceError> {
        check(query, &self.index)?;
        let (rows, across) = (query.rows(), self.index.rows());
        let mut found = Found::new(self.measure.distance.needs().largest, radius);
        for first in (0..rows).step_by(self.batch(across)) {
            let part = first..rows.min(first + self.batch(across));
            let distances = self.distances(&query.slice_rows(part))?;
            found.push(distances, own.map(|own| own + first))?;
        }
        let device = self.index.device();
        let values = match found.values.is_empty() {
            true => {
                let none = TensorData::new(Vec::<f32>::new(), [0]);
                Tensor::from_data(none, (&device, computed(query.dtype())))
            }
            false => Tensor::cat(found.values, 0),
        };
        let pattern = Pattern::new(rows, across, found.indptr, found.indices);
        let pattern = pattern.map_err(CsrError::from)?;
        Ok(Csr::new(pattern, values)?)
    }

    /// Distances to all rows of the index, a part of it at a time where a batch is set.
    fn distances(&self, query: &Csr) -> Result<Tensor<2>, DistanceError> {
        let rows = self.index.rows();
        let batch = self.index_batch.unwrap_or(rows).max(1);
        if rows <= batch {
            return pairwise_distances(query, Some(&self.index), self.measure);
        }
        let measure = self.measure.to_parts_of(&self.index);
        let parts = (0..rows).step_by(batch).map(|first| {
            let part = self.index.slice_rows(first..rows.min(first + batch));
            pairwise_distances(query, Some(&part), measure)
        });
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        Ok(Tensor::cat(parts, 1))
    }
}

/// Rows of a sparse matrix, so far, and what is near.
struct Found {
    largest: bool,
    radius: f64,
    indptr: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<Tensor<1>>,
}

impl Found {
    fn new(largest: bool, radius: f64) -> Self {
        Self {
            largest,
            radius,
            indptr: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Takes what is near of some rows of distances; the first of them is the index's row `own`.
    fn push(&mut self, distances: Tensor<2>, own: Option<usize>) -> Result<(), CsrError> {
        let [rows, across] = distances.dims();
        let before = self.indices.len();
        let mut spec = WithinSpec {
            radius: self.radius,
            largest: self.largest,
            own,
            total: 0,
        };
        if rows * across == 0 {
            self.indptr.extend(vec![before as u32; rows]);
            return Ok(());
        }
        let device = distances.device();
        let distances = distances.into_dispatch();
        let counts = <Dispatch as WithinOps>::count_within(distances.clone(), spec);
        let counts = Tensor::<2, Int>::from_dispatch(counts);
        let [_, stretches] = counts.dims();
        let mut offsets = Vec::with_capacity(rows * stretches);
        for (item, count) in counts.into_data().iter::<u32>().enumerate() {
            offsets.push(spec.total as u32);
            spec.total += count as usize;
            if (item + 1).is_multiple_of(stretches) {
                check_size("entries", before + spec.total)?;
                self.indptr.push((before + spec.total) as u32);
            }
        }
        if spec.total == 0 {
            return Ok(());
        }
        let offsets = upload(&offsets, &device).into_dispatch();
        let (values, places) = <Dispatch as WithinOps>::list_within(distances, offsets, spec);
        let places = Tensor::<1, Int>::from_dispatch(places).into_data();
        self.indices.extend(places.iter::<u32>());
        self.values.push(Tensor::from_dispatch(values));
        Ok(())
    }
}
