//! Writes .npz files.
use std::{
    cell::RefCell,
    io::{self, Seek, SeekFrom, Write},
    mem,
    path::Path,
    rc::Rc,
};

use npyz::{
    AutoSerialize, DType, WriterBuilder,
    npz::NpzWriter,
    zip::{CompressionMethod, DateTime, write::FileOptions},
};
use sparsek::io::output::Output;

use crate::program::{self, named};

/// Opens an .npz file before the work, as [`program::create`].
///
/// # Errors
/// One line that names the file; also for a pipe, since archives are written out of order.
pub fn create(file: &Path) -> Result<Output, String> {
    let mut output = program::create(file)?;
    match output.stream_position() {
        Ok(_) => Ok(output),
        Err(error) => {
            Err(named(file, format_args!("{error}; an .npz cannot be written to a pipe")))
        }
    }
}

/// An uncompressed archive. Dropped before [`Writer::finish`], it drops its output unfinished.
pub struct Writer<W: Write + Seek = Output> {
    output: Shared<W>,
    /// Taken by [`Writer::finish`].
    npz: Option<NpzWriter<Shared<W>>>,
}

impl<W: Write + Seek> Writer<W> {
    /// Starts the archive.
    ///
    /// # Errors
    /// System errors, also when `output` cannot seek.
    pub fn new(mut output: W) -> io::Result<Self> {
        output.stream_position()?;
        let output = Shared(Rc::new(RefCell::new(Some(output))));
        let npz = Some(NpzWriter::new(output.clone()));
        Ok(Self { output, npz })
    }

    /// Writes a row-major array.
    ///
    /// # Errors
    /// System errors, and elements that do not fill the shape.
    pub fn array<T: AutoSerialize + Copy>(
        &mut self,
        name: &str,
        shape: &[usize],
        elements: &[T],
    ) -> io::Result<()> {
        let shape: Vec<u64> = shape.iter().map(|&length| length as u64).collect();
        let npz = self.npz.as_mut().ok_or_else(gone)?;
        let array = npz.array(name, options(size_of_val(elements)))?;
        let mut array = array.default_dtype().shape(&shape).begin_nd()?;
        array.extend(elements.iter().copied())?;
        array.finish()
    }

    /// Writes a byte string, as scipy writes the format of a matrix.
    ///
    /// # Errors
    /// System errors, and strings whose length is no dtype.
    pub fn bytes(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let descr = format!("|S{}", bytes.len()).parse();
        let descr = DType::Plain(descr.map_err(io::Error::other)?);
        let npz = self.npz.as_mut().ok_or_else(gone)?;
        let array = npz.array::<[u8]>(name, options(bytes.len()))?;
        let mut array = array.dtype(descr).shape(&[]).begin_nd()?;
        array.push(bytes)?;
        array.finish()
    }

    /// Ends the archive and returns the output.
    ///
    /// # Errors
    /// System errors.
    pub fn finish(mut self) -> io::Result<W> {
        let npz = self.npz.as_mut().ok_or_else(gone)?;
        npz.zip_writer().finish()?;
        // A closed archive drops silently.
        self.npz = None;
        self.output.0.take().ok_or_else(gone)
    }
}

fn options(size: usize) -> FileOptions {
    FileOptions::default()
        .compression_method(CompressionMethod::Stored)
        // A fixed time, so equal arrays give equal files.
        .last_modified_time(DateTime::default())
        .large_file(size >> 31 > 0)
}

impl<W: Write + Seek> Drop for Writer<W> {
    fn drop(&mut self) {
        // Dropping an open archive would try to end it and print failures, so it is forgotten.
        mem::forget(self.npz.take());
        drop(self.output.0.take());
    }
}

/// An output that can be taken back.
struct Shared<W>(Rc<RefCell<Option<W>>>);

impl<W> Clone for Shared<W> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<W> Shared<W> {
    fn with<T>(&self, act: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        act(self.0.borrow_mut().as_mut().ok_or_else(gone)?)
    }
}

fn gone() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl<W: Write> Write for Shared<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|output| output.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(W::flush)
    }
}

impl<W: Seek> Seek for Shared<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.with(|output| output.seek(to))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Fails after `room` bytes.
    struct Full {
        file: Cursor<Vec<u8>>,
        room: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.file.position() as usize + bytes.len() <= self.room {
                true => self.file.write(bytes),
                false => Err(io::ErrorKind::StorageFull.into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Full {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    fn write(room: usize) -> io::Result<Vec<u8>> {
        let file = Cursor::default();
        let mut npz = Writer::new(Full { file, room })?;
        npz.array("a", &[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
        npz.array("b", &[3], &[1i64, 2, 3])?;
        npz.bytes("c", b"csr")?;
        Ok(npz.finish()?.file.into_inner())
    }

    #[test]
    fn a_full_disk_is_one_error_at_every_byte() {
        let whole = write(usize::MAX).unwrap();
        assert_eq!(write(whole.len()).unwrap(), whole);
        for room in 0..whole.len() {
            let error = write(room).unwrap_err().to_string();
            let full = io::Error::from(io::ErrorKind::StorageFull).to_string();
            assert!(error.contains(&full), "{room}: {error}");
        }
    }

    /// Records how many bytes it had when dropped.
    struct Watched {
        file: Cursor<Vec<u8>>,
        dropped: Rc<RefCell<Option<usize>>>,
    }

    impl Write for Watched {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.file.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Watched {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            *self.dropped.borrow_mut() = Some(self.file.get_ref().len());
        }
    }

    #[test]
    fn an_archive_that_is_given_up_is_not_ended_and_its_output_is_dropped() {
        let dropped = Rc::default();
        let output = Watched { file: Cursor::default(), dropped: Rc::clone(&dropped) };
        let mut npz = Writer::new(output).unwrap();
        npz.array("a", &[2], &[1.0f32, 2.0]).unwrap();
        assert_eq!(*dropped.borrow(), None);
        let written = npz.output.with(|output| output.stream_position());
        drop(npz);
        assert_eq!(*dropped.borrow(), written.ok().map(|at| at as usize));
    }
}
