//! Files that are read bit by bit, and told of.
use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use sparsek::io::{
    input,
    memory::MemoryError,
    npy::{Npy, Npz},
    text,
};

use super::DatasetError;

/// Is told while a file is read: which, bytes so far, and bytes in all.
pub type Watch<'a> = &'a mut dyn FnMut(&Path, u64, u64);

/// Bytes between two calls of a watch.
const STEP: u64 = 1 << 20;

/// A folder, or what to get and where.
pub(super) fn folder<'a>(folder: &'a Path, hint: &str) -> Result<&'a Path, DatasetError> {
    match folder.is_dir() {
        true => Ok(folder),
        false => Err(DatasetError::Missing {
            folder: folder.to_path_buf(),
            hint: hint.to_string(),
        }),
    }
}

/// The name of a folder, made safe to print.
pub(super) fn name(folder: &Path) -> String {
    let full = folder.canonicalize();
    let full = full.unwrap_or_else(|_| folder.to_path_buf());
    full.file_name().map_or_else(
        || "data".into(),
        |name| text::excerpt(&name.to_string_lossy()),
    )
}

/// The error of a file with a reason.
pub(super) fn bad(file: &Path) -> impl Fn(String) -> DatasetError + '_ {
    |reason| DatasetError::Format {
        file: file.to_path_buf(),
        reason,
    }
}

/// The error of a file that asks for too much memory.
pub(super) fn too_much(file: &Path) -> impl Fn(MemoryError) -> DatasetError + '_ {
    |source| DatasetError::Memory {
        file: file.to_path_buf(),
        source,
    }
}

/// A file whose reading is watched.
pub(super) struct Watched<'a> {
    file: File,
    path: PathBuf,
    done: u64,
    told: u64,
    pub size: u64,
    watch: Watch<'a>,
}

impl<'a> Watched<'a> {
    pub fn open(path: &Path, watch: Watch<'a>) -> Result<Self, DatasetError> {
        let (file, size) = input::open(path).map_err(|source| DatasetError::Io {
            file: path.to_path_buf(),
            source,
        })?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            done: 0,
            told: 0,
            size,
            watch,
        })
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.done += count as u64;
        if self.done >= self.told + STEP || (count > 0 && self.done == self.size) {
            self.told = self.done;
            (self.watch)(&self.path, self.done.min(self.size), self.size);
        }
        Ok(count)
    }
}

impl Seek for Watched<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// What `convert` makes of an npy file.
pub(super) fn read_npy<T>(
    path: &Path,
    watch: Watch,
    convert: impl FnOnce(Npy<BufReader<Watched>>) -> Result<T, String>,
) -> Result<T, DatasetError> {
    let file = Watched::open(path, watch)?;
    let size = file.size;
    let array = Npy::open(BufReader::new(file), size);
    array.and_then(convert).map_err(bad(path))
}

/// An npz file.
pub(super) fn open_npz<'a>(
    path: &Path,
    watch: Watch<'a>,
) -> Result<Npz<Watched<'a>>, DatasetError> {
    Npz::new(Watched::open(path, watch)?).map_err(bad(path))
}
