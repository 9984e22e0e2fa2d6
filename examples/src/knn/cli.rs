//! The command line.
use std::{num::NonZeroUsize, path::PathBuf};

use clap::Parser;
use sparsek_examples::backend::Choice;

const EXAMPLES: &str = "\
Examples:
  knn --data ratings.npz --metric cosine --k 16 --output knn.npz
  knn --data ratings.npz --query new.npz --metric minkowski:3 --k 16 --output knn.npz
  knn --data ratings.mtx.gz --metric l1 --radius 2.5 --output near.npz
  knn --data embeddings.npy --metric euclidean --k 100 --backend cuda --devices 0,1 --output k.npz
  knn --data cells.h5ad --key layers/counts --metric cosine --k 15 --output knn.npz";

/// Find the nearest rows of a sparse or dense matrix, by brute force.
///
/// Files are dense rows from numpy's save (.npy), sparse matrices from scipy's save_npz (csr, csc,
/// coo, bsr, dia), Matrix Market files (.mtx, .mtx.gz), or AnnData's .h5ad and 10x Genomics' .h5;
/// values are read as f32. Rows of two kinds are compared as sparse ones. The output is an .npz
/// with `distances` (f32) and `indices` (i64) of shape [rows, k], nearest first, ties by index.
/// Without --query the matrix is compared with itself, and no row is its own neighbor. The memory
/// that it needs is printed first; more than the limit, or than a device has left, is refused.
#[derive(Parser, Debug)]
#[command(name = "knn", version, after_help = EXAMPLES)]
pub struct Cli {
    /// Matrix to search.
    #[arg(help_heading = "Input", long, value_name = "FILE")]
    pub data: PathBuf,
    /// Matrix of query rows. Default: the data.
    #[arg(help_heading = "Input", long, value_name = "FILE")]
    pub query: Option<PathBuf>,
    /// Group of the matrices in HDF5 files, such as layers/counts. Default: X, matrix, or the only
    /// one. All inputs must be HDF5.
    #[arg(help_heading = "Input", long, value_name = "GROUP")]
    pub key: Option<String>,
    /// Distance, such as cosine or minkowski:3. An unknown name prints the list.
    #[arg(help_heading = "Search", long)]
    pub metric: String,
    /// Neighbors per row.
    #[arg(
        help_heading = "Search",
        long,
        required_unless_present = "radius",
        conflicts_with = "radius"
    )]
    pub k: Option<usize>,
    /// Find all rows within this distance instead. The output is a matrix of distances (f32) that
    /// scipy's load_npz reads.
    #[arg(help_heading = "Search", long, allow_negative_numbers = true, value_parser = radius)]
    pub radius: Option<f64>,
    /// File to write.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub output: PathBuf,
    /// Backend.
    #[arg(help_heading = "Device", long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// Device numbers to share the rows, such as 0,1,2,3. Default: the best.
    #[arg(help_heading = "Device", long, value_delimiter = ',')]
    pub devices: Vec<usize>,
    /// Query rows per batch. Default: 4,194,304 distances, at least 1024 rows and a 64th of all.
    #[arg(help_heading = "Device", long, value_name = "ROWS")]
    pub query_batch: Option<NonZeroUsize>,
}

fn radius(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(radius) if !f64::is_nan(radius) => Ok(radius),
        _ => Err("expected a number".into()),
    }
}
