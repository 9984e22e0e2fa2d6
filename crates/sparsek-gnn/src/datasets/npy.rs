//! Arrays of NumPy's npy format, read with every declared size checked against the bytes that are there.
//!
//! `npyz` opens the npz container and writes the tests' files. Its own parser of npy headers multiplies dimensions
//! unchecked and parses any Python expression recursively, so the three fields are read here.
use std::io::Read;

/// Most bytes a header may have; NumPy's own limit is 10,000.
const MAX_HEADER: usize = 10_000;

/// Element types that the loaders know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dtype {
    Bool,
    U8,
    I32,
    I64,
    F32,
    F64,
}

impl Dtype {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "|b1" => Self::Bool,
            "|u1" => Self::U8,
            "<i4" => Self::I32,
            "<i8" => Self::I64,
            "<f4" => Self::F32,
            "<f8" => Self::F64,
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 => 1,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}

/// An array whose header has been read and checked, and whose values follow in the reader.
#[derive(Debug)]
pub(super) struct Npy<R> {
    reader: R,
    dtype: Dtype,
    shape: Vec<usize>,
    len: usize,
}

impl<R: Read> Npy<R> {
    /// Reads the header of an array in `size` bytes, which must be exactly what it declares.
    pub(super) fn open(mut reader: R, size: u64) -> Result<Self, String> {
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
        let bytes = len.and_then(|n| n.checked_mul(dtype.size()));
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

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values as 32-bit floats, from any known type.
    pub(super) fn into_f32(self) -> Result<Vec<f32>, String> {
        match self.dtype {
            Dtype::Bool | Dtype::U8 => self.read(|[b]: [u8; 1]| Ok(f32::from(b))),
            Dtype::I32 => self.read(|b| Ok(i32::from_le_bytes(b) as f32)),
            Dtype::I64 => self.read(|b| Ok(i64::from_le_bytes(b) as f32)),
            Dtype::F32 => self.read(|b| Ok(f32::from_le_bytes(b))),
            Dtype::F64 => self.read(|b| Ok(f64::from_le_bytes(b) as f32)),
        }
    }

    /// The values as indices or offsets, which must be integers in 0 ..= 2^32 - 1.
    pub(super) fn into_u32(self) -> Result<Vec<u32>, String> {
        let narrow = |x: i64| u32::try_from(x).map_err(|_| format!("{x} is not an index"));
        match self.dtype {
            Dtype::I32 => self.read(|b| narrow(i32::from_le_bytes(b).into())),
            Dtype::I64 => self.read(|b| narrow(i64::from_le_bytes(b))),
            other => Err(format!("values of {other:?}, int32 or int64 are needed")),
        }
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
    let dtype =
        Dtype::parse(descr).ok_or(format!("dtype {descr} is not one of b1 u1 <i4 <i8 <f4 <f8"))?;
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
mod tests {
    use super::*;

    fn array(header: &str, values: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(values);
        bytes
    }

    fn open(bytes: &[u8]) -> Result<Npy<&[u8]>, String> {
        Npy::open(bytes, bytes.len() as u64)
    }

    #[test]
    fn values_of_every_type() {
        let header = |t| format!("{{'descr': '{t}', 'fortran_order': False, 'shape': (2, 1), }}\n");
        let f64s = [1.5f64, -2.0].map(f64::to_le_bytes).concat();
        let bytes = array(&header("<f8"), &f64s);
        let read = open(&bytes).unwrap();
        assert_eq!(read.shape(), [2, 1]);
        assert_eq!(read.into_f32().unwrap(), [1.5, -2.0]);
        assert_eq!(
            open(&array(&header("|u1"), &[0, 255]))
                .unwrap()
                .into_f32()
                .unwrap(),
            [0.0, 255.0]
        );
        let i64s = [7i64, -1].map(i64::to_le_bytes).concat();
        assert!(
            open(&array(&header("<i8"), &i64s))
                .unwrap()
                .into_u32()
                .unwrap_err()
                .contains("-1")
        );
    }

    #[test]
    fn sizes_are_checked_before_anything_is_allocated() {
        for shape in [
            "(3,)",
            "(18446744073709551615, 2)",
            "(1000000000000,)",
            "(4294967296, 4294967296)",
            "(-1,)",
            "3",
        ] {
            let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
            assert!(open(&array(&header, &[0; 8])).is_err(), "{shape}");
        }
        assert!(open(&[]).is_err());
        assert!(
            open(b"\x93NUMPY\x02\x00\xff\xff\xff\xff")
                .unwrap_err()
                .contains("declares")
        );
        assert!(
            open(&array(
                "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
                &[0; 8]
            ))
            .is_err()
        );
        assert!(
            open(&array(
                "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }",
                &[0; 8]
            ))
            .is_err()
        );
    }
}
