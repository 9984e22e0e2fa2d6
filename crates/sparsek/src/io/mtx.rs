//! Matrix Market coordinates, plain or gzipped.
//!
//! ```text
//! %%MatrixMarket matrix coordinate real symmetric
//! % comments
//! 3 3 2        rows, columns, lines that follow
//! 2 1 0.5      row and column from 1, and the value
//! 3 3 7
//! ```
//!
//! Memory follows actual lines.

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::{
    matrix::{Matrix, Value, check_entries, check_rows, check_size, in_rows},
    text::excerpt,
};

/// The format allows 1024.
const MAX_LINE: u64 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Real,
    Integer,
    Pattern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// Mirrors off-diagonal entries of symmetric matrices, as scipy.
pub fn read<T: Value>(reader: impl Read) -> Result<Matrix<T>, String> {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let start = reader.fill_buf().map_err(|error| excerpt(&error.to_string()))?;
    match start.starts_with(&[0x1f, 0x8b]) {
        true => parse(Lines::new(BufReader::new(MultiGzDecoder::new(reader)))),
        false => parse(Lines::new(reader)),
    }
}

fn parse<T: Value>(mut lines: Lines<impl BufRead>) -> Result<Matrix<T>, String> {
    let (field, symmetry) = banner(lines.next()?.unwrap_or_default())?;
    let sizes = lines.next_data()?.ok_or("truncated: the line of sizes is missing")?;
    let sizes: Option<Vec<u64>> =
        sizes.split_ascii_whitespace().map(|size| size.parse().ok()).collect();
    let Some(&[rows, cols, declared]) = sizes.as_deref() else {
        return Err(lines.bad("rows, columns and entries are needed"));
    };
    let [rows, cols, declared] =
        [rows, cols, declared].map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let shape = [rows, cols];
    check_size(shape).map_err(|reason| lines.bad(&reason))?;
    if symmetry != Symmetry::General && rows != cols {
        return Err(lines.bad(&format!("a symmetric matrix of {rows} × {cols} is not square")));
    }
    check_rows(rows, "rows")?;
    let most = declared.saturating_mul(if symmetry == Symmetry::General { 1 } else { 2 });
    check_entries::<T>(most, 3, shape)?;

    let (mut row_ids, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut push = |row: u32, column: u32, value: f64| {
        row_ids.push(row);
        columns.push(column);
        values.push(T::of(value));
    };
    for count in 0..declared {
        let Some(line) = lines.next_data()? else {
            return Err(format!("truncated: {declared} entries are declared, {count} are there"));
        };
        let entry = entry(line, shape, field).map_err(|reason| lines.bad(&reason))?;
        let (row, column, value) = entry;
        push(row, column, value);
        match symmetry {
            Symmetry::Symmetric if row != column => push(column, row, value),
            Symmetry::Skew if row != column => push(column, row, -value),
            _ => {}
        }
    }
    if lines.next_data()?.is_some() {
        return Err(lines.bad(&format!("more than the {declared} declared entries")));
    }
    Ok(in_rows(shape, &row_ids, columns.into_iter(), Some(values)))
}

fn banner(line: &str) -> Result<(Field, Symmetry), String> {
    let words: Vec<String> = line.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let &[first, object, format, field, symmetry] = words.as_slice() else {
        return Err(match words.first() {
            Some(&"%%matrixmarket") => format!(
                "line 1: {:?}; object, format, field and symmetry are needed",
                excerpt(line)
            ),
            _ => "not a Matrix Market file: its first line does not begin with %%MatrixMarket"
                .to_string(),
        });
    };
    let unread = |what: &str, found: &str, known: &str| {
        Err(format!("line 1: the {what} is {:?}; {known} can be read", excerpt(found)))
    };
    if first != "%%matrixmarket" {
        return Err("not a Matrix Market file: its first line does not begin with %%MatrixMarket"
            .to_string());
    }
    if object != "matrix" {
        return unread("object", object, "matrix");
    }
    if format != "coordinate" {
        return unread("format", format, "coordinate");
    }
    let field = match field {
        "real" | "double" => Field::Real,
        "integer" | "unsigned-integer" => Field::Integer,
        "pattern" => Field::Pattern,
        _ => return unread("field", field, "real, integer and pattern"),
    };
    match symmetry {
        "general" => Ok((field, Symmetry::General)),
        "symmetric" => Ok((field, Symmetry::Symmetric)),
        "skew-symmetric" => Ok((field, Symmetry::Skew)),
        _ => unread("symmetry", symmetry, "general, symmetric and skew-symmetric"),
    }
}

/// Ids from 0; patterns have value 1.
fn entry(line: &str, shape: [usize; 2], field: Field) -> Result<(u32, u32, f64), String> {
    let mut words = line.split_ascii_whitespace();
    let mut next = |what: &str| words.next().ok_or_else(|| format!("the {what} is missing"));
    let mut id = |what: &str, limit: usize| -> Result<u32, String> {
        let word = next(what)?;
        let found = word.parse().ok().filter(|&id: &usize| (1..=limit).contains(&id));
        // Sizes are below 2^31.
        found.map(|id| (id - 1) as u32).ok_or_else(|| {
            format!("{what} {:?} is out of range: the matrix has {limit} {what}s", excerpt(word))
        })
    };
    let (row, column) = (id("row", shape[0])?, id("column", shape[1])?);
    let value = match field {
        Field::Pattern => 1.0,
        Field::Real => {
            let word = next("value")?;
            word.parse().map_err(|_| format!("the value {:?} is no number", excerpt(word)))?
        }
        Field::Integer => {
            let word = next("value")?;
            let value: Result<i128, _> = word.parse();
            value.map_err(|_| format!("the value {:?} is no integer", excerpt(word)))? as f64
        }
    };
    match words.next() {
        None => Ok((row, column, value)),
        Some(word) => Err(format!("{:?} follows the entry", excerpt(word))),
    }
}

struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    fn new(reader: R) -> Self {
        Self { reader, line: Vec::new(), number: 0 }
    }

    fn bad(&self, reason: &str) -> String {
        format!("line {}: {reason}", self.number)
    }

    fn advance(&mut self) -> Result<bool, String> {
        self.line.clear();
        self.number += 1;
        let mut limited = self.reader.by_ref().take(MAX_LINE + 1);
        let read = limited.read_until(b'\n', &mut self.line);
        let length = read.map_err(|error| self.bad(&excerpt(&error.to_string())))?;
        match length as u64 > MAX_LINE {
            true => Err(self.bad(&format!("longer than {MAX_LINE} bytes"))),
            false => Ok(length > 0),
        }
    }

    fn text(&self) -> Result<&str, String> {
        str::from_utf8(&self.line).map_err(|_| self.bad("not text"))
    }

    fn next(&mut self) -> Result<Option<&str>, String> {
        match self.advance()? {
            true => self.text().map(Some),
            false => Ok(None),
        }
    }

    /// Skips empty lines and comments of any encoding.
    fn next_data(&mut self) -> Result<Option<&str>, String> {
        while self.advance()? {
            let line = self.line.trim_ascii();
            if !line.is_empty() && line[0] != b'%' {
                return self.text().map(Some);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
