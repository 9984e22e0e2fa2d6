use std::{
    fs::File,
    io::{self, Cursor, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use burn::tensor::{DType, Element, Tensor, TensorCreationOptions, TensorData, f16};

use super::{
    csr::{Csr, check_dtype},
    error::CsrError,
    pattern::Pattern,
};
#[cfg(feature = "hdf5")]
use crate::io::hdf5;
use crate::io::{
    input, memory, mtx,
    npy::Npz,
    output,
    scipy::{self, Matrix, Value, Values},
    text,
};

/// Failed read or write.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Cannot open or write.
    #[error("{}: {source}", shown(file))]
    Io {
        /// File.
        file: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Damaged, not a matrix, or above a limit.
    #[error("{}: {reason}", shown(file))]
    Format {
        /// File, or `(bytes)`.
        file: PathBuf,
        /// Reason, with array, group or line.
        reason: String,
    },
    /// Invalid matrix.
    #[error("{}: {source}", shown(file))]
    Csr {
        /// File, or `(bytes)`.
        file: PathBuf,
        /// Cause.
        source: CsrError,
    },
}

#[derive(Clone, Copy, Debug)]
enum Format<'a> {
    Npz,
    MatrixMarket,
    /// Group, or the usual one.
    Hdf5(Option<&'a str>),
    /// By the first bytes.
    Either,
}

impl Csr {
    /// Loads csr, csc, coo, bsr or dia from `scipy.sparse.save_npz`.
    ///
    /// - Sums repeats as [`Csr::from_unsorted`]; keeps explicit zeros, except of diagonals.
    /// - Rounds bool, integer or float values to the options' dtype, or the device's default.
    ///
    /// Memory follows rows and entries, within [`memory::limit`].
    pub fn from_npz(
        path: impl AsRef<Path>,
        options: impl Into<TensorCreationOptions>,
    ) -> Result<Self, FileError> {
        load(path.as_ref(), Format::Npz, options.into())
    }

    /// [`from_npz`](Csr::from_npz) from bytes.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use sparsek::sparse::Csr;
    ///
    /// let device = Device::flex();
    /// let a = Csr::from_dense(Tensor::from_data([[0.0, 5.0], [6.0, 0.0]], &device)).unwrap();
    /// let b = Csr::from_npz_bytes(&a.to_npz_bytes(), &device).unwrap();
    /// assert_eq!(a.pattern(), b.pattern());
    /// a.values().to_data().assert_eq(&b.values().to_data(), true);
    /// ```
    pub fn from_npz_bytes(
        bytes: &[u8],
        options: impl Into<TensorCreationOptions>,
    ) -> Result<Self, FileError> {
        of_bytes(bytes, Format::Npz, options.into())
    }

    /// Loads a Matrix Market file, plain or gzipped.
    ///
    /// Takes coordinates of `general`, `symmetric` or `skew-symmetric` matrices, `real`, `integer`
    /// or `pattern` (1); adds the other triangle. Otherwise as [`Csr::from_npz`].
    pub fn from_mtx(
        path: impl AsRef<Path>,
        options: impl Into<TensorCreationOptions>,
    ) -> Result<Self, FileError> {
        load(path.as_ref(), Format::MatrixMarket, options.into())
    }

    /// [`from_mtx`](Csr::from_mtx) from bytes.
    ///
    /// ```
    /// use burn::tensor::{Device, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let text = b"%%MatrixMarket matrix coordinate real symmetric
    /// % [0 5]
    /// % [5 7]
    /// 2 2 2
    /// 2 1 5
    /// 2 2 7";
    /// let a = Csr::from_mtx_bytes(text, &Device::flex()).unwrap();
    /// let dense = TensorData::from([[0.0, 5.0], [5.0, 7.0]]);
    /// a.to_dense().into_data().assert_eq(&dense, false);
    /// ```
    pub fn from_mtx_bytes(
        bytes: &[u8],
        options: impl Into<TensorCreationOptions>,
    ) -> Result<Self, FileError> {
        of_bytes(bytes, Format::MatrixMarket, options.into())
    }

    /// Loads a matrix of AnnData (`.h5ad`) or 10x Genomics (`.h5`).
    ///
    /// - `key`: its path, such as `"X"` or `"layers/counts"`; `None`: `X`, or `matrix` of 10x
    ///   Genomics, or the only group.
    /// - AnnData groups are csr or csc; 10x Genomics gives barcodes × features, as scanpy's
    ///   `read_10x_h5`.
    /// - Reads gzip, LZF and shuffle; refuses other filters, virtual and dense arrays. Otherwise as
    ///   [`Csr::from_npz`].
    #[cfg(feature = "hdf5")]
    pub fn from_hdf5(
        path: impl AsRef<Path>,
        key: Option<&str>,
        options: impl Into<TensorCreationOptions>,
    ) -> Result<Self, FileError> {
        load(path.as_ref(), Format::Hdf5(key), options.into())
    }

    /// [`from_hdf5`](Csr::from_hdf5) from a copy of bytes.
    ///
    /// ```
    /// use burn::tensor::{Device, TensorData};
    /// use hdf5_pure::{AttrValue, FileBuilder};
    /// use sparsek::sparse::Csr;
    ///
    /// let mut file = FileBuilder::new();
    /// let mut x = file.create_group("X");
    /// x.set_attr("encoding-type", AttrValue::String("csr_matrix".into()));
    /// x.set_attr("shape", AttrValue::I64Array(vec![2, 3]));
    /// x.create_dataset("indptr").with_i32_data(&[0, 1, 3]);
    /// x.create_dataset("indices").with_i32_data(&[2, 0, 1]);
    /// x.create_dataset("data").with_f32_data(&[5.0, 6.0, 7.0]);
    /// file.add_group(x.finish());
    ///
    /// let a = Csr::from_hdf5_bytes(&file.finish().unwrap(), Some("X"), &Device::flex()).unwrap();
    /// let dense = TensorData::from([[0.0, 0.0, 5.0], [6.0, 7.0, 0.0]]);
    /// a.to_dense().into_data().assert_eq(&dense, false);
    /// ```
    #[cfg(feature = "hdf5")]
    pub fn from_hdf5_bytes(
        bytes: &[u8],
        key: Option<&str>,
        options: impl Into<TensorCreationOptions>,
    ) -> Result<Self, FileError> {
        of_bytes(bytes, Format::Hdf5(key), options.into())
    }

    /// [`from_npz`](Csr::from_npz), [`from_mtx`](Csr::from_mtx) or, with the feature `hdf5`,
    /// `from_hdf5`, by the first bytes.
    pub fn from_file(
        path: impl AsRef<Path>,
        options: impl Into<TensorCreationOptions>,
    ) -> Result<Self, FileError> {
        load(path.as_ref(), Format::Either, options.into())
    }

    /// Writes a deflated csr file for `scipy.sparse.load_npz`, or keeps the old file.
    ///
    /// Ids are int32, bf16 values float32. Equal matrices give equal bytes.
    ///
    /// Error: [`FileError::Io`].
    pub fn to_npz(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        let path = path.as_ref();
        let written = output::write(path, &self.to_npz_bytes());
        written.map_err(|source| FileError::Io { file: path.to_path_buf(), source })
    }

    /// Bytes of [`to_npz`](Csr::to_npz).
    pub fn to_npz_bytes(&self) -> Vec<u8> {
        let values = self.values().to_data();
        match values.dtype() {
            DType::F64 => self.npz_of(values.iter::<f64>().collect()),
            DType::F16 => self.npz_of(values.iter::<f16>().collect()),
            // NumPy has no bf16.
            _ => self.npz_of(values.iter::<f32>().collect()),
        }
    }

    fn npz_of<T: scipy::Item>(&self, values: Vec<T>) -> Vec<u8> {
        let pattern = self.pattern();
        let shape = [self.rows(), self.cols()];
        scipy::bytes(shape, pattern.indptr(), pattern.indices(), &values)
    }
}

fn shown(path: &Path) -> String {
    text::clean(&path.display().to_string())
}

fn load(path: &Path, format: Format<'_>, options: TensorCreationOptions) -> Result<Csr, FileError> {
    let open = || input::open(path).map(|(file, _): (File, u64)| file);
    open_and_read(path, open, format, options)
}

fn of_bytes(
    bytes: &[u8],
    format: Format<'_>,
    options: TensorCreationOptions,
) -> Result<Csr, FileError> {
    open_and_read(Path::new("(bytes)"), || Ok(Cursor::new(bytes)), format, options)
}

trait Input: Read + Seek {
    /// Reads without borrowing.
    #[cfg(feature = "hdf5")]
    fn into_owned(self) -> impl Read + Seek + Send + 'static;
}

impl Input for File {
    #[cfg(feature = "hdf5")]
    fn into_owned(self) -> impl Read + Seek + Send + 'static {
        self
    }
}

impl Input for Cursor<&[u8]> {
    #[cfg(feature = "hdf5")]
    fn into_owned(self) -> impl Read + Seek + Send + 'static {
        Cursor::new(self.into_inner().to_vec())
    }
}

