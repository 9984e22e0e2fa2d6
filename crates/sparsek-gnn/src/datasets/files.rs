use std::{
    fmt,
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    str::FromStr,
};

use flate2::bufread::MultiGzDecoder;
use sparsek::io::{
    input,
    memory::{self, MemoryError},
    npy::{Npy, Npz},
    text,
};

use super::error::DatasetError;

/// Progress: file, bytes so far, total bytes or 0 if unknown.
pub type Watch<'a> = &'a mut dyn FnMut(&Path, u64, u64);

const STEP: u64 = 1 << 20;

pub(super) fn folder<'a>(folder: &'a Path, hint: &str) -> Result<&'a Path, DatasetError> {
    match folder.is_dir() {
        true => Ok(folder),
        false => {
            Err(DatasetError::Missing { folder: folder.to_path_buf(), hint: hint.to_string() })
        }
    }
}

pub(super) fn name(folder: &Path) -> String {
    let full = folder.canonicalize();
    let full = full.unwrap_or_else(|_| folder.to_path_buf());
    full.file_name().map_or_else(|| "data".into(), |name| text::excerpt(&name.to_string_lossy()))
}

pub(super) fn bad(file: &Path) -> impl Fn(String) -> DatasetError + '_ {
    |reason| DatasetError::Format { file: file.to_path_buf(), reason }
}

pub(super) fn too_much(file: &Path) -> impl Fn(MemoryError) -> DatasetError + '_ {
    |source| DatasetError::Memory { file: file.to_path_buf(), source }
}

pub(super) struct Watched<'a> {
    file: File,
    path: PathBuf,
    done: u64,
    reported: u64,
    pub size: u64,
    watch: Watch<'a>,
}

impl<'a> Watched<'a> {
    pub fn open(path: &Path, watch: Watch<'a>) -> Result<Self, DatasetError> {
        let (file, size) = input::open(path)
            .map_err(|source| DatasetError::Io { file: path.to_path_buf(), source })?;
        Ok(Self { file, path: path.to_path_buf(), done: 0, reported: 0, size, watch })
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.done += count as u64;
        if self.done >= self.reported + STEP || (count > 0 && self.done == self.size) {
            self.reported = self.done;
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

pub(super) fn open_npz<'a>(
    path: &Path,
    watch: Watch<'a>,
) -> Result<Npz<Watched<'a>>, DatasetError> {
    Npz::new(Watched::open(path, watch)?).map_err(bad(path))
}

const MAX_LINE: usize = 1 << 20;

pub(super) const NUMBERS: &str = "is not a list of comma-separated numbers";

/// Compressed files may expand a thousandfold: lists grow with lines.
pub(super) struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    path: PathBuf,
    line: Vec<u8>,
    /// Bytes of other files.
    reserved: u128,
    pub count: usize,
}

const GZIP: [u8; 2] = [0x1f, 0x8b];

impl<'a> Lines<'a> {
    /// Opens a gzip file.
    pub fn open(path: &Path, watch: Watch<'a>) -> Result<Self, DatasetError> {
        let file = Self::buffered(path, watch)?;
        Ok(Self::new(path, Self::unpacked(file)))
    }

    /// Opens gzip or text.
    pub fn open_any(path: &Path, watch: Watch<'a>) -> Result<Self, DatasetError> {
        let mut file = Self::buffered(path, watch)?;
        let start = file.fill_buf();
        let start =
            start.map_err(|source| DatasetError::Io { file: path.to_path_buf(), source })?;
        Ok(Self::new(
            path,
            match start.starts_with(&GZIP) {
                true => Self::unpacked(file),
                false => Box::new(file),
            },
        ))
    }

