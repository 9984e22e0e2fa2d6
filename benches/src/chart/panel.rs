//! The lines of a chart.

use std::collections::{BTreeMap, BTreeSet};

/// The name of the line that compulsory traffic makes at the copy rate.
pub const FLOOR: &str = "memory floor";
/// The name of the line that one read of a vector makes.
pub const READ: &str = "one read";

/// Whether a line is a bound of the memory, not a measurement.
pub fn is_floor(name: &str) -> bool {
    [FLOOR, READ].contains(&name)
}

/// Lines that share their axes.
#[derive(Default)]
pub struct Panel {
    pub title: String,
    /// Points in the order of x, by the line's name.
    pub lines: BTreeMap<String, BTreeMap<usize, f64>>,
}

impl Panel {
    pub fn add(&mut self, line: &str, x: usize, y: f64) {
        self.lines.entry(line.into()).or_default().insert(x, y);
    }

    pub fn ticks(&self) -> BTreeSet<usize> {
        let lines = self.lines.values();
        lines.flat_map(BTreeMap::keys).copied().collect()
    }
}

/// The names of all lines: exact, early stop by iterations, others by their number, the floor.
pub fn names(panels: &[Panel]) -> Vec<String> {
    let lines = panels.iter().flat_map(|panel| panel.lines.keys());
    let mut names: Vec<String> = lines.cloned().collect();
    names.sort_by_cached_key(|name| {
        let number = name.rsplit_once([':', ' ']);
        let number = number.map_or(0, |(_, number)| number.parse().unwrap_or(0));
        let rank = match name.as_str() {
            floor if is_floor(floor) => 3,
            "exact" => 0,
            early if early.starts_with("early") => 1,
            _ => 2,
        };
        (rank, number, name.clone())
    });
    names.dedup();
    names
}

/// `2^n` for powers of two from 1024 on.
pub fn power(n: usize) -> String {
    if n.is_power_of_two() && n >= 1024 { format!("2^{}", n.ilog2()) } else { n.to_string() }
}
