//! Why there is no dataset.
use std::path::PathBuf;

use crate::GraphError;

/// Why a dataset could not be had. Each is one line that names the file, where there is one, and the reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A file cannot be opened or read.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is truncated, or not of its format.
    #[error("{}: {reason}", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file's arrays do not describe a graph.
    #[error("{}: {source}", file.display())]
    Graph {
        /// The file.
        file: PathBuf,
        /// What is wrong with the graph.
        source: GraphError,
    },
    /// There is no such folder.
    #[error("{}: no such folder; {hint}", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// What to get, and where.
        hint: String,
    },
    /// The parts do not fit together, or a generator's parameters make no graph.
    #[error("{0}")]
    Invalid(String),
}
