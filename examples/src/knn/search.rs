//! The search, one batch of queries at a time.
use std::{error::Error, io, ops::Range};

use sparsek::{
    distance::{AnySamples, ShardedNeighbors},
    io::{memory, output::Output},
};
use sparsek_examples::npz::Writer;

/// Distances per batch, the fewest queries of a batch, since each rereads the index, and the most
/// batches.
const BATCH: usize = 1 << 22;
const LEAST_BATCH: usize = 1024;
const MOST_BATCHES: usize = 64;

/// Bytes of a result: distance and index.
pub const NEIGHBOR: usize = size_of::<f32>() + size_of::<i64>();

/// Which rows to find.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// The k nearest.
    Nearest(usize),
    /// All within a distance.
    Radius(f64),
}

/// A search.
pub struct Search {
    pub index: ShardedNeighbors<AnySamples>,
    /// None compares the index with itself.
    pub query: Option<AnySamples>,
    pub target: Target,
}

/// Results, query after query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbors {
    pub distances: Vec<f32>,
    pub indices: Vec<i64>,
    /// Results up to the end of each query.
    pub ends: Vec<i64>,
}

/// Queries per batch for an index of `index_rows`, unless given.
pub fn batch(queries: usize, index_rows: usize, given: Option<usize>) -> usize {
    let fitting = BATCH / index_rows.max(1);
    let least = LEAST_BATCH.max(queries.div_ceil(MOST_BATCHES));
    given.unwrap_or(fitting.max(least))
}

impl Search {
    /// Number of queries.
    pub fn rows(&self) -> usize {
        self.query.as_ref().map_or(self.index.rows(), AnySamples::rows)
    }

    /// Batches of queries; at least one, so that errors are found.
    pub fn batches(&self, batch: usize) -> Vec<Range<usize>> {
        let starts = (0..self.rows().max(1)).step_by(batch);
        let range = |start: usize| start..self.rows().min(start.saturating_add(batch));
        starts.map(range).collect()
    }

    /// Runs a batch and appends its results.
    pub fn run(&self, rows: Range<usize>, found: &mut Neighbors) -> Result<(), Box<dyn Error>> {
        let query = self.query.as_ref().map(|all| all.slice_rows(rows.clone()));
        match self.target {
            Target::Nearest(k) => {
                let (distances, indices) = match &query {
                    Some(query) => self.index.kneighbors(query, k)?,
                    None => self.index.kneighbors_of(rows, k)?,
                };
                found.distances.extend(distances.try_into_data()?.iter::<f32>());
                found.indices.extend(indices.try_into_data()?.iter::<i64>());
            }
            Target::Radius(radius) => {
                let near = match &query {
                    Some(query) => self.index.radius_neighbors(query, radius)?,
                    None => self.index.radius_neighbors_of(rows, radius)?,
                };
                let distances = near.values().clone().try_into_data()?;
                let before = found.indices.len() as i64;
                let ends = near.pattern().indptr()[1..].iter();
                found.ends.extend(ends.map(|&end| before + i64::from(end)));
                found.distances.extend(distances.iter::<f32>());
                let indices = near.pattern().indices().iter();
                found.indices.extend(indices.map(|&row| i64::from(row)));
                let count = found.indices.len();
                memory::check(
                    format_args!("--radius: {count} neighbors, and more to come,"),
                    memory::product(&[count, NEIGHBOR]),
                )?;
            }
        }
        Ok(())
    }

    /// Writes `distances` and `indices`, or a matrix as scipy's `save_npz`.
    pub fn write(&self, output: Output, found: &Neighbors) -> io::Result<Output> {
        let mut npz = Writer::new(output)?;
        match self.target {
            Target::Nearest(k) => {
                let shape = [self.rows(), k];
                npz.array("distances", &shape, &found.distances)?;
                npz.array("indices", &shape, &found.indices)?;
            }
            Target::Radius(_) => {
                let count = [found.indices.len()];
                let indptr: Vec<i64> = [0].into_iter().chain(found.ends.iter().copied()).collect();
                let shape = [self.rows(), self.index.rows()].map(|rows| rows as i64);
                npz.array("indices", &count, &found.indices)?;
                npz.array("indptr", &[indptr.len()], &indptr)?;
                npz.bytes("format", b"csr")?;
                npz.array("shape", &[2], &shape)?;
                npz.array("data", &count, &found.distances)?;
            }
        }
        npz.finish()
    }
}
