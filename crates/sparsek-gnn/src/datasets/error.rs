//! Errors of datasets.
use std::path::{Path, PathBuf};

use sparsek::io::{memory::MemoryError, text};

use crate::graph::GraphError;

/// A dataset error: one line that names the file, if any.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// Unreadable file.
    #[error("{}: {source}", shown(file))]
    Io {
        /// File.
        file: PathBuf,
        /// System error.
        source: std::io::Error,
    },
    /// Truncated or malformed file.
    #[error("{}: {}", shown(file), text::clean(reason))]
    Format {
        /// File.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Arrays that are not a graph.
    #[error("{}: {source}", shown(file))]
    Graph {
        /// File.
        file: PathBuf,
        /// What is wrong.
        source: GraphError,
    },
    /// Exceeds the [`sparsek::io::memory`] limit.
    #[error("{}: {source}", shown(file))]
    Memory {
        /// File.
        file: PathBuf,
        /// Requested and allowed bytes.
        source: MemoryError,
    },
    /// Missing folder.
    #[error("{}: no such folder; {hint}", shown(folder))]
    Missing {
        /// Folder.
        folder: PathBuf,
        /// What to get, and where.
        hint: String,
    },
    /// Inconsistent parts or bad generator parameters.
    #[error("{0}")]
    Invalid(String),
    /// Parameters exceed the memory limit.
    #[error(transparent)]
    TooLarge(#[from] MemoryError),
}

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
