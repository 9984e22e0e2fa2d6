use std::path::{Path, PathBuf};

use sparsek::io::{memory::MemoryError, text};

use crate::graph::GraphError;

/// One-line dataset error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// Unreadable file.
    #[error("{}: {source}", shown(file))]
    Io {
        /// File.
        file: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// Malformed file.
    #[error("{}: {}", shown(file), text::clean(reason))]
    Format {
        /// File.
        file: PathBuf,
        /// Reason.
        reason: String,
    },
    /// Invalid graph.
    #[error("{}: {source}", shown(file))]
    Graph {
        /// File.
        file: PathBuf,
        /// Reason.
        source: GraphError,
    },
    /// Exceeded memory limit.
    #[error("{}: {source}", shown(file))]
    Memory {
        /// File.
        file: PathBuf,
        /// Reason.
        source: MemoryError,
    },
    /// Missing folder.
    #[error("{}: no such folder; {hint}", shown(folder))]
    Missing {
        /// Folder.
        folder: PathBuf,
        /// Remedy.
        hint: String,
    },
    /// Inconsistent parts or parameters.
    #[error("{0}")]
    Invalid(String),
    /// Too much memory.
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
