//! The sample matrix: how often each section of this repository's documents uses each word.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    io::{Cursor, Write},
    path::{Path, PathBuf},
};

use npyz::{AutoSerialize, DType, WriteOptions, WriterBuilder};
use zip::{DateTime, ZipWriter, write::SimpleFileOptions};

use crate::Result;

/// Shorter sections are left out.
const WORDS: usize = 25;

/// A file as scipy's `save_npz` writes it, and the name of each row.
pub fn sample(root: &Path) -> Result<(Vec<u8>, Vec<String>)> {
    let mut sections = Vec::new();
    for folder in ["docs", "docs/design", "docs/guide/src"] {
        let mut files = documents(&root.join(folder))?;
        files.sort();
        for file in files {
            let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            sections.extend(split(&stem, &text));
        }
    }
    let (names, counts): (Vec<_>, Vec<_>) = sections.into_iter().unzip();
    let matrix = Matrix::new(&counts);
    let file = matrix.file().map_err(|e| format!("the sample: {e}"))?;
    Ok((file, names))
}

/// A file of `rows` rows without zeros, so that no distance is infinite.
pub fn dense(rows: usize, cols: usize) -> Result<Vec<u8>> {
    let places = (0..rows).flat_map(|row| (0..cols).map(move |col| [row, col]));
    let matrix = Matrix {
        cols,
        indptr: (0..=rows).map(|row| (row * cols) as i32).collect(),
        indices: places.clone().map(|[_, col]| col as i32).collect(),
        values: places
            .map(|[row, col]| ((131 * row + 71 * col + 17 * row * col) % 251 + 1) as f32 / 16.0)
            .collect(),
    };
    matrix.file().map_err(|e| format!("the matrix: {e}"))
}

fn documents(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let files = entries.flatten().map(|entry| entry.path());
    Ok(files.filter(|file| file.extension().is_some_and(|e| e == "md")).collect())
}

type Counts = BTreeMap<String, u32>;

/// Sections by heading, outside of listings.
fn split(document: &str, text: &str) -> Vec<(String, Counts)> {
    let mut sections = Vec::new();
    let mut current = (document.to_string(), Counts::new());
    let mut listing = false;
    for line in text.lines() {
        listing ^= line.starts_with("```");
        if listing {
            continue;
        }
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') {
            let name = heading.trim().replace('`', "");
            let next = (format!("{name} ({document})"), Counts::new());
            sections.push(std::mem::replace(&mut current, next));
        }
        let words = line.split(|c: char| !c.is_alphabetic());
        for word in words.filter(|word| word.chars().count() > 2) {
            *current.1.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    sections.push(current);
    sections.retain(|(_, counts)| counts.values().sum::<u32>() as usize >= WORDS);
    sections
}

/// CSR.
struct Matrix {
    cols: usize,
    indptr: Vec<i32>,
    indices: Vec<i32>,
    values: Vec<f32>,
}

impl Matrix {
    /// Columns are the words of at least two sections and at most a third.
    fn new(sections: &[Counts]) -> Self {
        let mut uses = HashMap::<&str, usize>::new();
        for word in sections.iter().flat_map(Counts::keys) {
            *uses.entry(word).or_default() += 1;
        }
        uses.retain(|_, count| (2..=(sections.len() / 3).max(2)).contains(count));
        let mut words: Vec<&str> = uses.into_keys().collect();
        words.sort_unstable();
        let kept: HashSet<&str> = words.iter().copied().collect();
        let mut matrix =
            Self { cols: words.len(), indptr: vec![0], indices: Vec::new(), values: Vec::new() };
        for counts in sections {
            for (word, &count) in counts.iter().filter(|(word, _)| kept.contains(word.as_str())) {
                let at = words.binary_search(&word.as_str()).expect("kept words are listed");
                matrix.indices.push(at as i32);
                matrix.values.push(count as f32);
            }
            matrix.indptr.push(matrix.indices.len() as i32);
        }
        matrix
    }

    fn file(&self) -> std::io::Result<Vec<u8>> {
        let rows = self.indptr.len() as i64 - 1;
        let mut format = Vec::new();
        let text = DType::Plain("|S3".parse().expect("a string of three bytes"));
        let options = WriteOptions::new().dtype(text).shape(&[]).writer(&mut format);
        let mut array = options.begin_nd()?;
        array.push(b"csr".as_slice())?;
        array.finish()?;
        let arrays = [
            ("indices", array_of(&self.indices)?),
            ("indptr", array_of(&self.indptr)?),
            ("format", format),
            ("shape", array_of(&[rows, self.cols as i64])?),
            ("data", array_of(&self.values)?),
        ];
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, array) in arrays {
            // A fixed time, so that equal documents give equal files.
            let options = SimpleFileOptions::default().last_modified_time(DateTime::default());
            archive.start_file(format!("{name}.npy"), options)?;
            archive.write_all(&array)?;
        }
        Ok(archive.finish()?.into_inner())
    }
}

fn array_of<T: AutoSerialize + Copy>(elements: &[T]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let options = WriteOptions::new().default_dtype().shape(&[elements.len() as u64]);
    let mut array = options.writer(&mut bytes).begin_nd()?;
    array.extend(elements.iter().copied())?;
    array.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_the_words_of_their_text() {
        let words = "alpha beta gamma ".repeat(9);
        let text =
            format!("# One\n{words}\n```\nlisting\n```\n## Two `x`\nfew\n### Three\n{words}");
        let sections = split("file", &text);
        let names: Vec<&str> = sections.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["One (file)", "Three (file)"]);
        assert_eq!(sections[0].1["alpha"], 9);
        assert!(!sections[0].1.contains_key("listing"));
        let counts: Vec<Counts> = sections.into_iter().map(|(_, counts)| counts).collect();
        let matrix = Matrix::new(&counts);
        assert_eq!((matrix.cols, &matrix.indptr[..]), (3, &[0, 3, 6][..]));
        assert_eq!(matrix.values, [9.0; 6]);
    }
}
