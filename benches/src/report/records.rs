//! Records as loosely typed lines, grouped by device and bench.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context;
use serde_json::Value;

/// The lines of one file, by bench.
pub type Benches = BTreeMap<String, Vec<Line>>;

#[derive(Clone)]
pub struct Line(Value);

impl Line {
    /// A text field; empty if missing.
    pub fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }

    /// A field as text; none if missing or empty.
    pub fn shown(&self, field: &str) -> Option<String> {
        let value = &self.0[field];
        let text = value.as_str().map_or_else(|| value.to_string(), Into::into);
        (!value.is_null() && !text.is_empty()).then_some(text)
    }

    /// A number; none if missing.
    pub fn number(&self, field: &str) -> Option<f64> {
        self.0[field].as_f64()
    }

    /// A field that is true.
    pub fn is(&self, field: &str) -> bool {
        self.0[field].as_bool() == Some(true)
    }

    /// Whether these fields are equal, or missing in both.
    pub fn agrees(&self, other: &Self, fields: &[&str]) -> bool {
        fields.iter().all(|field| self.0[*field] == other.0[*field])
    }

    /// Whether another library made the measurement.
    pub fn is_peer(&self) -> bool {
        !self.text("peer").is_empty()
    }
}

/// Reads `<device>/<bench>.jsonl` in a folder. Fails if a line lacks its commit or date.
pub fn load(folder: &Path) -> anyhow::Result<BTreeMap<String, Benches>> {
    let mut devices = BTreeMap::new();
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for device in entries {
        let device = device?.path();
        let mut benches = Benches::new();
        for file in fs::read_dir(&device)? {
            let file = file?.path();
            let text = fs::read_to_string(&file)?;
            let lines = parse(&text).and_then(with_origin);
            let lines = lines.with_context(|| file.display().to_string())?;
            benches.insert(stem(&file), lines);
        }
        devices.insert(stem(&device), benches);
    }
    Ok(devices)
}

pub fn parse(text: &str) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let value = serde_json::from_str(line).with_context(|| format!("line {number}"))?;
        lines.push(Line(value));
    }
    Ok(lines)
}

fn with_origin(lines: Vec<Line>) -> anyhow::Result<Vec<Line>> {
    for (number, line) in (1..).zip(&lines) {
        for field in ["commit", "date"] {
            anyhow::ensure!(!line.text(field).is_empty(), "line {number} has no {field}");
        }
    }
    Ok(lines)
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Lines with equal fields, in the order of their first line.
pub fn groups<'a>(lines: impl IntoIterator<Item = &'a Line>, fields: &[&str]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    for line in lines {
        let same = |group: &&mut Group| group.0[0].agrees(line, fields);
        match groups.iter_mut().find(same) {
            Some(group) => group.0.push(line),
            None => groups.push(Group(vec![line])),
        }
    }
    groups
}

/// Repeated measurements of one case.
pub struct Group<'a>(pub Vec<&'a Line>);

impl<'a> Group<'a> {
    /// A text field, equal in all lines.
    pub fn text(&self, field: &str) -> &'a str {
        self.0[0].text(field)
    }

    /// The median of a number; none if a line lacks it.
    pub fn median(&self, field: &str) -> Option<f64> {
        let numbers = self.0.iter().map(|line| line.number(field));
        numbers.collect::<Option<_>>().map(median)
    }

    /// The median of the quotient of two numbers, each pair from one line.
    pub fn ratio(&self, field: &str, by: &str) -> Option<f64> {
        let ratio = |line: &&Line| Some(line.number(field)? / line.number(by)?);
        self.0.iter().map(ratio).collect::<Option<_>>().map(median)
    }
}

/// The median; of an even count the mean of the two in the middle.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = ((numbers.len() - 1) / 2, numbers.len() / 2);
    (numbers[low] + numbers[high]) / 2.0
}

/// Our own lines and those of other libraries.
pub fn split(lines: &[Line]) -> (Vec<&Line>, Vec<&Line>) {
    lines.iter().partition(|line| !line.is_peer())
}

/// The distinct values of a field, in the order of their first line.
pub fn values<'a>(groups: &[Group<'a>], field: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for value in groups.iter().map(|group| group.text(field)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// The sizes of `NxMxk`.
pub fn row_sizes(case: &str) -> Option<(usize, usize, usize)> {
    let mut sizes = case.split('x').map(size);
    let three = (sizes.next()??, sizes.next()??, sizes.next()??);
    sizes.next().is_none().then_some(three)
}

/// The sizes of `nxk`.
pub fn vector_sizes(case: &str) -> Option<(usize, usize)> {
    let (n, k) = case.split_once('x')?;
    Some((size(n)?, size(k)?))
}

fn size(text: &str) -> Option<usize> {
    match text.split_once("**") {
        None => text.parse().ok(),
        Some((base, exponent)) => {
            let base: usize = base.parse().ok()?;
            base.checked_pow(exponent.parse().ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_or_powers() {
        assert_eq!(row_sizes("2**20x256x32"), Some((1 << 20, 256, 32)));
        assert_eq!(row_sizes("2**20x256"), None);
        assert_eq!(vector_sizes("2**28x1048576"), Some((1 << 28, 1 << 20)));
    }

    #[test]
    fn repeated_cases_become_medians() {
        let text = r#"{"case":"a","ms":3,"floor_ms":1}
{"case":"b","ms":9}
{"case":"a","ms":1,"floor_ms":2}
{"case":"a","ms":2,"floor_ms":2}"#;
        let lines = parse(text).unwrap();
        let groups = groups(&lines, &["case"]);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].text("case"), "a");
        assert_eq!(groups[0].median("ms"), Some(2.0));
        assert_eq!(groups[0].ratio("ms", "floor_ms"), Some(1.0));
        assert_eq!(groups[1].median("floor_ms"), None);
        assert_eq!(median(vec![4.0, 1.0]), 2.5);
        assert!(parse("{").is_err());
    }

    #[test]
    fn lines_name_their_commit_and_date() {
        let lines = |text| parse(text).and_then(with_origin);
        assert_eq!(lines(r#"{"commit":"c151c98","date":"2026-11-30"}"#).unwrap().len(), 1);
        let error = lines(r#"{"date":"2026-11-30"}"#).map(|lines| lines.len()).unwrap_err();
        assert_eq!(error.to_string(), "line 1 has no commit");
    }
}
