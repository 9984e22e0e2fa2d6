//! Finds measured numbers in the documents that no record has.
//!
//! A number is measured if a unit of time or rate follows it, or if it is a decimal in a table.
//! Code, and the sections of rejected designs, whose code is gone, do not count.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, bail};

const UNITS: [&str; 8] = ["ms", "µs", "s", "ps", "GB/s", "TB/s", "times", "×"];
const REJECTED: &str = "## What was tried and rejected?";
/// Folders of documents, from the folder of performance.md.
const FOLDERS: [&str; 2] = ["", "design"];
/// Further documents.
const FILES: [&str; 3] = ["../README.md", "../python/README.md", "../crates/sparsek/README.md"];
/// Tables of settings, not of measurements.
const SETTINGS: [&str; 2] = ["cli.md", "papers.md"];

/// Fails with the numbers of `docs` that `generated`, the text of the records, does not have.
pub fn check(docs: &Path, generated: &[&str]) -> anyhow::Result<()> {
    let known: BTreeSet<String> = generated.iter().flat_map(|text| all(text)).collect();
    let mut unknown = Vec::new();
    for path in documents(docs)? {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tables = !SETTINGS.contains(&&*name);
        let numbers = measured(&text, tables).into_iter();
        let numbers = numbers.filter(|(_, number)| !known.contains(number));
        unknown
            .extend(numbers.map(|(line, number)| format!("{}:{line}: {number}", path.display())));
    }
    if !unknown.is_empty() {
        bail!("numbers that no record has:\n{}", unknown.join("\n"));
    }
    Ok(())
}

fn documents(docs: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut paths = Vec::new();
    for folder in FOLDERS.map(|folder| docs.join(folder)).iter().filter(|folder| folder.is_dir()) {
        for file in fs::read_dir(folder)? {
            paths.push(file?.path());
        }
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.retain(|path| !path.ends_with("performance.md"));
    paths.extend(FILES.map(|file| docs.join(file)).into_iter().filter(|path| path.is_file()));
    paths.sort();
    Ok(paths)
}

/// Every number of a text.
fn all(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| c.is_whitespace() || "|()*×".contains(c));
    parts.filter_map(|part| Some(number(part)?.0.to_string())).collect()
}

/// Measured numbers with their lines.
fn measured(text: &str, tables: bool) -> Vec<(usize, String)> {
    let (mut code, mut rejected) = (false, false);
    let mut found = Vec::new();
    for (at, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if line.starts_with("## ") {
            rejected = line == REJECTED;
        }
        if code || rejected {
            continue;
        }
        let in_table = tables && line.starts_with('|');
        // Every second part is a code span.
        let prose: Vec<&str> = line.split('`').step_by(2).collect();
        let words: Vec<&str> = prose.iter().flat_map(|part| part.split_whitespace()).collect();
        for (place, word) in words.iter().enumerate() {
            let Some((digits, rest)) = number(word) else {
                continue;
            };
            let unit =
                |word: &str| UNITS.contains(&word.trim_end_matches([',', '.', ')', ';', ':']));
            let word_after = |steps: usize| words.get(place + steps).copied().unwrap_or("");
            let follows = unit(rest)
                || (rest.is_empty() && unit(word_after(1)))
                || (rest.is_empty()
                    && matches!(word_after(1), "to" | "and")
                    && number(word_after(2)).is_some()
                    && unit(word_after(3)));
            let decimal = in_table && digits.contains('.') && rest.is_empty();
            if follows || decimal {
                found.push((at, digits.to_string()));
            }
        }
    }
    found
}

/// The number that a word begins with, and what follows it.
fn number(word: &str) -> Option<(&str, &str)> {
    let word = word.trim_start_matches(['(', '[', '*', '~']);
    let end = word.find(|c: char| !(c.is_ascii_digit() || ".,".contains(c))).unwrap_or(word.len());
    let (digits, rest) = word.split_at(end);
    let trimmed = digits.trim_end_matches(['.', ',']);
    let is_number =
        trimmed.starts_with(|c: char| c.is_ascii_digit()) && trimmed.matches('.').count() <= 1;
    is_number.then(|| match trimmed.len() < digits.len() && rest.is_empty() {
        true => (trimmed, &digits[trimmed.len()..]),
        false => (trimmed, rest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_tables_make_a_number_measured() {
        let text = "\
An epoch takes 29.6 ms, 1.5 to 2 times less; k = 32, Rust 1.95, 0.22.1.
| case | 0.499 | 256 |
`7 ms`
```
8 ms
```
## What was tried and rejected?
9 ms
## Next
It reads 4.28 TB/s (3×).
";
        let numbers = |tables| -> Vec<String> {
            measured(text, tables).into_iter().map(|(_, number)| number).collect()
        };
        assert_eq!(numbers(true), ["29.6", "1.5", "2", "0.499", "4.28", "3"]);
        assert_eq!(numbers(false), ["29.6", "1.5", "2", "4.28", "3"]);
    }

    #[test]
    fn numbers_without_a_record_fail() {
        let folder = std::env::temp_dir().join(format!("sparsek-numbers-{}", std::process::id()));
        fs::create_dir_all(folder.join("design")).unwrap();
        fs::write(folder.join("design/a.md"), "It takes 2.50 ms.\n").unwrap();
        fs::write(folder.join("performance.md"), "It takes 9.99 ms.\n").unwrap();
        check(&folder, &["| 2.50 (1.25×) |"]).unwrap();
        let error = check(&folder, &["| 2.51 |"]).unwrap_err().to_string();
        assert!(error.ends_with("a.md:1: 2.50"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }
}
