//! Panels as Markdown tables.

use std::fmt::Write;

use super::panel::{Panel, names, power};

/// Digits of a number.
const DIGITS: f64 = 3.0;

/// A table of a panel: a row for each x, which is called so, and a column for each line.
pub fn table(panel: &Panel, x: &str) -> String {
    let names = names(std::slice::from_ref(panel));
    let rules = " --- |".repeat(names.len() + 1);
    let mut text = format!("| {x} | {} |\n|{rules}\n", names.join(" | "));
    for at in panel.ticks() {
        let cell = |name| panel.lines[name].get(&at).map_or("–".into(), |&y| short(y));
        let cells: Vec<String> = names.iter().map(cell).collect();
        let _ = writeln!(text, "| {} | {} |", power(at), cells.join(" | "));
    }
    text
}

/// Three digits, without an exponent.
fn short(y: f64) -> String {
    let before = y.log10().floor();
    let after = (DIGITS - 1.0 - before).clamp(0.0, 9.0) as usize;
    format!("{y:.after$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_columns() {
        let lines = [
            ("a".to_owned(), [(16, 0.05431), (1 << 20, 1.0)].into()),
            ("b".to_owned(), [(16, 123.4)].into()),
        ];
        let panel = Panel {
            title: String::new(),
            lines: lines.into(),
        };
        assert_eq!(
            table(&panel, "k"),
            "| k | a | b |\n| --- | --- | --- |\n| 16 | 0.0543 | 123 |\n| 2^20 | 1.00 | – |\n"
        );
    }
}
