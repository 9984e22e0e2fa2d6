use std::{
    fs,
    io::Write,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use flate2::{Compression, write::GzEncoder};
use npyz::{
    WriterBuilder,
    zip::{CompressionMethod, ZipWriter, write::FileOptions},
};
use rstest::fixture;

/// Removed when dropped.
pub struct Folder(pub PathBuf);

#[fixture]
pub fn empty_folder() -> Folder {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("sparsek-gnn-{}-{count}", std::process::id());
    let path = std::env::temp_dir().join(name);
    fs::create_dir_all(&path).unwrap();
    Folder(path)
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn write_npz(file: PathBuf, indptr: &[i32], indices: &[i32], shape: [i64; 2]) {
    let mut npz = npyz::npz::NpzWriter::create(file).unwrap();
    for (name, values) in [("indptr", indptr), ("indices", indices)] {
        let builder = npz.array::<i32>(name, Default::default()).unwrap();
        let mut writer = builder.default_dtype().shape(&[values.len() as u64]).begin_nd().unwrap();
        writer.extend(values.iter().copied()).unwrap();
        writer.finish().unwrap();
    }
    let mut writer = npz
        .array::<i64>("shape", Default::default())
        .unwrap()
        .default_dtype()
        .shape(&[2])
        .begin_nd()
        .unwrap();
    writer.extend(shape).unwrap();
    writer.finish().unwrap();
}

pub fn write_npy(file: PathBuf, shape: &[u64], values: &[f64]) {
    let options = npyz::WriteOptions::<f64>::new().default_dtype();
    let file = fs::File::create(file).unwrap();
    let mut writer = options.shape(shape).writer(file).begin_nd().unwrap();
    writer.extend(values.iter().copied()).unwrap();
    writer.finish().unwrap();
}

pub fn write_gz(file: PathBuf, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let mut encoder = GzEncoder::new(fs::File::create(file).unwrap(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap();
}

pub fn npy<const N: usize>(descr: &str, order: &str, shape: &str, values: &[[u8; N]]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.concat());
    bytes
}

pub fn ids(values: &[i32]) -> Vec<u8> {
    let bytes: Vec<_> = values.iter().map(|x| x.to_le_bytes()).collect();
    npy("<i4", "False", &format!("({},)", values.len()), &bytes)
}

pub fn weights(shape: &str, values: &[f64]) -> Vec<u8> {
    let bytes: Vec<_> = values.iter().map(|x| x.to_le_bytes()).collect();
    npy("<f8", "False", shape, &bytes)
}

pub type Arrays = Vec<(&'static str, Vec<u8>)>;

pub fn write_arrays(file: PathBuf, arrays: &Arrays) {
    let mut zip = ZipWriter::new(fs::File::create(file).unwrap());
    let options = FileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, bytes) in arrays {
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
}
