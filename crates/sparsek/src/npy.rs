//! Arrays of NumPy's npy and npz formats, read with every declared size checked against the bytes that are there.
//! Shared with sparsek-gnn; no part of the public interface.
//!
//! `npyz` opens the npz container and writes the tests' files. Its own parser of npy headers multiplies dimensions
//! unchecked and parses any Python expression recursively, so the three fields are read here.
use std::{
    fs::File,
    io::{BufReader, Read, Seek},
};

use npyz::npz::NpzArchive;

/// No deflate stream expands by more than this, so an entry that declares more is corrupt.
const MAX_EXPANSION: u64 = 1032;

/// Most bytes a header may have; NumPy's own limit is 10,000.
const MAX_HEADER: usize = 10_000;

/// Most characters of a string that is read.
const MAX_TEXT: usize = 64;

/// Element types that the loaders know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dtype {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    /// Strings of so many bytes.
    Bytes(usize),
    /// Strings of so many characters of four bytes.
    Unicode(usize),
}

impl Dtype {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "|b1" => Self::Bool,
            "|u1" => Self::U8,
            "<u2" => Self::U16,
            "<u4" => Self::U32,
            "<u8" => Self::U64,
            "|i1" => Self::I8,
            "<i2" => Self::I16,
            "<i4" => Self::I32,
            "<i8" => Self::I64,
            "<f4" => Self::F32,
            "<f8" => Self::F64,
            _ => match text.split_at_checked(2)? {
                ("|S", length) => Self::Bytes(length.parse().ok()?),
                ("<U", length) => Self::Unicode(length.parse().ok()?),
                _ => return None,
            },
        })
    }

    fn size(self) -> Option<usize> {
        Some(match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::Bytes(length) => length,
            Self::Unicode(length) => length.checked_mul(4)?,
        })
    }
}

/// The values of `$array` as `$to`, from any type of number.
macro_rules! numbers {
    ($array:expr, $to:ty) => {
        numbers!($array, $to, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64, F32 f32, F64 f64)
    };
    ($array:expr, $to:ty, $($dtype:ident $from:ty),*) => {
        match $array.dtype {
            Dtype::Bool | Dtype::U8 => $array.read(|[b]: [u8; 1]| Ok(<$to>::from(b))),
            $(Dtype::$dtype => $array.read(|b| Ok(<$from>::from_le_bytes(b) as $to)),)*
            other => Err(format!("values of {other:?}, numbers are needed")),
        }
    };
}

/// An npz file.
pub struct Npz<R: Read + Seek = File> {
    archive: NpzArchive<BufReader<R>>,
}

impl<R: Read + Seek> Npz<R> {
    /// Reads the list of the arrays in a file.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong with the container.
    pub fn new(file: R) -> Result<Self, String> {
        let archive = NpzArchive::new(BufReader::new(file)).map_err(|error| error.to_string())?;
        Ok(Self { archive })
    }

    /// What `convert` makes of an array.
    ///
    /// # Errors
    ///
    /// One line that names the array: it is missing, it cannot have the size that it declares, or `convert` fails.
    pub fn read<T>(
        &mut self,
        name: &str,
        convert: impl FnOnce(Npy<&mut dyn Read>) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut entry = self
            .archive
            .zip_archive()
            .by_name(&npyz::npz::file_name_from_array_name(name))
            .map_err(|error| format!("array {name}: {error}"))?;
        let (size, packed) = (entry.size(), entry.compressed_size());
        if size > packed.saturating_mul(MAX_EXPANSION) {
            return Err(format!(
                "array {name}: declares {size} bytes, {packed} compressed bytes cannot hold them"
            ));
        }
        Npy::open(&mut entry as &mut dyn Read, size)
            .and_then(convert)
            .map_err(|reason| format!("array {name}: {reason}"))
    }
}

/// An array whose header has been read and checked, and whose values follow in the reader.
#[derive(Debug)]
pub struct Npy<R> {
    reader: R,
    dtype: Dtype,
    shape: Vec<usize>,
    len: usize,
}

impl<R: Read> Npy<R> {
    /// Reads the header of an array in `size` bytes, which must be exactly what it declares.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong with the header.
    pub fn open(mut reader: R, size: u64) -> Result<Self, String> {
        let mut start = [0; 8];
        read_exact(&mut reader, &mut start)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err("not an npy array".to_string());
        }
        let mut word = [0; 4];
        let width = if start[6] == 1 { 2 } else { 4 };
        read_exact(&mut reader, &mut word[..width])?;
        let header_len = u32::from_le_bytes(word) as usize;
        if header_len > MAX_HEADER {
            return Err(format!(
                "the npy header declares {header_len} bytes, at most {MAX_HEADER} are read"
            ));
        }
        let mut header = vec![0; header_len];
        read_exact(&mut reader, &mut header)?;
        let header =
            String::from_utf8(header).map_err(|_| "the npy header is not text".to_string())?;

