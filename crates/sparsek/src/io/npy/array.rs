use std::io::{ErrorKind, Read};

use half::f16;

use super::header::{Dtype, Header, read_exact};
use crate::io::{memory, text::excerpt};

/// Multiple of all element sizes.
const CHUNK: usize = 1 << 20;

const MAX_TEXT: usize = 64;

macro_rules! numbers {
    ($array:expr, $to:ty, $then:expr) => {
        numbers!($array, $to, $then, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64,
            F32 f32, F64 f64)
    };
    ($array:expr, $to:ty, $then:expr, $($dtype:ident $from:ty),*) => {
        match $array.header.dtype {
            Dtype::Bool => $array.read(|[b]: [u8; 1]| Ok($then(<$to>::from(u8::from(b != 0))))),
            Dtype::U8 => $array.read(|[b]: [u8; 1]| Ok($then(<$to>::from(b)))),
            Dtype::F16 => $array.read(|b| Ok($then(<$to>::from(f16::from_le_bytes(b))))),
            $(Dtype::$dtype => $array.read(|b| Ok($then(<$from>::from_le_bytes(b) as $to))),)*
            other => Err(format!("values of dtype {other}, numbers are needed")),
        }
    };
}

macro_rules! integers {
    ($array:expr, $then:expr, $($dtype:ident $from:ty),*) => {
        match $array.header.dtype {
            $(Dtype::$dtype => $array.read(|b| $then(<$from>::from_le_bytes(b).into())),)*
            other => Err(format!(
                "values of dtype {other}, integers are needed; numpy's .astype(\"int64\") makes \
                 them"
            )),
        }
    };
}

#[derive(Debug)]
pub struct Npy<R> {
    reader: R,
    header: Header,
    keep: usize,
}

impl<R: Read> Npy<R> {
    /// Opens exactly `size` bytes.
    pub fn open(mut reader: R, size: u64) -> Result<Self, String> {
        let header = Header::read(&mut reader, size)?;
        Ok(Self { reader, keep: header.len, header })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn shape(&self) -> &[usize] {
        &self.header.shape
    }

    /// Keeps `count` values; reads the rest for the checksum.
    pub fn first(self, count: usize) -> Self {
        let keep = self.keep.min(count);
        Self { keep, ..self }
    }

    /// Rounds to f32, row-major. Refuses Fortran order beyond two dimensions.
    pub fn into_f32(self) -> Result<Vec<f32>, String> {
        numbers!(self, f32, |x| x)
    }

    pub fn into_f64(self) -> Result<Vec<f64>, String> {
        numbers!(self, f64, |x| x)
    }

    /// Whether values differ from 0; NaN does.
    pub fn into_nonzero(self) -> Result<Vec<bool>, String> {
        numbers!(self, f64, |x| x != 0.0)
    }

    pub fn into_u32(self) -> Result<Vec<u32>, String> {
        let narrow = |x: i128| {
            u32::try_from(x).map_err(|_| format!("{x} is not an index; indices are 0 to 2^32 - 1"))
        };
        integers!(self, narrow, U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64)
    }

    pub fn into_i64(self) -> Result<Vec<i64>, String> {
        let narrow = |x: i128| i64::try_from(x).map_err(|_| format!("{x} is above 2^63 - 1"));
        integers!(self, narrow, U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64)
    }

    pub fn into_text(self) -> Result<String, String> {
        let Header { dtype, big_endian, len, .. } = self.header;
        let text: String = match dtype {
            Dtype::Bytes(1..=MAX_TEXT) if len == 1 => {
                self.bytes()?.into_iter().map(char::from).collect()
            }
            Dtype::Unicode(1..=MAX_TEXT) if len == 1 => {
                let bytes = self.bytes()?;
                let character = |&bytes: &[u8; 4]| {
                    char::from_u32(match big_endian {
                        true => u32::from_be_bytes(bytes),
                        false => u32::from_le_bytes(bytes),
                    })
                };
                let text: Option<_> = bytes.as_chunks().0.iter().map(character).collect();
                text.ok_or("a string that is not Unicode")?
            }
            _ => return Err(format!("{len} values of dtype {dtype}, one word is needed")),
        };
        Ok(text.trim_end_matches('\0').to_string())
    }

    fn bytes(self) -> Result<Vec<u8>, String> {
        let len = self.header.len * self.header.dtype.size().unwrap_or(0);
        let header = Header {
            dtype: Dtype::U8,
            big_endian: false,
            fortran: false,
            shape: vec![len],
            len,
            start: self.header.start,
        };
        Npy { header, keep: len, ..self }.read(|[b]| Ok(b))
    }

    fn read<const N: usize, T: Copy + Default>(
        mut self,
        convert: impl Fn([u8; N]) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let what = format_args!("an array of {} {} values", self.keep, self.header.dtype);
        let asked = memory::product(&[self.keep, size_of::<T>()]);
        memory::check(what, asked).map_err(|error| error.to_string())?;
        let big_endian = self.header.big_endian;
        let convert = |bytes: &[u8; N]| {
            let mut bytes = *bytes;
            if big_endian {
                bytes.reverse();
            }
            convert(bytes)
        };
        // Untouched pages take no memory.
        let mut values = Vec::new();
        let reserved = values.try_reserve_exact(self.keep);
        reserved.map_err(|error| format!("{what}: {error}"))?;

        let mut buffer = vec![0; CHUNK.min(self.header.len * N)];
        if self.header.fortran {
            let &[rows, cols] = self.header.shape.as_slice() else {
                let dimensions = self.header.shape.len();
                return Err(format!(
                    "{dimensions} dimensions in Fortran order; numpy's ascontiguousarray() \
                     reorders them"
                ));
            };
            values.resize(self.header.len, T::default());
            let (mut row, mut col) = (0, 0);
            self.chunks(&mut buffer, N, |chunk| {
                for element in chunk.as_chunks().0 {
                    values[row * cols + col] = convert(element)?;
                    row += 1;
                    if row == rows {
                        (row, col) = (0, col + 1);
                    }
                }
                Ok(())
            })?;
            return Ok(values);
        }
        let keep = self.keep;
        self.chunks(&mut buffer, N, |chunk| {
            for element in chunk.as_chunks().0.iter().take(keep - values.len()) {
                values.push(convert(element)?);
            }
            Ok(())
        })?;
        Ok(values)
    }

    /// Fails if bytes follow.
    fn chunks(
        &mut self,
        buffer: &mut [u8],
        size: usize,
        mut each: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut left = self.header.len * size;
        while left > 0 {
            let length = left.min(buffer.len());
            let chunk = &mut buffer[..length];
            read_exact(&mut self.reader, chunk)?;
            each(chunk)?;
            left -= length;
        }
        // The end verifies a zip checksum.
        loop {
            return match self.reader.read(&mut [0]) {
                Ok(0) => Ok(()),
                Ok(_) => Err("bytes follow the last value".to_string()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(excerpt(&error.to_string())),
            };
        }
    }
}
