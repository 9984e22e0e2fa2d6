//! Errors of datasets.
use std::path::{Path, PathBuf};

use sparsek::io::{memory::MemoryError, text};

use crate::graph::GraphError;

/// Why a dataset cannot be loaded or generated. Each is one line that names the file, if any.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A file cannot be opened or read.
    #[error("{}: {source}", shown(file))]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is truncated or malformed.
    #[error("{}: {}", shown(file), text::clean(reason))]
    Format {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file's arrays are not a graph.
    #[error("{}: {source}", shown(file))]
    Graph {
        /// The file.
        file: PathBuf,
        /// What is wrong with the graph.
        source: GraphError,
    },
    /// A file exceeds the limit of [`sparsek::io::memory`].
    #[error("{}: {source}", shown(file))]
    Memory {
        /// The file.
        file: PathBuf,
        /// Requested and allowed bytes, and how to raise the limit.
        source: MemoryError,
    },
    /// The folder does not exist.
    #[error("{}: no such folder; {hint}", shown(folder))]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// What to get, and where.
        hint: String,
    },
    /// The parts are inconsistent, or a generator's parameters are out of range.
    #[error("{0}")]
    Invalid(String),
    /// A generator's parameters exceed the memory limit.
    #[error(transparent)]
    TooLarge(#[from] MemoryError),
}

/// A path on one line without control characters.
fn shown(path: &Path) -> String {
    text::clean(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_reach_no_terminal_as_commands() {
        let error = DatasetError::Missing {
            folder: PathBuf::from("da\x1b[2Jta\n"),
            hint: "get it".to_string(),
        };
        let message = error.to_string();
        assert!(message.starts_with("da\\u{1b}[2Jta :"), "{message}");
        let error = DatasetError::Format {
            file: PathBuf::from("features.npy"),
            reason: "dtype <f\x07".to_string(),
        };
        assert_eq!(error.to_string(), "features.npy: dtype <f\\u{7}");
    }
}
