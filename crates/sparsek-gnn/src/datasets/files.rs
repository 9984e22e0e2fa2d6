//! Files that are read bit by bit, and told of.
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use flate2::bufread::MultiGzDecoder;
use sparsek::npy::{Npy, Npz};

use super::DatasetError;

/// Is told while a file is read: which, bytes so far, and bytes in all.
pub type Watch<'a> = &'a mut dyn FnMut(&Path, u64, u64);

/// Most bytes of a line.
const MAX_LINE: usize = 1 << 20;

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

/// The name of a folder.
pub(super) fn name(folder: &Path) -> String {
    let full = folder.canonicalize();
    let full = full.unwrap_or_else(|_| folder.to_path_buf());
    full.file_name()
        .map_or_else(|| "data".into(), |name| name.to_string_lossy().into_owned())
}

/// The error of a file with a reason.
pub(super) fn bad(file: &Path) -> impl Fn(String) -> DatasetError + '_ {
    |reason| DatasetError::Format {
        file: file.to_path_buf(),
        reason,
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
        let opened = File::open(path).and_then(|file| {
            let size = file.metadata()?.len();
            Ok((file, size))
        });
        let (file, size) = opened.map_err(|source| DatasetError::Io {
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

/// The lines of a gzip file.
pub(super) struct Lines<'a> {
    reader: BufReader<MultiGzDecoder<BufReader<Watched<'a>>>>,
    path: PathBuf,
    line: Vec<u8>,
    /// Lines read so far.
    pub count: usize,
}

impl<'a> Lines<'a> {
    pub fn open(path: &Path, watch: Watch<'a>) -> Result<Self, DatasetError> {
        let file = Watched::open(path, watch)?;
        if file.size == 0 {
            return Err(bad(path)("is empty".to_string()));
        }
        let file = BufReader::new(file);
        Ok(Self {
            reader: BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file)),
            path: path.to_path_buf(),
            line: Vec::new(),
            count: 0,
        })
    }

    /// The next line, if there is one.
    pub fn next(&mut self) -> Result<Option<&str>, DatasetError> {
        self.line.clear();
        let mut limited = (&mut self.reader).take(MAX_LINE as u64);
        let read = limited.read_until(b'\n', &mut self.line);
        let error = match read {
            Err(error) => error.to_string(),
            Ok(0) => return Ok(None),
            Ok(MAX_LINE) => format!("line {} has {MAX_LINE} bytes or more", self.count + 1),
            Ok(_) => {
                self.count += 1;
                return match std::str::from_utf8(&self.line) {
                    Ok(line) => Ok(Some(line.trim_end())),
                    Err(_) => Err(self.wrong("is not text")),
                };
            }
        };
        Err(bad(&self.path)(error))
    }

    /// The numbers of the next line; fails where one is no number, or where there is no line.
    pub fn numbers<T: std::str::FromStr>(&mut self, into: &mut Vec<T>) -> Result<(), DatasetError> {
        let before = into.len();
        let Some(line) = self.next()? else {
            return Err(bad(&self.path)(format!("ends after {} lines", self.count)));
        };
        let mut whole = true;
        for field in line.split(',') {
            match field.trim().parse() {
                Ok(number) => into.push(number),
                Err(_) => whole = false,
            }
        }
        match whole && into.len() > before {
            true => Ok(()),
            false => Err(self.wrong("is not numbers between commas")),
        }
    }

    /// As many rows of numbers as there must be, and how wide they are.
    pub fn rows<T: std::str::FromStr>(
        mut self,
        rows: usize,
    ) -> Result<(Vec<T>, usize), DatasetError> {
        let (mut all, mut width) = (Vec::new(), 0);
        for row in 0..rows {
            self.numbers(&mut all)?;
            if row == 0 {
                width = all.len();
            } else if all.len() != (row + 1) * width {
                return Err(self.wrong(&format!("does not have {width} numbers, as the first has")));
            }
        }
        self.ends()?;
        Ok((all, width))
    }

    /// That no line is left.
    pub fn ends(mut self) -> Result<(), DatasetError> {
        let count = self.count;
        match self.next()? {
            None => Ok(()),
            Some(_) => Err(bad(&self.path)(format!(
                "more than the {count} lines expected"
            ))),
        }
    }

    /// The error of the line read last.
    pub fn wrong(&self, what: &str) -> DatasetError {
        bad(&self.path)(format!("line {} {what}", self.count))
    }
}
