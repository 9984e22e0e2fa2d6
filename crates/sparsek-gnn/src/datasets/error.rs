//! Why there is no dataset.
use std::path::{Path, PathBuf};

use sparsek::io::{memory::MemoryError, text};

use crate::GraphError;

/// Why a dataset could not be had. Each is one line that names the file, where there is one, and
/// the reason.
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
    /// A file is truncated, or not of its format.
    #[error("{}: {}", shown(file), text::clean(reason))]
    Format {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file's arrays do not describe a graph.
    #[error("{}: {source}", shown(file))]
    Graph {
        /// The file.
        file: PathBuf,
        /// What is wrong with the graph.
        source: GraphError,
    },
    /// A file declares or holds more than the memory limit allows; see [`sparsek::io::memory`].
    #[error("{}: {source}", shown(file))]
    Memory {
        /// The file.
        file: PathBuf,
        /// What was asked, what is allowed, and how to raise it.
        source: MemoryError,
    },
    /// There is no such folder.
    #[error("{}: no such folder; {hint}", shown(folder))]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// What to get, and where.
        hint: String,
    },
    /// The parts do not fit together, or a generator's parameters make no graph.
    #[error("{0}")]
    Invalid(String),
    /// A generator's parameters ask for more than the memory limit allows.
    #[error(transparent)]
    TooLarge(#[from] MemoryError),
}

/// A path on one line, without control characters.
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
