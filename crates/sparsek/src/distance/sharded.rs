//! Ties go to the lowest row: lists join in row order, and the merge takes the first.
//!
//! ```text
//! each shard finds the k nearest of its rows, on its device
//! lists move to one device and are merged by distance, then row
//! ```

use std::ops::Range;
#[cfg(not(target_family = "wasm"))]
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

use burn::tensor::{Device, Int, IntDType, Tensor};

use super::{
    error::DistanceError,
    measure::Measure,
    neighbors::{check_k, without_self},
    pairwise::check_kinds,
    samples::through_host,
    types::{Nearest, NearestNeighbors, Rows, Samples},
};
use crate::sparse::{Csr, CsrError};

/// Nearest neighbors among rows divided over devices, which search in parallel. Queries may be on
/// any device, results are on the first shard's. Searches also err if a device lacks the dtype.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::distance::{Metric, ShardedNeighbors};
///
/// // Two devices; the index has three rows.
/// let devices = [Device::flex(), Device::flex()];
/// let shards = vec![
///     Tensor::<2>::from_data([[1.0, 0.5], [0.5, 4.0]], &devices[0]),
///     Tensor::<2>::from_data([[4.0, 4.5]], &devices[1]),
/// ];
/// let index = ShardedNeighbors::fit(shards, Metric::Euclidean)?;
/// let query = Tensor::<2>::from_data([[4.0, 4.0]], &devices[0]);
/// let (distances, indices) = index.kneighbors(&query, 2)?;
/// distances.into_data().assert_eq(&TensorData::from([[0.5, 3.5]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[2, 1]]), false);
/// # Ok::<(), sparsek::distance::DistanceError>(())
/// ```
///
/// # Guarantees
///
/// Dense rows [searched directly](Measure::searches_dense): as [`NearestNeighbors`] of all rows,
/// bit for bit. Others: up to rounding, as shards may choose another routine.
///
/// # Cost
///
/// A search per shard, 12 bytes per neighbor and shard through the host (f32), and a selection of
/// k among 2 k elements per query and shard.
#[derive(Clone)]
pub struct ShardedNeighbors<S: Samples = Csr> {
    shards: Vec<Shard<S>>,
    rows: usize,
}

#[derive(Clone)]
struct Shard<S: Samples> {
    search: NearestNeighbors<S>,
    /// Number of its first row.
    first: usize,
}

impl<S: Samples> ShardedNeighbors<S> {
    /// Takes consecutive rows on any devices.
    ///
    /// Errors: [`DistanceError::Shards`], [`DistanceError::Columns`], [`DistanceError::Dtypes`],
    /// [`DistanceError::Rows`].
    pub fn fit(shards: Vec<S>, measure: impl Into<Measure>) -> Result<Self, DistanceError> {
        let measure = measure.into();
        let mut rows = 0;
        let mut placed: Vec<Shard<S>> = Vec::with_capacity(shards.len());
        for shard in shards {
            if let Some(one) = placed.first() {
                check_kinds(one.search.index(), &shard)?;
            }
            let count = shard.rows();
            placed.push(Shard { search: NearestNeighbors::fit(shard, measure), first: rows });
            rows += count;
        }
        let first = placed.first().ok_or(DistanceError::Shards)?;
        check_rows(rows, &first.search.index().device())?;
        Ok(Self { shards: placed, rows })
    }

    /// Sets queries per batch.
    pub fn with_query_batch(self, rows: usize) -> Self {
        let shards = self.shards.into_iter();
        let batched =
            |shard: Shard<S>| Shard { search: shard.search.with_query_batch(rows), ..shard };
        Self { shards: shards.map(batched).collect(), ..self }
    }