fn open_and_read<R: Input>(
    path: &Path,
    open: impl FnOnce() -> io::Result<R>,
    format: Format<'_>,
    options: TensorCreationOptions,
) -> Result<Csr, FileError> {
    let dtype = options.dtype_or(options.device.settings().float_dtype.into());
    let invalid = |source: CsrError| FileError::Csr { file: path.to_path_buf(), source };
    check_dtype(dtype, &options.device).map_err(invalid)?;
    let failed = |source: io::Error| FileError::Io { file: path.to_path_buf(), source };
    let mut file = open().map_err(failed)?;
    let format = match format {
        Format::Either => format_of(&mut file).map_err(failed)?,
        given => given,
    };
    let read = match dtype {
        DType::F64 => read::<f64>(file, format),
        _ => read::<f32>(file, format),
    };
    let (pattern, values) =
        read.map_err(|reason| FileError::Format { file: path.to_path_buf(), reason })?;
    let values = Tensor::from_data(values, (&options.device, dtype));
    Csr::from_unsorted(&pattern, values).map_err(invalid)
}

/// `Either` if unknown.
fn format_of(file: &mut (impl Read + Seek)) -> io::Result<Format<'static>> {
    let mut start = Vec::new();
    file.by_ref().take(4).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(match start.as_slice() {
        [b'P', b'K', ..] => Format::Npz,
        b"\x89HDF" => Format::Hdf5(None),
        [0x1f, 0x8b, ..] | [b'%', b'%', ..] => Format::MatrixMarket,
        _ => Format::Either,
    })
}

fn read<T: Value + Element>(
    file: impl Input,
    format: Format<'_>,
) -> Result<(Pattern, TensorData), String> {
    let matrix = match format {
        Format::Npz => Matrix::<T>::read(&mut Npz::new(file)?, Values::Needed)?,
        Format::MatrixMarket => mtx::read::<T>(file)?,
        #[cfg(feature = "hdf5")]
        Format::Hdf5(key) => hdf5::read::<T>(file.into_owned(), key)?,
        #[cfg(not(feature = "hdf5"))]
        Format::Hdf5(_key) => return Err("an HDF5 file; the feature hdf5 reads it".to_string()),
        Format::Either => {
            return Err("not an npz, Matrix Market or HDF5 file".to_string());
        }
    };
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
