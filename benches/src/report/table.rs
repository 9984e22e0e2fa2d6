//! A Markdown table under construction.

use std::fmt::Write;

use crate::chart::significant;

pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        debug_assert_eq!(cells.len(), self.head.len());
        self.rows.push(cells);
    }

    /// The table and an empty line; empty text without rows. Columns without content are left out.
    pub fn markdown(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let filled = |&column: &usize| {
            let mut cells = self.rows.iter().map(|row| row[column].as_str());
            column == 0 || cells.any(|cell| cell != MISSING)
        };
        let columns: Vec<usize> = (0..self.head.len()).filter(filled).collect();
        let line = |cells: &[String]| {
            let cells: Vec<&str> = columns.iter().map(|&column| &*cells[column]).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut text = line(&self.head);
        let _ = writeln!(text, "|{}", "---|".repeat(columns.len()));
        text.extend(self.rows.iter().map(|row| line(row)));
        text + "\n"
    }
}

/// The cell of a missing number.
pub const MISSING: &str = "";

/// A number of three significant digits.
pub fn cell(number: Option<f64>) -> String {
    number.map_or(MISSING.into(), significant)
}

/// A number and how many times another it is: `2.00 (1.25×)`.
pub fn with_ratio(number: Option<f64>, ratio: Option<f64>) -> String {
    match (number, ratio.filter(|ratio| ratio.is_finite())) {
        (Some(_), Some(ratio)) => format!("{} ({}×)", cell(number), significant(ratio)),
        _ => cell(number),
    }
}

/// A peer's time and its quotient with ours.
pub fn over(peer: Option<f64>, ours: Option<f64>) -> String {
    with_ratio(peer, peer.zip(ours).map(|(peer, ours)| peer / ours))
}

/// The least and the greatest number; none without numbers.
pub fn extremes(numbers: &[f64]) -> Option<(f64, f64)> {
    let least = numbers.iter().copied().reduce(f64::min)?;
    let most = numbers.iter().copied().reduce(f64::max)?;
    Some((least, most))
}

/// A rank by position in a list; values that are not in it come last.
pub fn rank(value: &str, order: &[&str]) -> usize {
    order.iter().position(|one| *one == value).unwrap_or(order.len())
}

pub const BACKENDS: [&str; 3] = ["cuda", "vulkan", "flex"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_columns_are_left_out() {
        let mut table = Table::new(["a", "b", "c"]);
        assert_eq!(table.markdown(), "");
        table.row(["1".into(), cell(None), with_ratio(Some(2.0), Some(1.25))]);
        let expected = "| a | c |\n|---|---|\n| 1 | 2.00 (1.25×) |\n\n";
        assert_eq!(table.markdown(), expected);
    }
}