    /// Rows of all shards.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.shards[0].search.index().cols()
    }

    /// The first shard's device.
    pub fn device(&self) -> Device {
        self.shards[0].search.index().device()
    }

    /// [`NearestNeighbors::kneighbors`] over all shards.
    pub fn kneighbors(
        &self,
        query: &S,
        k: usize,
    ) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        self.check(query, k, false)?;
        self.nearest(query, k)
    }

    /// [`kneighbors`](Self::kneighbors) of a range of index rows, excluding themselves. Panics out
    /// of bounds.
    pub fn kneighbors_of(
        &self,
        rows: Range<usize>,
        k: usize,
    ) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        let mut found: Vec<Nearest> = Vec::new();
        for (shard, own) in self.pieces(rows) {
            let query = shard.search.index().slice_rows(own.clone());
            self.check(&query, k, true)?;
            let more = if k == 0 || own.is_empty() { k } else { k + 1 };
            let (values, indices) = self.nearest(&query, more)?;
            found.push(match more > k {
                true => without_self(values, indices, shard.first + own.start),
                false => (values, indices),
            });
        }
        let (values, indices) = found.into_iter().unzip();
        Ok((Tensor::cat(values, 0), Tensor::cat(indices, 0)))
    }

    /// [`NearestNeighbors::radius_neighbors`], shard by shard.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use sparsek::distance::{Metric, ShardedNeighbors};
    ///
    /// let device = Device::flex();
    /// let shards = [[[1.0, 0.5], [0.5, 4.0]], [[4.0, 4.5], [9.0, 9.0]]];
    /// let shards = shards.map(|rows| Tensor::<2>::from_data(rows, &device));
    /// let index = ShardedNeighbors::fit(shards.to_vec(), Metric::Manhattan)?;
    /// let query = Tensor::<2>::from_data([[4.0, 4.0]], &device);
    /// let near = index.radius_neighbors(&query, 3.5)?;
    /// assert_eq!(near.pattern().indices(), [1, 2]);
    /// # Ok::<(), sparsek::distance::DistanceError>(())
    /// ```
    pub fn radius_neighbors(&self, query: &S, radius: f64) -> Result<Csr, DistanceError> {
        self.radius_graph(query, None, radius)
    }

    /// [`radius_neighbors`](Self::radius_neighbors) of a range of index rows, excluding themselves.
    /// Panics out of bounds.
    pub fn radius_neighbors_of(
        &self,
        rows: Range<usize>,
        radius: f64,
    ) -> Result<Csr, DistanceError> {
        let mut graphs = Vec::new();
        for (shard, own) in self.pieces(rows) {
            let query = shard.search.index().slice_rows(own.clone());
            graphs.push(self.radius_graph(&query, Some((shard.first, own)), radius)?);
        }
        joined(graphs, Csr::vstack)
    }

    /// `own`: a shard's first row, and its rows that query.
    fn radius_graph(
        &self,
        query: &S,
        own: Option<(usize, Range<usize>)>,
        radius: f64,
    ) -> Result<Csr, DistanceError> {
        check_kinds(query, self.shards[0].search.index())?;
        let primary = self.device();
        let mut graphs = Vec::with_capacity(self.shards.len());
        for Shard { search, first } in &self.shards {
            let own = own.clone().filter(|(shard, _)| shard == first);
            let graph = match own.filter(|_| search.index().rows() > 0) {
                Some((_, rows)) => search.radius_neighbors_of(rows, radius)?,
                None => {
                    let query = query.copy_to(&search.index().device())?;
                    search.radius_neighbors(Some(&query), radius)?
                }
            };
            graphs.push(graph.copy_to(&primary)?);
        }
        joined(graphs, Csr::hstack)
    }

    /// At least one.
    fn pieces(&self, rows: Range<usize>) -> Vec<(&Shard<S>, Range<usize>)> {
        assert!(
            rows.start <= rows.end && rows.end <= self.rows,
            "rows {rows:?} of {} in shards",
            self.rows
        );
        let piece = |shard: &Shard<S>| {
            let count = shard.search.index().rows();
            let [start, end] =
                [rows.start, rows.end].map(|at| at.saturating_sub(shard.first).min(count));
            start..end
        };
        let pieces = self.shards.iter().map(|shard| (shard, piece(shard)));
        let mut pieces: Vec<_> = pieces.filter(|(_, piece)| !piece.is_empty()).collect();
        if pieces.is_empty() {
            pieces.push((&self.shards[0], 0..0));
        }
        pieces
    }

    fn check(&self, query: &S, k: usize, exclude_self: bool) -> Result<(), DistanceError> {
        let one = &self.shards[0].search;
        check_kinds(query, one.index())?;
        check_k(&one.measure, self.rows, k, exclude_self)
    }

    fn nearest(&self, query: &S, k: usize) -> Result<Nearest, DistanceError> {
        let primary = self.device();
        if k == 0 {
            let query = query.copy_to(&primary)?;
            return self.shards[0].search.kneighbors(Some(&query), 0);
        }
        // Queries move before any search begins.
        let mut groups: Vec<(S, Vec<Shard<S>>)> = Vec::new();
        for shard in self.shards.iter().filter(|shard| shard.search.index().rows() > 0) {
            let device = shard.search.index().device();
            match groups.iter_mut().find(|(query, _)| query.device() == device) {
                Some((_, shards)) => shards.push(shard.clone()),
                None => groups.push((query.copy_to(&device)?, vec![shard.clone()])),
            }
        }
        let tasks = groups.into_iter().map(|(query, shards)| {
            move || {
                let search = |shard: Shard<S>| -> Result<(usize, Nearest), DistanceError> {
                    let most = k.min(shard.search.index().rows());
                    Ok((shard.first, shard.search.kneighbors(Some(&query), most)?))
                };
                shards.into_iter().map(search).collect::<Result<Vec<_>, _>>()
            }
        });
        let found = in_parallel(tasks.collect());
        let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut found = found.concat();
        found.sort_by_key(|&(first, _)| first);
        let moved = found.into_iter().map(|(first, (values, indices))| {
            (first, (through_host(values, &primary), through_host(indices, &primary)))
        });
        Ok(self.shards[0].search.join_parts(moved, k, false))
    }
}

fn joined(
    mut graphs: Vec<Csr>,
    join: impl Fn(&[&Csr]) -> Result<Csr, CsrError>,
) -> Result<Csr, DistanceError> {
    match graphs.len() {
        1 => Ok(graphs.remove(0)),
        _ => Ok(join(&graphs.iter().collect::<Vec<_>>())?),
    }
}

