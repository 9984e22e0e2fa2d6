//! The search, a batch of queries at a time.
use std::{error::Error, io, ops::Range};

use sparsek::{
    distance::NearestNeighbors,
    io::{
        memory::{self, MemoryError},
        output::Output,
    },
    sparse::Csr,
};
use sparsek_examples::npz::Writer;

/// Distances that are computed at a time, the fewest queries that are worth it, since each batch goes through the index anew,
/// and the most batches.
const BATCH: usize = 1 << 22;
const LEAST_BATCH: usize = 1024;
const MOST_BATCHES: usize = 64;

/// Bytes of a neighbor that was found: its distance and its index.
const NEIGHBOR: usize = size_of::<f32>() + size_of::<i64>();

/// Which rows are wanted.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    /// So many, the nearest.
    Nearest(usize),
    /// All this near.
    Within(f64),
}

/// Which rows of which others are wanted.
pub struct Search {
    pub index: NearestNeighbors,
    /// None where the index is compared with itself.
    pub query: Option<Csr>,
    pub wanted: Wanted,
}

/// What was found, query after query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub distances: Vec<f32>,
    pub indices: Vec<i64>,
    /// How many were found up to the end of each query.
    pub ends: Vec<i64>,
}

impl Search {
    /// Queries.
    pub fn rows(&self) -> usize {
        self.query.as_ref().unwrap_or(self.index.index()).rows()
    }

    /// The batches of queries; one at least, so that what is wrong is found without any.
    pub fn batches(&self, rows: Option<usize>) -> Vec<Range<usize>> {
        let fitting = BATCH / self.index.index().rows().max(1);
        let least = LEAST_BATCH.max(self.rows().div_ceil(MOST_BATCHES));
        let batch = rows.unwrap_or(fitting.max(least));
        let starts = (0..self.rows().max(1)).step_by(batch);
        let range = |start: usize| start..self.rows().min(start.saturating_add(batch));
        starts.map(range).collect()
    }

    /// Refuses a result that does not fit in the memory that may be used. More neighbors than
    /// there are rows are refused by the search.
    pub fn check_memory(&self) -> Result<(), MemoryError> {
        let (Wanted::Nearest(k), rows) = (self.wanted, self.rows()) else {
            return Ok(());
        };
        let k = k.min(self.index.index().rows());
        memory::check(
            format_args!("--k: {k} neighbors of {rows} rows"),
            memory::product(&[rows, k, NEIGHBOR]),
        )
    }

    /// Adds what some of the queries find.
    pub fn run(&self, rows: Range<usize>, found: &mut Found) -> Result<(), Box<dyn Error>> {
        let query = self.query.as_ref().map(|all| all.slice_rows(rows.clone()));
        match self.wanted {
            Wanted::Nearest(k) => {
                let (distances, indices) = match &query {
                    Some(query) => self.index.kneighbors(Some(query), k)?,
                    None => self.index.kneighbors_of(rows, k)?,
                };
                found
                    .distances
                    .extend(distances.try_into_data()?.iter::<f32>());
                found.indices.extend(indices.try_into_data()?.iter::<i64>());
            }
            Wanted::Within(radius) => {
                let near = match &query {
                    Some(query) => self.index.radius_neighbors(Some(query), radius)?,
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

    /// Writes the arrays.
    pub fn write(&self, output: Output, found: &Found) -> io::Result<Output> {
        let mut npz = Writer::new(output)?;
        let shape = match self.wanted {
            Wanted::Nearest(k) => vec![self.rows(), k],
            Wanted::Within(_) => {
                let indptr: Vec<i64> = [0].into_iter().chain(found.ends.iter().copied()).collect();
                npz.array("indptr", &[indptr.len()], &indptr)?;
                vec![found.indices.len()]
            }
        };
        npz.array("distances", &shape, &found.distances)?;
        npz.array("indices", &shape, &found.indices)?;
        npz.finish()
    }
}
