//! Loads files of scipy's `save_npz`.

use std::{
    io::{self, Cursor, Read, Seek},
    path::{Path, PathBuf},
};

use burn::tensor::{DType, Element, Tensor, TensorCreationOptions, TensorData};

use super::{
    csr::{Csr, check_dtype},
    error::CsrError,
    pattern::Pattern,
};
use crate::io::{
    input, memory,
    npy::Npz,
    scipy::{Matrix, Value, Values},
    text,
};

/// Why a file was not loaded, in one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpzError {
    /// The file cannot be opened.
    #[error("{}: {source}", shown(file))]
    Io {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Truncated, or not a matrix.
    #[error("{}: {reason}", shown(file))]
    Format {
        /// The file.
        file: PathBuf,
        /// The reason and the array.
        reason: String,
    },
    /// Not a valid matrix here.
    #[error("{}: {source}", shown(file))]
    Csr {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: CsrError,
    },
}

impl Csr {
    /// Loads csr, csc, coo or bsr from `scipy.sparse.save_npz`.
    ///
    /// - Without the array `format` (early scipy), coo if there is an array `row`, else csr.
    /// - Sums repeated entries as [`Csr::from_unsorted`]; keeps explicit zeros, also of blocks;
    ///   ignores capacity behind the last offset.
    /// - Indices are integers, values bools, integers or floats, of any width and byte order;
    ///   rounded to the dtype of the options, or the device's default.
    ///
    /// Checks shapes first. Memory follows rows and entries, within [`memory::limit`].
    ///
    /// # Errors
    ///
    /// [`NpzError`] names file and array: not a regular file, missing, truncated, of another format
    /// (`dia`) or dtype, ids out of range, decreasing offsets, or sizes that disagree or exceed the
    /// limit.
    pub fn from_npz(
        path: impl AsRef<Path>,
        options: impl Into<TensorCreationOptions>,
    ) -> Result<Self, NpzError> {
        let path = path.as_ref();
        let open = || {
            let opened = input::open(path).map(|(file, _)| file);
            opened.map_err(|source| NpzError::Io { file: path.to_path_buf(), source })
        };
        load(path, open, options.into())
    }

    /// [`from_npz`](Csr::from_npz) of a file's bytes. Errors call it `name`.
    pub fn from_npz_bytes(
        name: impl AsRef<Path>,
        bytes: &[u8],
        options: impl Into<TensorCreationOptions>,
    ) -> Result<Self, NpzError> {
        load(name.as_ref(), || Ok(Cursor::new(bytes)), options.into())
    }
}

fn load<R: Read + Seek>(
    name: &Path,
    open: impl FnOnce() -> Result<R, NpzError>,
    options: TensorCreationOptions,
) -> Result<Csr, NpzError> {
    let dtype = options.dtype_or(options.device.settings().float_dtype.into());
    let invalid = |source: CsrError| NpzError::Csr { file: name.to_path_buf(), source };
    check_dtype(dtype, &options.device).map_err(invalid)?;
    let file = open()?;
    let read = match dtype {
        DType::F64 => read::<f64>(file),
        _ => read::<f32>(file),
    };
    let (pattern, values) =
        read.map_err(|reason| NpzError::Format { file: name.to_path_buf(), reason })?;
    let values = Tensor::from_data(values, (&options.device, dtype));
    Csr::from_unsorted(&pattern, values).map_err(invalid)
}

fn shown(path: &Path) -> String {
    text::clean(&path.display().to_string())
}

fn read<T: Value + Element>(file: impl Read + Seek) -> Result<(Pattern, TensorData), String> {
    let matrix = Matrix::<T>::read(&mut Npz::new(file)?, Values::Needed)?;
    let values = matrix.values.unwrap_or_default();
    // Pattern as read, sorted and as i32; sources; values twice.
    let entries = memory::product(&[values.len(), 5 * size_of::<u32>() + 2 * size_of::<T>()]);
    let rows = memory::product(&[matrix.indptr.len(), 3 * size_of::<u32>()]);
    let what = format_args!("a matrix of {} entries", values.len());
    memory::check(what, entries + rows).map_err(|error| error.to_string())?;
    let shape = [values.len()];
    let [rows, cols] = matrix.shape;
    let pattern = Pattern::new(rows, cols, matrix.indptr, matrix.indices);
    let pattern = pattern.map_err(|error| error.to_string())?;
    Ok((pattern, TensorData::new(values, shape)))
}