fn check_rows(rows: usize, device: &Device) -> Result<(), DistanceError> {
    let dtype = device.settings().int_dtype;
    match dtype == IntDType::I32 && i32::try_from(rows).is_err() {
        true => Err(DistanceError::Rows { rows, device: format!("{device:?}"), dtype }),
        false => Ok(()),
    }
}

/// Threads persist: they own CubeCL streams and memory.
#[cfg(not(target_family = "wasm"))]
fn in_parallel<R: Send + 'static>(mut tasks: Vec<impl FnOnce() -> R + Send + 'static>) -> Vec<R> {
    let Some(last) = tasks.pop() else {
        return Vec::new();
    };
    let started: Vec<_> = (tasks.into_iter().enumerate())
        .map(|(at, task)| {
            let (sender, result) = mpsc::sync_channel(1);
            // Nobody listens after another task panics.
            let job = move || drop(sender.send(catch_unwind(AssertUnwindSafe(task))));
            worker(at).send(Box::new(job)).expect("workers run on");
            result
        })
        .collect();
    let last = last();
    let finished = started.into_iter().map(|result| match result.recv() {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => unreachable!("workers catch panics"),
    });
    finished.chain([last]).collect()
}

#[cfg(not(target_family = "wasm"))]
type Job = Box<dyn FnOnce() + Send>;

#[cfg(not(target_family = "wasm"))]
fn worker(at: usize) -> mpsc::Sender<Job> {
    static WORKERS: Mutex<Vec<mpsc::Sender<Job>>> = Mutex::new(Vec::new());
    let mut workers = WORKERS.lock().unwrap_or_else(PoisonError::into_inner);
    while workers.len() <= at {
        let (sender, jobs) = mpsc::channel::<Job>();
        let work = move || jobs.into_iter().for_each(|job| job());
        let thread = thread::Builder::new().name(format!("sparsek-shard-{}", workers.len()));
        thread.spawn(work).expect("a thread for a device");
        workers.push(sender);
    }
    workers[at].clone()
}

/// Browsers have one thread.
#[cfg(target_family = "wasm")]
fn in_parallel<R>(tasks: Vec<impl FnOnce() -> R>) -> Vec<R> {
    tasks.into_iter().map(|task| task()).collect()
}

/// Nearest neighbors among rows that arrive in parts, for an index beyond memory.
///
/// Holds the queries and the `k` nearest rows so far.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::distance::{Metric, NeighborStream};
///
/// let device = Device::flex();
/// let query = Tensor::<2>::from_data([[4.0, 4.0]], &device);
/// let mut stream = NeighborStream::new(query, Metric::Euclidean, 2)?;
/// for part in [[[1.0, 0.5], [0.5, 4.0]], [[4.0, 4.5], [9.0, 9.0]]] {
///     stream.push(Tensor::<2>::from_data(part, &device))?;
/// }
/// let (distances, indices) = stream.finish()?;
/// distances.into_data().assert_eq(&TensorData::from([[0.5, 3.5]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[2, 1]]), false);
/// # Ok::<(), sparsek::distance::DistanceError>(())
/// ```
///
/// Guarantees as [`ShardedNeighbors`] of the parts. Costs a search per part, and a selection of k
/// among 2 k elements per query.
pub struct NeighborStream<S: Samples = Csr> {
    query: S,
    measure: Measure,
    k: usize,
    best: Option<Nearest>,
    rows: usize,
}

impl<S: Samples> NeighborStream<S> {
    /// Takes the queries. Error: [`DistanceError::Parameter`].
    pub fn new(query: S, measure: impl Into<Measure>, k: usize) -> Result<Self, DistanceError> {
        let measure = measure.into();
        measure.check()?;
        Ok(Self { query, measure, k, best: None, rows: 0 })
    }

    /// Searches the next index rows, on the queries' device.
    ///
    /// Errors if widths, dtypes or devices differ, or rows exceed the device's indices. Failed
    /// parts have no effect.
    pub fn push(&mut self, part: S) -> Result<(), DistanceError> {
        let rows = part.rows();
        check_rows(self.rows + rows, &self.query.device())?;
        let search = NearestNeighbors::fit(part, self.measure);
        let found = search.kneighbors(Some(&self.query), self.k.min(rows))?;
        if self.k == 0 {
            self.rows += rows;
        } else if rows > 0 {
            let best = self.best.take().map(|best| (0, best));
            let parts = best.into_iter().chain([(self.rows, found)]);
            self.best = Some(search.join_parts(parts, self.k, false));
            self.rows += rows;
        }
        Ok(())
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// [`NearestNeighbors::kneighbors`] among all pushed rows.
    pub fn finish(self) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        let Self { k, rows, best, query, measure } = self;
        check_k(&measure, rows, k, false)?;
        match best {
            Some(best) => Ok(best),
            // k is 0.
            None => NearestNeighbors::fit(query.clone(), measure).kneighbors(Some(&query), 0),
        }
    }
}
