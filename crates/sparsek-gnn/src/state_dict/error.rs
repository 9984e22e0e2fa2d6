//! Errors of state dicts.
use std::path::{Path, PathBuf};

use burn::tensor::DType;
use sparsek::io::text;

/// Why weights were not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateDictError {
    /// The extension names no format that is read, or written.
    #[error("{}: expected the extension {expected}", shown(file))]
    Extension {
        /// File.
        file: PathBuf,
        /// Extensions.
        expected: &'static str,
    },
    /// Missing, unreadable or malformed file.
    #[error("{}: {}", shown(file), text::clean(reason))]
    Read {
        /// File.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file was not written.
    #[error("{}: {}", shown(file), text::clean(reason))]
    Write {
        /// File.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Tensors of the model that the file lacks, or the reverse.
    #[error("{}", named(missing, unused))]
    Names {
        /// Names that the model has and the file lacks.
        missing: Vec<String>,
        /// Names that the file has and the model lacks.
        unused: Vec<String>,
    },
    /// A tensor of another shape than the model's.
    #[error("{}: expected the shape {expected:?}, found {found:?}", text::clean(name))]
    Shape {
        /// Name in the file.
        name: String,
        /// Shape in PyG's orientation.
        expected: Vec<usize>,
        /// Shape in the file.
        found: Vec<usize>,
    },
    /// A type that does not convert to the model's.
    #[error("{}: {found:?} does not convert to {expected:?}", text::clean(name))]
    Dtype {
        /// Name in the file.
        name: String,
        /// Type of the parameter.
        expected: DType,
        /// Type in the file.
        found: DType,
    },
    /// A number that the model's configuration sets otherwise, such as the eps of GIN.
    #[error("{}: the model is configured for {expected}, found {found}", text::clean(name))]
    Constant {
        /// Name in the file.
        name: String,
        /// Value in the model.
        expected: f64,
        /// Value in the file.
        found: f64,
    },
    /// Two tensors that the model shares, with different values.
    #[error("{} and {} differ, but the model shares them", text::clean(first), text::clean(second))]
    Shared {
        /// Name in the file.
        first: String,
        /// Name in the file.
        second: String,
    },
    /// Two tensors of the model under one name.
    #[error("two tensors of the model have the name {}", text::clean(name))]
    Duplicate {
        /// Name.
        name: String,
    },
    /// A layer without a mapping to PyG's.
    #[error("the weights of {layer} have no mapping to PyG's (at {path:?} in the model)")]
    Layer {
        /// Fields that lead to it; empty for the model itself.
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