    fn buffered(path: &Path, watch: Watch<'a>) -> Result<BufReader<Watched<'a>>, DatasetError> {
        match Watched::open(path, watch)? {
            file if file.size == 0 => Err(bad(path)("is empty".to_string())),
            file => Ok(BufReader::with_capacity(1 << 16, file)),
        }
    }

    fn unpacked(file: BufReader<Watched<'a>>) -> Box<dyn BufRead + 'a> {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file)))
    }

    fn new(path: &Path, reader: Box<dyn BufRead + 'a>) -> Self {
        Self { reader, path: path.to_path_buf(), line: Vec::new(), reserved: 0, count: 0 }
    }

    pub fn beside(self, reserved: u128) -> Self {
        Self { reserved, ..self }
    }

    pub fn next(&mut self) -> Result<Option<&str>, DatasetError> {
        Ok(if self.advance()? { Some(self.text()) } else { None })
    }

    /// Reads a line, if any.
    pub fn advance(&mut self) -> Result<bool, DatasetError> {
        self.line.clear();
        let mut limited = (&mut self.reader).take(MAX_LINE as u64);
        let read = limited.read_until(b'\n', &mut self.line);
        let error = match read {
            Err(error) => error.to_string(),
            Ok(0) => return Ok(false),
            Ok(MAX_LINE) => format!("line {} has {MAX_LINE} bytes or more", self.count + 1),
            Ok(_) => {
                self.count += 1;
                return match std::str::from_utf8(&self.line) {
                    Ok(_) => Ok(true),
                    Err(_) => Err(self.wrong("is not text")),
                };
            }
        };
        Err(bad(&self.path)(error))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.line).unwrap_or_default().trim_end()
    }

    /// Appends numbers; `what` is the error.
    pub fn numbers<T: FromStr>(
        &mut self,
        into: &mut Vec<T>,
        what: &str,
    ) -> Result<(), DatasetError> {
        if !self.advance()? {
            return Err(bad(&self.path)(format!("ends after {} lines", self.count)));
        }
        self.fields(into, what)
    }

    /// Appends the last line's numbers.
    pub fn fields<T: FromStr>(&self, into: &mut Vec<T>, what: &str) -> Result<(), DatasetError> {
        self.make_room(into, self.text().split(',').count())?;
        for field in self.text().split(',') {
            match field.trim().parse() {
                Ok(number) => into.push(number),
                Err(_) => return Err(self.wrong(what)),
            }
        }
        Ok(())
    }

    /// Exactly `rows` rows and their width.
    pub fn rows<T: FromStr>(
        mut self,
        rows: usize,
        what: &str,
    ) -> Result<(Vec<T>, usize), DatasetError> {
        let (mut all, mut width) = (Vec::new(), 0);
        for row in 0..rows {
            self.numbers(&mut all, what)?;
            if row == 0 {
                width = all.len();
                let bytes = memory::product(&[rows, width, size_of::<T>()]);
                self.check(format_args!("a table of {rows} rows and {width} columns"), bytes)?;
            } else if all.len() != (row + 1) * width {
                return Err(self.wrong(&format!("does not have {width} numbers like the first")));
            }
        }
        self.ends()?;
        Ok((all, width))
    }

    /// Grows within the limit.
    pub fn make_room<T>(&self, list: &mut Vec<T>, more: usize) -> Result<(), DatasetError> {
        let needed = list.len().saturating_add(more);
        if needed <= list.capacity() {
            return Ok(());
        }
        let size = size_of::<T>().max(1);
        let read = format_args!("its text up to line {}", self.count);
        self.check(read, memory::product(&[needed, size]))?;
        let limit = memory::limit().map_err(too_much(&self.path))?;
        let allowed = u128::from(limit).saturating_sub(self.reserved) / size as u128;
        let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
        let room = list.capacity().saturating_mul(2).min(allowed).max(needed);
        list.reserve_exact(room - list.len());
        Ok(())
    }

    pub fn check(&self, what: fmt::Arguments, bytes: u128) -> Result<(), DatasetError> {
        let bytes = bytes.saturating_add(self.reserved);
        let found = match self.reserved {
            0 => memory::check(what, bytes),
            _ => memory::check(format_args!("{what} with the files before it"), bytes),
        };
        found.map_err(too_much(&self.path))
    }

    pub fn ends(mut self) -> Result<(), DatasetError> {
        let count = self.count;
        match self.next()? {
            None => Ok(()),
            Some(_) => Err(bad(&self.path)(format!("more than the {count} lines expected"))),
        }
    }

    pub fn wrong(&self, what: &str) -> DatasetError {
        bad(&self.path)(format!("line {} {what}", self.count))
    }
}
