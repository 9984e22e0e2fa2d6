use std::io::{Cursor, Write};

use half::f16;
use zip::{CompressionMethod, DateTime, ZipWriter, result::ZipResult, write::SimpleFileOptions};

const CHUNK: usize = 1 << 16;

pub trait Item: Copy {
    /// NumPy's name, little-endian.
    const DESCR: &'static str;

    fn put(self, bytes: &mut Vec<u8>);
}

macro_rules! items {
    ($($item:ty = $descr:literal;)*) => {
        $(impl Item for $item {
            const DESCR: &'static str = $descr;

            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }
        })*
    };
}

items! {
    i32 = "<i4";
    i64 = "<i8";
    f16 = "<f2";
    f32 = "<f4";
    f64 = "<f8";
}

/// Ids below 2^31, as scipy's int32.
impl Item for u32 {
    const DESCR: &'static str = "<i4";

    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

/// Deflated file; equal matrices give equal bytes.
pub fn bytes<T: Item>(shape: [usize; 2], indptr: &[u32], indices: &[u32], values: &[T]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let written = all(&mut zip, shape, [indptr, indices], values).and_then(|()| zip.finish());
    written.expect("memory takes every byte").into_inner()
}

fn all<T: Item>(
    zip: &mut Archive,
    shape: [usize; 2],
    [indptr, indices]: [&[u32]; 2],
    values: &[T],
) -> ZipResult<()> {
    array(zip, "indices", indices)?;
    array(zip, "indptr", indptr)?;
    start(zip, "format", "|S3", "()", 0)?;
    zip.write_all(b"csr")?;
    array(zip, "shape", &shape.map(|size| size as i64))?;
    array(zip, "data", values)
}

type Archive = ZipWriter<Cursor<Vec<u8>>>;

fn array<T: Item>(zip: &mut Archive, name: &str, values: &[T]) -> ZipResult<()> {
    let shape = format!("({},)", values.len());
    start(zip, name, T::DESCR, &shape, size_of_val(values))?;
    let mut bytes = Vec::with_capacity(CHUNK);
    for part in values.chunks(CHUNK / size_of::<T>()) {
        bytes.clear();
        part.iter().for_each(|value| value.put(&mut bytes));
        zip.write_all(&bytes)?;
    }
    Ok(())
}

/// Header length: a multiple of 64.
fn start(zip: &mut Archive, name: &str, descr: &str, shape: &str, size: usize) -> ZipResult<()> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        // Fixed, so equal arrays give equal files.
        .last_modified_time(DateTime::default())
        .large_file(size >> 31 > 0);
    zip.start_file(format!("{name}.npy"), options)?;
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    zip.write_all(b"\x93NUMPY\x01\x00")?;
    zip.write_all(&(length as u16).to_le_bytes())?;
    writeln!(zip, "{header:<width$}", width = length - 1)?;
    Ok(())
}
