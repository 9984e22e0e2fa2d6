//! CSR matrices from the files of scipy's `save_npz`.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use burn::tensor::{DType, Tensor, TensorCreationOptions, TensorData};

use super::{Csr, CsrError, Pattern, csr::check_dtype};
use crate::npy::Npz;

/// Why a file was not read as a CSR matrix. Each is one line that names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpzError {
    /// The file cannot be opened.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system reports.
        source: io::Error,
    },
    /// The file is truncated, or its arrays are not those of a CSR matrix.
    #[error("{}: {reason}", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, and in which array.
        reason: String,
    },
    /// The arrays do not fit together, or the device lacks the dtype.
    #[error("{}: {source}", file.display())]
    Csr {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        source: CsrError,
    },
}

impl Csr {
    /// Loads a CSR matrix that `scipy.sparse.save_npz` wrote, compressed or not.
    ///
    /// Columns that are out of order are sorted, and values of one place added up, as [`Csr::from_unsorted`] does; explicit
    /// zeros are kept. The values become what the options ask for, the device's default float dtype (f32) if nothing:
    /// `Csr::from_npz(path, &device)`, `Csr::from_npz(path, (&device, DType::F64))`.
    ///
    /// Read are the arrays `format` (which must say `csr`), `shape`, `indptr`, `indices` (int32 or int64) and `data`:
    /// float32, float64, bool, or integers, rounded where the dtype needs it.
    ///
    /// # Errors
    ///
    /// [`NpzError`], naming the file and the array: missing or truncated, of another format such as `csc`, of a dtype not
    /// listed, with ids out of range, offsets that fall, or sizes that do not agree. Declared sizes are checked against the
    /// bytes there before anything is allocated.
    pub fn from_npz(
        path: impl AsRef<Path>,
        options: impl Into<TensorCreationOptions>,
    ) -> Result<Self, NpzError> {
        let path = path.as_ref();
        let options = options.into();
        let dtype = options.dtype_or(options.device.settings().float_dtype.into());
        let invalid = |source: CsrError| NpzError::Csr {
            file: path.to_path_buf(),
            source,
        };
        check_dtype(dtype, &options.device).map_err(invalid)?;
        let file = File::open(path).map_err(|source| NpzError::Io {
            file: path.to_path_buf(),
            source,
        })?;
        let arrays = Arrays::read(file, dtype).map_err(|reason| NpzError::Format {
            file: path.to_path_buf(),
            reason,
        })?;
        let [rows, cols] = arrays.shape;
        let pattern = Pattern::new(rows, cols, arrays.indptr, arrays.indices);
        let pattern = pattern.map_err(|error| invalid(error.into()))?;
        let values = Tensor::from_data(arrays.data, (&options.device, dtype));
        Self::from_unsorted(&pattern, values).map_err(invalid)
    }
}

/// What a file holds.
struct Arrays {
    shape: [usize; 2],
    indptr: Vec<u32>,
    indices: Vec<u32>,
    data: TensorData,
}

impl Arrays {
    fn read(file: File, dtype: DType) -> Result<Self, String> {
        let mut npz = Npz::new(file)?;
        let format = npz.read("format", |array| array.into_text())?;
        if format != "csr" {
            return Err(format!(
                "array format: the matrix is in {format:?}, not in \"csr\" (scipy's tocsr() converts it)"
            ));
        }
        let shape = npz.read("shape", |array| array.into_u32())?;
        let &[rows, cols] = shape.as_slice() else {
            let found = shape.len();
            return Err(format!("array shape: {found} numbers, a matrix has 2"));
        };
        let indptr = npz.read("indptr", |array| array.into_u32())?;
        let indices = npz.read("indices", |array| array.into_u32())?;
        let data = npz.read("data", |array| {
            let shape = [array.shape().iter().product::<usize>()];
            Ok(match dtype {
                DType::F64 => TensorData::new(array.into_f64()?, shape),
                _ => TensorData::new(array.into_f32()?, shape),
            })
        })?;
        Ok(Self {
            shape: [rows as usize, cols as usize],
            indptr,
            indices,
            data,
        })
    }
}
