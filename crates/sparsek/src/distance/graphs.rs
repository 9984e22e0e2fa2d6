use std::ops::Range;

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, Int, Tensor, TensorData, read_sync},
};

use super::{
    error::DistanceError,
    pairwise::{check, pairwise_distances},
    types::{NearestNeighbors, Samples},
};
use crate::{
    ops::{DistanceOps, RadiusSpec, distance_dtype},
    sparse::{Csr, CsrError, Pattern, check_size, upload},
};

/// Graph entries: scikit-learn's `mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GraphMode {
    /// Ones.
    Connectivity,
    /// Distances.
    Distance,
}

impl GraphMode {
    pub(super) fn apply(self, graph: Csr) -> Csr {
        if self == Self::Distance || graph.nnz() == 0 {
            return graph;
        }
        let options = (&graph.device(), graph.dtype());
        let ones = Tensor::ones([graph.nnz()], options);
        graph.with_values(ones).expect("a value for each entry")
    }
}

impl<S: Samples> NearestNeighbors<S> {
    /// [`kneighbors`](NearestNeighbors::kneighbors) as a matrix `[queries, index rows]`, zeros
    /// included. Also errors above [`MAX_ENTRIES`](crate::sparse::MAX_ENTRIES) entries.
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
    pub fn kneighbors_graph(&self, query: Option<&S>, k: usize) -> Result<Csr, DistanceError> {
        read_sync(self.kneighbors_graph_async(query, k))
    }

    /// Non-blocking [`kneighbors_graph`](NearestNeighbors::kneighbors_graph), for browsers.
    pub async fn kneighbors_graph_async(
        &self,
        query: Option<&S>,
        k: usize,
    ) -> Result<Csr, DistanceError> {
        let rows = query.unwrap_or(&self.index).rows();
        check_size("entries", rows.saturating_mul(k)).map_err(CsrError::from)?;
        graph_of_async(self.kneighbors_async(query, k).await?, self.index.rows()).await
    }

    /// [`kneighbors_graph`](NearestNeighbors::kneighbors_graph) of distances or ones.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::{
    ///     distance::{GraphMode, Metric, NearestNeighbors},
    ///     sparse::Csr,
    /// };
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0], [2.0, 0.0]], &Device::flex());
    /// let index = NearestNeighbors::fit(Csr::from_dense(x).unwrap(), Metric::Manhattan);
    /// let graph = index.kneighbors_graph_with(None, 1, GraphMode::Connectivity).unwrap();
    /// assert_eq!(graph.pattern().indices(), [2, 0, 0]);
    /// graph.values().to_data().assert_eq(&TensorData::from([1.0, 1.0, 1.0]), false);
    /// ```
    pub fn kneighbors_graph_with(
        &self,
        query: Option<&S>,
        k: usize,
        mode: GraphMode,
    ) -> Result<Csr, DistanceError> {
        Ok(mode.apply(self.kneighbors_graph(query, k)?))
    }

    /// [`radius_neighbors`](NearestNeighbors::radius_neighbors) of distances or ones.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::{
    ///     distance::{GraphMode, Metric, NearestNeighbors},
    ///     sparse::Csr,
    /// };
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0], [2.0, 0.0]], &Device::flex());
    /// let index = NearestNeighbors::fit(Csr::from_dense(x).unwrap(), Metric::Manhattan);
    /// let near = index.radius_neighbors_graph(None, 5.0, GraphMode::Connectivity).unwrap();
    /// let ones = TensorData::from([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]);
    /// near.to_dense().into_data().assert_eq(&ones, false);
    /// ```
    pub fn radius_neighbors_graph(
        &self,
        query: Option<&S>,
        radius: f64,
        mode: GraphMode,
    ) -> Result<Csr, DistanceError> {
        Ok(mode.apply(self.radius_neighbors(query, radius)?))
    }

    /// Distances to index rows within `radius` (≥ `radius` if larger is nearer), as
    /// [`kneighbors_graph`](NearestNeighbors::kneighbors_graph). Not differentiable.
    ///
    /// Without a query, rows exclude themselves. The radius is inclusive, rounded to the distances'
    /// dtype; infinity accepts all but NaN.
    ///
    /// Errors as [`kneighbors`](NearestNeighbors::kneighbors), and above
    /// [`MAX_ENTRIES`](crate::sparse::MAX_ENTRIES) entries.
    ///
    /// # Cost
    ///
    /// [`pairwise_distances`] in batches, each read twice; the host receives the columns.
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
    pub fn radius_neighbors(&self, query: Option<&S>, radius: f64) -> Result<Csr, DistanceError> {
        read_sync(self.radius_neighbors_async(query, radius))
    }

    /// Non-blocking [`radius_neighbors`](NearestNeighbors::radius_neighbors), for browsers.
    pub async fn radius_neighbors_async(
        &self,
        query: Option<&S>,
        radius: f64,
    ) -> Result<Csr, DistanceError> {
        let search = self.to_sparse().await?;
        match query {
            Some(query) => search.radius_graph(&query.to_csr().await?, None, radius).await,
            None => search.radius_graph(&search.index, Some(0), radius).await,
        }
    }

    /// [`radius_neighbors`](NearestNeighbors::radius_neighbors) of a range of index rows. Panics
    /// out of bounds.
    pub fn radius_neighbors_of(
        &self,
        rows: Range<usize>,
        radius: f64,
    ) -> Result<Csr, DistanceError> {
        let first = rows.start;
        let search = read_sync(self.to_sparse())?;
        read_sync(search.radius_graph(&search.index.slice_rows(rows), Some(first), radius))
    }
}

