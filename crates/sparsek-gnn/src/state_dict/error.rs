use std::path::{Path, PathBuf};

use burn::tensor::DType;
use sparsek::io::text;

/// State dict error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateDictError {
    /// Unsupported extension.
    #[error("{}: expected the extension {expected}", shown(file))]
    Extension {
        /// File.
        file: PathBuf,
        /// Extensions.
        expected: &'static str,
    },
    /// Unreadable file.
    #[error("{}: {}", shown(file), text::clean(reason))]
    Read {
        /// File.
        file: PathBuf,
        /// Reason.
        reason: String,
    },
    /// Unwritable file.
    #[error("{}: {}", shown(file), text::clean(reason))]
    Write {
        /// File.
        file: PathBuf,
        /// Reason.
        reason: String,
    },
    /// Unmatched tensors.
    #[error("{}", named(missing, unused))]
    Names {
        /// Missing names.
        missing: Vec<String>,
        /// Unused names.
        unused: Vec<String>,
    },
    /// Wrong shape.
    #[error("{}: expected the shape {expected:?}, found {found:?}", text::clean(name))]
    Shape {
        /// Name.
        name: String,
        /// Shape in PyG.
        expected: Vec<usize>,
        /// Stored shape.
        found: Vec<usize>,
    },
    /// Inconvertible type.
    #[error("{}: {found:?} does not convert to {expected:?}", text::clean(name))]
    Dtype {
        /// Name.
        name: String,
        /// Parameter type.
        expected: DType,
        /// Stored type.
        found: DType,
    },
    /// Differing constant.
    #[error("{}: the model is configured for {expected}, found {found}", text::clean(name))]
    Constant {
        /// Name.
        name: String,
        /// Model value.
        expected: f64,
        /// Stored value.
        found: f64,
    },
    /// Differing shared tensors.
    #[error("{} and {} differ, but the model shares them", text::clean(first), text::clean(second))]
    Shared {
        /// First name.
        first: String,
        /// Second name.
        second: String,
    },
    /// Repeated name.
    #[error("two tensors of the model have the name {}", text::clean(name))]
    Duplicate {
        /// Name.
        name: String,
    },
    /// Unmapped layer.
    #[error("the weights of {layer} have no mapping to PyG's (at {path:?} in the model)")]
    Layer {
        /// Path in the model.
        path: String,
        /// Type.
        layer: String,
    },
}

fn shown(path: &Path) -> String {
    text::clean(&path.display().to_string())
}

fn named(missing: &[String], unused: &[String]) -> String {
    let lists = [("the file lacks", missing), ("the model lacks", unused)];
    let shown = lists.into_iter().filter(|(_, names)| !names.is_empty());
    let line =
        |(what, names): (&str, &[String])| format!("{what} {}", text::clean(&names.join(", ")));
    shown.map(line).collect::<Vec<_>>().join("; ")
}
