//! The lines of a gzip file.
use std::{
    fmt,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    str::FromStr,
};

use flate2::bufread::MultiGzDecoder;
use sparsek::io::memory;

use super::{
    DatasetError,
    files::{Watch, Watched, bad, too_much},
};

/// Most bytes of a line.
const MAX_LINE: usize = 1 << 20;

/// What a line of numbers is not, where one of them cannot be read.
pub(super) const NUMBERS: &str = "is not numbers between commas";

/// Reads a gzip file line by line. Lists grow with the lines that are there, within the limit on
/// memory: a small file may expand to a thousand times its size.
pub(super) struct Lines<'a> {
    reader: BufReader<MultiGzDecoder<BufReader<Watched<'a>>>>,
    path: PathBuf,
    line: Vec<u8>,
    /// Bytes that other files of the dataset hold already.
    held: u128,
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
            held: 0,
            count: 0,
        })
    }

    /// Counts what other files hold: all of them together must be within the limit.
    pub fn beside(self, held: u128) -> Self {
        Self { held, ..self }
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

    /// The numbers of the next line; fails where there is no line, or where one is no number, which
    /// is `what` the line then has wrong.
    pub fn numbers<T: FromStr>(
        &mut self,
        into: &mut Vec<T>,
        what: &str,
    ) -> Result<(), DatasetError> {
        let Some(line) = self.next()? else {
            return Err(bad(&self.path)(format!("ends after {} lines", self.count)));
        };
        let fields = line.split(',').count();
        self.make_room(into, fields)?;
        let line = std::str::from_utf8(&self.line).unwrap_or_default();
        for field in line.trim_end().split(',') {
            match field.trim().parse() {
                Ok(number) => into.push(number),
                Err(_) => return Err(self.wrong(what)),
            }
        }
        Ok(())
    }

    /// As many rows of numbers as there must be, and how wide they are. `what` is that of
    /// [`Lines::numbers`].
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
                self.check(
                    format_args!("a table of {rows} rows and {width} columns"),
                    bytes,
                )?;
            } else if all.len() != (row + 1) * width {
                return Err(self.wrong(&format!("does not have {width} numbers, as the first has")));
            }
        }
        self.ends()?;
        Ok((all, width))
    }

    /// Room for `more` elements of a list that grows with the lines: twice of what it has, as far
    /// as the limit on memory allows.
    pub fn make_room<T>(&self, list: &mut Vec<T>, more: usize) -> Result<(), DatasetError> {
        let needed = list.len().saturating_add(more);
        if needed <= list.capacity() {
            return Ok(());
        }
        let size = size_of::<T>().max(1);
        let read = format_args!("its text up to line {}", self.count);
        self.check(read, memory::product(&[needed, size]))?;
        let limit = memory::limit().map_err(too_much(&self.path))?;
        let allowed = u128::from(limit).saturating_sub(self.held) / size as u128;
        let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
        let room = list.capacity().saturating_mul(2).min(allowed).max(needed);
        list.reserve_exact(room - list.len());
        Ok(())
    }

    /// Whether `bytes` are within the limit, beside the bytes that other files hold.
    pub fn check(&self, what: fmt::Arguments, bytes: u128) -> Result<(), DatasetError> {
        let bytes = bytes.saturating_add(self.held);
        let found = match self.held {
            0 => memory::check(what, bytes),
            _ => memory::check(format_args!("{what} with the files before it"), bytes),
        };
        found.map_err(too_much(&self.path))
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
