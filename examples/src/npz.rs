//! Arrays in .npz files, as NumPy reads them.
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use npyz::{
    AutoSerialize, WriterBuilder,
    npz::NpzWriter,
    zip::{CompressionMethod, write::FileOptions},
};

/// A file that is being written, not compressed.
pub struct Writer {
    npz: NpzWriter<BufWriter<File>>,
}

impl Writer {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// What the system reports.
    pub fn create(path: &Path) -> io::Result<Self> {
        let npz = NpzWriter::new(BufWriter::new(File::create(path)?));
        Ok(Self { npz })
    }

    /// Writes an array of a shape, row after row.
    ///
    /// # Errors
    /// What the system reports, and elements that do not fill the shape.
    pub fn array<T: AutoSerialize + Copy>(
        &mut self,
        name: &str,
        shape: &[usize],
        elements: &[T],
    ) -> io::Result<()> {
        let options = FileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(size_of_val(elements) >> 31 > 0);
        let shape: Vec<u64> = shape.iter().map(|&length| length as u64).collect();
        let array = self.npz.array(name, options)?;
        let mut array = array.default_dtype().shape(&shape).begin_nd()?;
        array.extend(elements.iter().copied())?;
        array.finish()
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// What the system reports.
    pub fn finish(mut self) -> io::Result<()> {
        self.npz.zip_writer().finish()?.flush()
    }
}