impl NearestNeighbors {
    /// `exclude_self`: row of the first query.
    async fn radius_graph(
        &self,
        query: &Csr,
        exclude_self: Option<usize>,
        radius: f64,
    ) -> Result<Csr, DistanceError> {
        check(query, &self.index)?;
        // Without rows, no batch checks it.
        self.measure.check()?;
        let (rows, across) = (query.rows(), self.index.rows());
        let mut graph = GraphBuilder::new(self.measure.distance.algebra().largest, radius);
        for first in (0..rows).step_by(self.batch(across)) {
            let part = first..rows.min(first + self.batch(across));
            let distances = self.distances(&query.slice_rows(part))?;
            graph.push_async(distances, exclude_self.map(|row| row + first)).await?;
        }
        graph.finish(across, (&self.index.device(), distance_dtype(query.dtype())))
    }

    pub(super) fn distances(&self, query: &Csr) -> Result<Tensor<2>, DistanceError> {
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

const RUNS: &str = "the device runs";

pub(super) fn graph_of(
    neighbors: (Tensor<2>, Tensor<2, Int>),
    across: usize,
) -> Result<Csr, DistanceError> {
    read_sync(graph_of_async(neighbors, across))
}

async fn graph_of_async(
    (distances, indices): (Tensor<2>, Tensor<2, Int>),
    across: usize,
) -> Result<Csr, DistanceError> {
    let [rows, k] = indices.dims();
    let indptr = (0..=rows).map(|row| (row * k) as u32).collect();
    let indices = indices.into_data_async().await.expect(RUNS);
    let indices = indices.iter::<i64>().map(|row| row as u32).collect();
    let pattern = Pattern::new(rows, across, indptr, indices).map_err(CsrError::from)?;
    Ok(Csr::from_unsorted(&pattern, distances.flatten(0, 1))?)
}

pub(super) struct GraphBuilder {
    largest: bool,
    radius: f64,
    indptr: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<Tensor<1>>,
}

impl GraphBuilder {
    pub fn new(largest: bool, radius: f64) -> Self {
        Self { largest, radius, indptr: vec![0], indices: Vec::new(), values: Vec::new() }
    }

    /// Appends accepted distances.
    pub fn push(
        &mut self,
        distances: Tensor<2>,
        exclude_self: Option<usize>,
    ) -> Result<(), CsrError> {
        read_sync(self.push_async(distances, exclude_self))
    }

    async fn push_async(
        &mut self,
        distances: Tensor<2>,
        exclude_self: Option<usize>,
    ) -> Result<(), CsrError> {
        let [rows, across] = distances.dims();
        let before = self.indices.len();
        let mut spec =
            RadiusSpec { radius: self.radius, largest: self.largest, exclude_self, total: 0 };
        if rows * across == 0 {
            self.indptr.extend(vec![before as u32; rows]);
            return Ok(());
        }
        let device = distances.device();
        let distances = distances.into_dispatch();
        let counts = <Dispatch as DistanceOps>::count_within(distances.clone(), spec);
        let counts = Tensor::<2, Int>::from_dispatch(counts);
        let [_, parts] = counts.dims();
        let mut offsets = Vec::with_capacity(rows * parts);
        let counts = counts.into_data_async().await.expect(RUNS);
        for (item, count) in counts.iter::<u32>().enumerate() {
            offsets.push(spec.total as u32);
            spec.total += count as usize;
            if (item + 1).is_multiple_of(parts) {
                check_size("entries", before + spec.total)?;
                self.indptr.push((before + spec.total) as u32);
            }
        }
        if spec.total == 0 {
            return Ok(());
        }
        let offsets = upload(&offsets, &device).into_dispatch();
        let (values, columns) = <Dispatch as DistanceOps>::list_within(distances, offsets, spec);
        let columns = Tensor::<1, Int>::from_dispatch(columns).into_data_async();
        let columns = columns.await.expect(RUNS);
        self.indices.extend(columns.iter::<u32>());
        self.values.push(Tensor::from_dispatch(values));
        Ok(())
    }

    /// Builds the matrix.
    pub fn finish(self, across: usize, options: (&Device, DType)) -> Result<Csr, DistanceError> {
        let values = match self.values.is_empty() {
            true => Tensor::from_data(TensorData::new(Vec::<f32>::new(), [0]), options),
            false => Tensor::cat(self.values, 0),
        };
        let rows = self.indptr.len() - 1;
        let pattern = Pattern::new(rows, across, self.indptr, self.indices);
        Ok(Csr::new(pattern.map_err(CsrError::from)?, values)?)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::distance::Metric;

    #[derive(Clone, Copy, Debug)]
    enum Call {
        Neighbors,
        OwnNeighbors,
        NeighborsOf,
        NeighborGraph,
        Radius,
        OwnRadius,
        RadiusOf,
        Pairwise,
    }

    fn run(call: Call, index: &NearestNeighbors, query: &Csr) -> Result<(), DistanceError> {
        match call {
            Call::Neighbors => index.kneighbors(Some(query), 1).map(drop),
            Call::OwnNeighbors => index.kneighbors(None, 0).map(drop),
            Call::NeighborsOf => index.kneighbors_of(0..query.rows(), 1).map(drop),
            Call::NeighborGraph => index.kneighbors_graph(Some(query), 1).map(drop),
            Call::Radius => index.radius_neighbors(Some(query), 1.0).map(drop),
            Call::OwnRadius => index.radius_neighbors(None, 1.0).map(drop),
            Call::RadiusOf => index.radius_neighbors_of(0..query.rows(), 1.0).map(drop),
            Call::Pairwise => {
                pairwise_distances(query, Some(&index.index), index.measure).map(drop)
            }
        }
    }

    #[rstest]
    fn a_bad_parameter_is_refused_with_and_without_rows(
        #[values(
            Call::Neighbors,
            Call::OwnNeighbors,
            Call::NeighborsOf,
            Call::NeighborGraph,
            Call::Radius,
            Call::OwnRadius,
            Call::RadiusOf,
            Call::Pairwise
        )]
        call: Call,
        #[values(0, 3)] rows: usize,
        #[values(0.0, -1.0, f64::NAN, f64::INFINITY)] p: f64,
        #[values(None, Some(1))] batch: Option<usize>,
    ) {
        let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0], [2.0, 0.0]], &Device::flex());
        let x = Csr::from_dense(x).unwrap();
        let mut index = NearestNeighbors::fit(x.clone(), Metric::Minkowski(p));
        if let Some(batch) = batch {
            index = index.with_index_batch(batch).with_query_batch(batch);
        }
        match run(call, &index, &x.slice_rows(0..rows)) {
            Err(DistanceError::Parameter { p: named }) => assert_eq!(named.to_bits(), p.to_bits()),
            other => panic!("{other:?}"),
        }
    }
}