        let (dtype, shape) = parse_header(&header)?;
        let len = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let bytes = len.and_then(|n| n.checked_mul(dtype.size()?));
        let there = size.saturating_sub((8 + width + header_len) as u64);
        match (len, bytes) {
            (Some(len), Some(bytes)) if bytes as u64 == there => Ok(Self {
                reader,
                dtype,
                shape,
                len,
            }),
            _ => Err(format!(
                "the npy header declares shape {shape:?} of {dtype:?}, but {there} bytes of values follow"
            )),
        }
    }

    /// The array's shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values as 32-bit floats, from any type of number, rounded.
    ///
    /// # Errors
    ///
    /// One line: the file cannot be read to its end, or the values are no numbers.
    pub fn into_f32(self) -> Result<Vec<f32>, String> {
        numbers!(self, f32)
    }

    /// The values as 64-bit floats, from any type of number, rounded.
    ///
    /// # Errors
    ///
    /// As [`Npy::into_f32`].
    pub fn into_f64(self) -> Result<Vec<f64>, String> {
        numbers!(self, f64)
    }

    /// The values as indices or offsets, which must be integers in 0 ..= 2^32 - 1.
    ///
    /// # Errors
    ///
    /// As [`Npy::into_f32`], and for the first value out of range.
    pub fn into_u32(self) -> Result<Vec<u32>, String> {
        let narrow = |x: i64| u32::try_from(x).map_err(|_| format!("{x} is not an index"));
        match self.dtype {
            Dtype::I32 => self.read(|b| narrow(i32::from_le_bytes(b).into())),
            Dtype::I64 => self.read(|b| narrow(i64::from_le_bytes(b))),
            other => Err(format!("values of {other:?}, int32 or int64 are needed")),
        }
    }

    /// The one string that the array holds.
    ///
    /// # Errors
    ///
    /// One line: the file cannot be read to its end, or there is no such string.
    pub fn into_text(self) -> Result<String, String> {
        let (dtype, len) = (self.dtype, self.len);
        let text: String = match dtype {
            Dtype::Bytes(1..=MAX_TEXT) if len == 1 => {
                self.bytes()?.into_iter().map(char::from).collect()
            }
            Dtype::Unicode(1..=MAX_TEXT) if len == 1 => {
                let bytes = self.bytes()?;
                let character = |&b: &[u8; 4]| char::from_u32(u32::from_le_bytes(b));
                let text: Option<_> = bytes.as_chunks().0.iter().map(character).collect();
                text.ok_or("a string that is not Unicode")?
            }
            _ => return Err(format!("{len} values of {dtype:?}, one word is needed")),
        };
        Ok(text.trim_end_matches('\0').to_string())
    }

    /// What the values are made of, where they are known to be few.
    fn bytes(self) -> Result<Vec<u8>, String> {
        let len = self.len * self.dtype.size().unwrap_or(0);
        Npy {
            dtype: Dtype::U8,
            len,
            ..self
        }
        .read(|[b]| Ok(b))
    }

    fn read<const N: usize, T>(
        mut self,
        convert: impl Fn([u8; N]) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        // Grows with the bytes that are really there, so that a lying container cannot make it allocate.
        let mut values = Vec::new();
        let mut buffer = vec![0; (1 << 20).min(self.len * N)];
        let mut left = self.len;
        while left > 0 {
            let chunk = &mut buffer[..(left * N).min(1 << 20)];
            read_exact(&mut self.reader, chunk)?;
            for element in chunk.as_chunks::<N>().0 {
                values.push(convert(*element)?);
            }
            left -= chunk.len() / N;
        }
        // In a zip entry the end is where the checksum is verified.
        match self.reader.read(&mut [0]) {
            Ok(0) => Ok(values),
            Ok(_) => Err("bytes follow the last value".to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn read_exact(reader: &mut impl Read, buffer: &mut [u8]) -> Result<(), String> {
    reader
        .read_exact(buffer)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "truncated".to_string(),
            _ => error.to_string(),
        })
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
fn parse_header(header: &str) -> Result<(Dtype, Vec<usize>), String> {
    let field = |name: &str| {
        let (_, rest) = header
            .split_once(&format!("'{name}':"))
            .ok_or(format!("the npy header has no {name}"))?;
        Ok::<_, String>(rest.trim_start())
    };
    let descr = field("descr")?
        .strip_prefix('\'')
        .and_then(|rest| rest.split_once('\''))
        .map(|(text, _)| text);
    let descr = descr.ok_or("structured npy arrays are not supported")?;
    let dtype = Dtype::parse(descr).ok_or(format!(
        "dtype {descr} is not one of b1 u1 <u2 <u4 <u8 i1 <i2 <i4 <i8 <f4 <f8, S or <U"
    ))?;
    let order = field("fortran_order")?;
    if !order.starts_with("False") && !order.starts_with("True") {
        return Err("the npy header's fortran_order is not a boolean".to_string());
    }
    let shape = field("shape")?
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(')'))
        .map(|(text, _)| text);
    let dims = shape
        .ok_or("the npy header's shape is not a tuple")?
        .split(',')
        .map(str::trim);
    let shape: Result<Vec<usize>, _> = dims.filter(|d| !d.is_empty()).map(str::parse).collect();
    let shape = shape.map_err(|_| "the npy header's shape has a bad dimension")?;
    if order.starts_with("True") && shape.len() > 1 {
        return Err("Fortran order is not supported".to_string());
    }
    Ok((dtype, shape))
}

#[cfg(test)]
mod tests;
