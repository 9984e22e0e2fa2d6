//! The command line.
use std::{num::NonZeroUsize, path::PathBuf};

use clap::Parser;
use sparsek_examples::backend::Choice;

/// Finds the nearest rows of a sparse matrix in a file, by brute force.
///
/// The files are CSR matrices as scipy's save_npz writes them; values are read as f32. The output is an .npz with `distances`
/// (f32) and `indices` (i64) of shape [rows, k], the nearest first, ties by index. Without --query the matrix is compared with
/// itself, and no row is its own neighbour.
#[derive(Parser, Debug)]
#[command(name = "knn", version)]
pub struct Cli {
    /// The matrix among whose rows neighbours are found.
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// The matrix whose rows are asked for. Default: the data itself.
    #[arg(long, value_name = "FILE")]
    pub query: Option<PathBuf>,
    /// How far rows are apart: a name such as manhattan, or minkowski:3. An unknown one is answered with the list.
    #[arg(long)]
    pub metric: String,
    /// Neighbours of each row.
    #[arg(long, required_unless_present = "radius", conflicts_with = "radius")]
    pub k: Option<usize>,
    /// Find all rows this near instead of the k nearest. The output is then a CSR matrix in three arrays: `indptr` and
    /// `indices` (i64), `distances` (f32).
    #[arg(long, allow_negative_numbers = true, value_parser = radius)]
    pub radius: Option<f64>,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// What to compute with.
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// Rows asked for at a time. Default: for 4,194,304 distances, at least 1024 and at least a 64th of all.
    #[arg(long, value_name = "ROWS")]
    pub query_batch: Option<NonZeroUsize>,
}

fn radius(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(radius) if !f64::is_nan(radius) => Ok(radius),
        _ => Err("a number is needed".into()),
    }
}
