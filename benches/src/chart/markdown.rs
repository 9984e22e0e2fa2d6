//! Panels as Markdown tables.

use std::fmt::Write;

use super::panel::{Panel, names, power};

const SIGNIFICANT_DIGITS: f64 = 3.0;

pub fn table(panel: &Panel, x: &str) -> String {
    let names = names(std::slice::from_ref(panel));
    let rules = " --- |".repeat(names.len() + 1);
    let mut text = format!("| {x} | {} |\n|{rules}\n", names.join(" | "));
    for at in panel.ticks() {
        let cell = |name| {
            let y = panel.lines[name].get(&at);
            y.map_or("–".into(), |&y| significant(y))
        };
        let cells: Vec<String> = names.iter().map(cell).collect();
        let _ = writeln!(text, "| {} | {} |", power(at), cells.join(" | "));
    }
    text
}

/// Three significant digits, without an exponent.
pub fn significant(y: f64) -> String {
    let before = y.abs().max(1e-9).log10().floor();
    let after = (SIGNIFICANT_DIGITS - 1.0 - before).clamp(0.0, 9.0) as usize;
    format!("{y:.after$}")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn lines_become_columns() {
        let mut panel = Panel::default();
        panel.add("a", 16, 0.05431);
        panel.add("a", 1 << 20, 1.0);
        panel.add("b", 16, 123.4);
        assert_eq!(
            table(&panel, "k"),
            "| k | a | b |\n| --- | --- | --- |\n| 16 | 0.0543 | 123 |\n| 2^20 | 1.00 | – |\n"
        );
    }

    #[rstest]
    #[case(234.6, "235")]
    #[case(12.345, "12.3")]
    #[case(0.012345, "0.0123")]
    #[case(0.00091, "0.000910")]
    fn numbers_have_three_digits(#[case] number: f64, #[case] written: &str) {
        assert_eq!(significant(number), written);
    }
}
