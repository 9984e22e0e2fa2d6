//! Records as lines.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;

use super::{X, Y};
use crate::{case::RowCase, record::Record};

/// The name of the line that the compulsory traffic makes, and of that of one read of a vector.
pub const FLOOR: &str = "memory floor";
pub const READ: &str = "one read";

/// Whether a line tells what memory takes.
pub fn is_floor(name: &str) -> bool {
    [FLOOR, READ].contains(&name)
}

/// Lines that share their axes.
pub struct Panel {
    /// The sizes that all of it has in common.
    pub title: String,
    /// Points in the order of x, by name.
    pub lines: BTreeMap<String, BTreeMap<usize, f64>>,
}

impl Panel {
    /// All x, in order.
    pub fn ticks(&self) -> BTreeSet<usize> {
        self.lines
            .values()
            .flat_map(BTreeMap::keys)
            .copied()
            .collect()
    }
}

/// One panel for each pair of rows and M (or k), by size; those with a single x are left out.
pub fn panels(records: &[Record], x: X, y: Y) -> anyhow::Result<Vec<Panel>> {
    let mut panels: BTreeMap<(usize, usize), Panel> = BTreeMap::new();
    for record in records {
        let case: RowCase = record.case.parse()?;
        let (fixed, at, name) = match x {
            X::K => (case.cols, case.k, "M"),
            X::M => (case.k, case.cols, "k"),
        };
        let panel = panels.entry((case.rows, fixed)).or_insert_with(|| Panel {
            title: format!("N = {}, {name} = {fixed}", power(case.rows)),
            lines: BTreeMap::new(),
        });
        let mut add = |name: &str, value: f64| {
            let line = panel.lines.entry(name.into()).or_default();
            line.insert(at, value);
        };
        match (y, record.burn_ms) {
            (Y::Time, _) => {
                add(&record.method, record.ms);
                add(FLOOR, record.floor_ms);
            }
            (Y::Speedup, Some(burn)) => add(&record.method, burn / record.ms),
            (Y::Speedup, None) => {}
        }
    }
    let panels: Vec<Panel> = panels
        .into_values()
        .filter(|panel| panel.lines.values().any(|line| line.len() > 1))
        .collect();
    ensure!(
        !panels.is_empty(),
        "no two records differ in nothing but {x:?}, so there is no line to draw"
    );
    Ok(panels)
}

/// The names of all lines: exact, early stop by iterations, others by their numbers, the floor.
pub fn names(panels: &[Panel]) -> Vec<String> {
    let mut names: Vec<String> = panels
        .iter()
        .flat_map(|p| p.lines.keys().cloned())
        .collect();
    names.sort_by_cached_key(|name| {
        let parameter = name
            .rsplit_once([':', ' '])
            .map_or(0, |(_, n)| n.parse().unwrap_or(0));
        let rank = match name.as_str() {
            floor if is_floor(floor) => 3,
            "exact" => 0,
            early if early.starts_with("early") => 1,
            _ => 2,
        };
        (rank, parameter, name.clone())
    });
    names.dedup();
    names
}

/// `2^n` for a large power of two.
pub fn power(n: usize) -> String {
    if n.is_power_of_two() && n >= 1024 {
        format!("2^{}", n.ilog2())
    } else {
        n.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(case: &str, method: &str, ms: f64) -> Record {
        Record {
            bench: "topk".into(),
            case: case.into(),
            backend: "cuda".into(),
            device: "a device".into(),
            dtype: "f32".into(),
            method: method.into(),
            form: "pairs".into(),
            dist: "normal".into(),
            ms,
            first_ms: 0.0,
            floor_ms: 0.5,
            copy_gbps: 1.0,
            checked: 1,
            burn_ms: Some(6.0),
        }
    }

    #[test]
    fn lines_are_grouped_by_the_other_sizes() {
        let records = [
            record("2**16x256x32", "exact", 2.0),
            record("2**16x256x16", "exact", 1.0),
            record("2**16x256x16", "early:8", 1.5),
            record("2**16x256x32", "exact", 3.0),
            record("2**16x512x32", "exact", 4.0),
        ];
        let over_k = panels(&records, X::K, Y::Time).expect("a line");
        assert_eq!(over_k.len(), 1);
        assert_eq!(over_k[0].title, "N = 2^16, M = 256");
        let exact: Vec<_> = over_k[0].lines["exact"].iter().collect();
        assert_eq!(exact, [(&16, &1.0), (&32, &3.0)]);
        assert_eq!(names(&over_k), ["exact", "early:8", FLOOR]);

        let over_m = panels(&records, X::M, Y::Speedup).expect("a line");
        assert_eq!(over_m[0].title, "N = 2^16, k = 32");
        let exact: Vec<_> = over_m[0].lines["exact"].iter().collect();
        assert_eq!(exact, [(&256, &2.0), (&512, &1.5)]);
        assert!(panels(&records[..1], X::K, Y::Time).is_err());
    }
}
