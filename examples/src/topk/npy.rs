//! Vectors in .npy files, and selections in .npz files.
use std::{
    error::Error,
    fmt,
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use burn::tensor::DType;
use bytemuck::Pod;
use half::f16;
use memmap2::Mmap;
use npyz::{AutoSerialize, NpyHeader, WriteOptions, WriterBuilder};
use sparsek_examples::npz::Writer;

/// Most bytes of a header. That of a vector has 118.
const MAX_HEADER: usize = 1024;

/// A vector in a file.
#[derive(Debug)]
pub struct Vector {
    map: Mmap,
    /// Where the elements start.
    start: usize,
    pub dtype: DType,
    pub length: usize,
}

impl Vector {
    /// Opens a file of one dimension and a known dtype, all of it there.
    pub fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        let named = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(|error| named(&error))?;
        // SAFETY: as with every mapped file, nobody may shorten it meanwhile.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| named(&error))?;
        let (start, dtype, length) = header(&map).map_err(|error| named(&error))?;
        Ok(Self {
            map,
            start,
            dtype,
            length,
        })
    }

    /// The bytes of the elements, a chunk of so many elements at a time.
    pub fn chunks(&self, length: usize) -> impl Iterator<Item = &[u8]> {
        self.map[self.start..].chunks(length.saturating_mul(self.dtype.size()))
    }
}

/// Where the elements start, their dtype and their number.
fn header(file: &[u8]) -> Result<(usize, DType, usize), String> {
    let head = &file[..file.len().min(MAX_HEADER)];
    let mut rest = head;
    let header = NpyHeader::from_reader(&mut rest).map_err(|error| match file.len() {
        length if length > MAX_HEADER && error.kind() == io::ErrorKind::UnexpectedEof => {
            format!("the header has more than {MAX_HEADER} bytes")
        }
        _ => format!("not an npy file: {error}"),
    })?;
    let [length] = header.shape()[..] else {
        return Err(format!(
            "shape {:?} has {} dimensions, one is needed",
            header.shape(),
            header.shape().len()
        ));
    };
    let descr = header.dtype().descr();
    let dtype = match descr.trim_matches('\'') {
        "<f4" => DType::F32,
        "<f8" => DType::F64,
        "<f2" => DType::F16,
        "<i4" => DType::I32,
        "<i8" => DType::I64,
        "<u4" => DType::U32,
        _ => {
            return Err(format!(
                "dtype {descr} is not one of <f4 <f8 <f2 <i4 <i8 <u4"
            ));
        }
    };
    let start = head.len() - rest.len();
    let there = file.len() - start;
    let bytes = usize::try_from(length).ok();
    match bytes.and_then(|length| length.checked_mul(dtype.size())) {
        Some(bytes) if bytes == there => Ok((start, dtype, length as usize)),
        _ => Err(format!(
            "{length} elements of {} bytes declared, but {there} bytes follow",
            dtype.size()
        )),
    }
}

/// The selection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Best {
    /// The values' bytes.
    pub values: Vec<u8>,
    /// Their places in the vector.
    pub indices: Vec<i64>,
}

/// Writes `values` and `indices`.
pub fn write(path: &Path, dtype: DType, best: &Best) -> Result<(), Box<dyn Error>> {
    let written = || -> Result<(), Box<dyn Error>> {
        let mut npz = Writer::create(path)?;
        match dtype {
            DType::F32 => values::<f32>(&mut npz, &best.values)?,
            DType::F64 => values::<f64>(&mut npz, &best.values)?,
            DType::F16 => values::<f16>(&mut npz, &best.values)?,
            DType::I32 => values::<i32>(&mut npz, &best.values)?,
            DType::I64 => values::<i64>(&mut npz, &best.values)?,
            DType::U32 => values::<u32>(&mut npz, &best.values)?,
            other => return Err(format!("no arrays of {other:?}").into()),
        }
        npz.array("indices", &[best.indices.len()], &best.indices)?;
        Ok(npz.finish()?)
    };
    written().map_err(|error| format!("{}: {error}", path.display()).into())
}

fn values<T: AutoSerialize + Pod>(npz: &mut Writer, bytes: &[u8]) -> io::Result<()> {
    let elements: Vec<T> = bytemuck::pod_collect_to_vec(bytes);
    npz.array("values", &[elements.len()], &elements)
}

/// Writes a vector.
pub fn generate(
    path: &Path,
    length: usize,
    elements: impl Iterator<Item = f32>,
) -> Result<(), Box<dyn Error>> {
    let written = || -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        let options = WriteOptions::new().default_dtype().writer(&mut file);
        let mut array = options.shape(&[length as u64]).begin_nd()?;
        array.extend(elements.take(length))?;
        array.finish()?;
        file.flush()
    };
    written().map_err(|error| format!("{}: {error}", path.display()).into())
}
